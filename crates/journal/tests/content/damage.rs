//! Logs that are cut off, damaged, or partly unreadable.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use fastrand::Rng;
use tacho_journal::sim::{Disk, Faults};
use tacho_journal::storage::{Storage, StorageFile};
use tacho_journal::{
    Inspection, Journal, MessageId, Opened, Options, Problem, QueueId, ReadError, Record, Report,
    Step,
};

use super::{Bench, options};

/// Without compaction, so that records stay where they were written.
fn still() -> Options {
    Options { log_bytes_min: u64::MAX, ..options() }
}

const QUEUE: QueueId = QueueId::new(1_000_001);
const COMMITS: u64 = 60;

/// The name of the first segment.
const FIRST: &str = "0000000000000001.segment";

/// A log with one entry per commit, numbered like the commit. Commit 20 fills more than a segment.
fn log(seed: u64) -> Disk {
    let mut bench = Bench::open_with(Disk::new(seed), 1, still());
    let mut rng = Rng::with_seed(seed);
    for seq in 1..=COMMITS {
        let bytes = if seq == 20 { 50_000 } else { rng.usize(..4_000) };
        let message = bench.message(&vec![seq as u8; bytes]);
        let commit = bench.entry(QUEUE, seq, message);
        assert_eq!((bench.committer.step(), commit.get()), (Step::Committed(commit), seq));
    }
    bench.disk.kill()
}

/// The live entries; asserts that each has its body.
fn entries(bench: &mut Bench) -> BTreeSet<u64> {
    let seen = bench.seen();
    for ((_, seq), entry) in &seen.entries {
        let id = entry.message.and_then(MessageId::new).expect("each entry has a message");
        let (_, body) = bench.journal.read(&[id]).pop().expect("one answer");
        let body = body.expect("the body can be read");
        assert!(body.iter().all(|byte| *byte == *seq as u8), "the body of entry {seq}");
    }
    seen.entries.keys().map(|(_, seq)| *seq).collect()
}

fn open(disk: &Disk, seed: u64) -> (Bench, Report) {
    let bench = Bench::open_with(disk.copy(seed), 1, still());
    let report = bench.recovered.report().clone();
    (bench, report)
}

/// The segments and their used bytes, in order.
fn segments(disk: &Disk) -> Vec<(String, Vec<u8>)> {
    let mut names = disk.list().expect("names");
    names.retain(|name| name.ends_with(".segment"));
    names.sort();
    let contents = names.into_iter().filter_map(|name| Some((disk.content(&name)?, name)));
    let used = contents.map(|(mut content, name)| {
        let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        content.truncate(used);
        (name, content)
    });
    used.filter(|(_, content)| !content.is_empty()).collect()
}

#[test]
fn every_prefix_of_a_log_is_a_log() {
    let disk = log(1);
    let segments = segments(&disk);
    assert!(segments.len() > 4, "{}", segments.len());
    let mut before = 0;
    for (index, (name, content)) in segments.iter().enumerate() {
        for cut in (0..content.len() + 512).step_by(512) {
            let end = cut.min(content.len());
            let shorter = disk.copy(cut as u64);
            for (later, _) in &segments[index + 1..] {
                shorter.remove(later).expect("removed");
            }
            let mut bytes = content[..end].to_vec();
            bytes.resize(content.len().next_multiple_of(4096), 0);
            shorter.put(name, bytes);
            let (mut bench, report) = open(&shorter, 7);
            assert_eq!(report.damage, [], "{name} cut at {cut}");
            let entries = entries(&mut bench);
            let last = entries.last().copied().unwrap_or(0);
            assert!(entries.iter().copied().eq(1..=last), "{name} cut at {cut}: {entries:?}");
            assert_eq!(bench.journal.committed().get(), last);
            assert!(last >= before, "{name} cut at {cut}: {last} after {before}");
            assert!(report.torn.is_none_or(|torn| torn.frame == last + 1));
            before = last;
        }
    }
    assert_eq!(before, COMMITS);
}

#[test]
fn a_flipped_bit_loses_one_commit_and_is_reported() {
    let disk = log(2);
    let segments = segments(&disk);
    let mut rng = Rng::with_seed(2);
    let (mut lost, mut harmless) = (0, 0);
    for round in 0..300 {
        let (name, content) = &segments[rng.usize(..segments.len())];
        let at = rng.usize(..content.len());
        let mut bytes = content.clone();
        bytes[at] ^= 1 << rng.u8(..8);
        bytes.resize(content.len().next_multiple_of(4096), 0);
        let damaged = disk.copy(round);
        damaged.put(name, bytes);
        let problems = Inspection::open_on(&damaged).expect("it can be read").check();
        let (mut bench, report) = open(&damaged, round);
        let there = entries(&mut bench);
        let missing: Vec<_> = (1..=COMMITS).filter(|seq| !there.contains(seq)).collect();
        match missing[..] {
            [] => {
                harmless += 1;
                assert_eq!((&report.damage[..], &problems[..]), (&[][..], &[][..]), "byte {at}");
                continue;
            }
            // Damage of the last commit is indistinguishable from a cut-off one.
            [COMMITS] if report.damage.is_empty() => {}
            [seq] => {
                let damage = &report.damage[..];
                assert_eq!(damage.len(), 1, "{damage:?}");
                assert_eq!((damage[0].first_frame, damage[0].last_frame), (seq, seq));
                assert_eq!(&damage[0].file, name);
                assert_eq!(report.quarantined, [format!("quarantine/{name}")]);
                let kept = bench.disk.content(&report.quarantined[0]).expect("a copy");
                assert_eq!(kept[at], damaged.content(name).expect("the original")[at]);
                assert!(matches!(problems[0], Problem::Damage(_)));
            }
            _ => panic!("{name} byte {at}: {missing:?} are missing"),
        }
        lost += 1;
        goes_on(bench, &there);
    }
    assert!(lost > 100 && harmless > 10, "{lost} {harmless}");
}

/// After damage the journal works normally and can be reopened.
fn goes_on(mut bench: Bench, there: &BTreeSet<u64>) {
    let mut expected = there.clone();
    for seq in 1_000..1_005_u64 {
        let message = bench.message(&[seq as u8; 3_000]);
        bench.entry(QUEUE, seq, message);
        bench.commit();
        expected.insert(seq);
    }
    let mut bench = Bench::open_with(bench.disk.power_cut(), 1, still());
    assert_eq!(entries(&mut bench), expected);
}

#[test]
fn a_fully_damaged_segment_is_quarantined() {
    let disk = log(3);
    let segments = segments(&disk);
    for (index, (name, content)) in segments.iter().enumerate() {
        let damaged = disk.copy(1);
        damaged.put(name, vec![0xa5; content.len()]);
        let (mut bench, report) = open(&damaged, 1);
        let there = entries(&mut bench);
        let (is_first, is_last) = (index == 0, index + 1 == segments.len());
        if !is_first && !is_last {
            assert_eq!(report.damage.len(), 1, "{name}: {report:?}");
            let lost = report.damage[0].first_frame..=report.damage[0].last_frame;
            assert!((1..=COMMITS).all(|seq| lost.contains(&seq) != there.contains(&seq)));
            assert_eq!(report.quarantined, [format!("quarantine/{name}")]);
            assert!(bench.disk.content(name).is_none(), "moved to quarantine");
        }
        assert!(!there.is_empty());
        goes_on(bench, &there);
    }
}

#[test]
fn an_entry_without_its_message_is_reported() {
    let mut bench = Bench::open_with(Disk::new(4), 1, still());
    let message = bench.message(&[7; 100]);
    bench.commit();
    bench.entry(QUEUE, 1, message);
    bench.commit();
    let disk = bench.disk.kill();
    disk.damage(FIRST, 100, 1);
    let (mut bench, report) = open(&disk, 1);
    assert_eq!((report.damage.len(), report.unresolved), (1, 1));
    assert_eq!(bench.seen().entries.len(), 1);
    let (_, body) = bench.journal.read(&[message]).pop().expect("an answer");
    assert!(matches!(body, Err(ReadError::Gone)), "{body:?}");
    assert!(Inspection::open_on(&disk).expect("read").check().contains(&Problem::Unresolved(1)));
}

#[test]
fn a_message_damaged_later_is_reported_when_read() {
    let mut bench = Bench::open_with(Disk::new(5), 1, still());
    let message = bench.message(&[7; 9_000]);
    bench.entry(QUEUE, 1, message);
    bench.commit();
    bench.disk.damage(FIRST, 5_000, 1);
    let (_, body) = bench.journal.read(&[message]).pop().expect("an answer");
    assert!(matches!(body, Err(ReadError::Damaged)), "{body:?}");
    assert_eq!(bench.journal.stats().unreadable.get(), 1);
}

#[test]
fn intermittent_read_errors_lose_nothing() {
    for seed in 0..20 {
        let disk = log(seed).copy(seed);
        disk.set_faults(Faults { read_error: 0.05, short: 0.2, ..Faults::default() });
        let mut opened = Journal::open_on(disk.clone(), still());
        while opened.is_err() {
            opened = Journal::open_on(disk.clone(), still());
        }
        let Opened { journal, recovered, .. } = opened.expect("it was opened");
        assert_eq!(recovered.report().damage, []);
        assert_eq!(journal.committed().get(), COMMITS);
    }
}

/// A disk with an unreadable range.
#[derive(Clone)]
struct BadSector {
    disk: Disk,
    name: String,
    at: u64,
}

struct BadFile {
    file: Arc<dyn StorageFile>,
    at: u64,
}

impl Storage for BadSector {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.disk.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let file = self.disk.open(name)?;
        let at = if name == self.name { self.at } else { u64::MAX };
        Ok(Arc::new(BadFile { file, at }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }
}

impl StorageFile for BadFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.file.set_size(bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if offset <= self.at && self.at < offset + into.len() as u64 {
            return Err(io::Error::other("a bad sector"));
        }
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

#[test]
fn an_unreadable_sector_loses_only_its_commit() {
    let disk = log(6);
    for (name, content) in segments(&disk) {
        for at in (0..content.len() as u64).step_by(7_001) {
            let storage = BadSector { disk: disk.copy(at), name: name.clone(), at };
            let Opened { journal, committer, recovered } =
                Journal::open_on(storage.clone(), still()).expect("it opens");
            let report = recovered.report().clone();
            let mut bench = Bench {
                disk: storage.disk,
                writers: vec![journal.writer()],
                journal,
                committer,
                recovered,
            };
            let there: BTreeSet<_> = bench.seen().entries.keys().map(|(_, seq)| *seq).collect();
            let missing: Vec<_> = (1..=COMMITS).filter(|seq| !there.contains(seq)).collect();
            assert!(missing.len() <= 1, "{name} {at}: {missing:?}");
            assert_eq!(report.damage.len(), missing.len(), "{name} {at}: {report:?}");
            assert!(report.damage.iter().all(|damage| damage.first_frame == missing[0]));
        }
    }
}

/// It was taken for an empty log, and its files were used again.
#[test]
fn a_disk_that_cannot_be_read_at_all_is_refused_and_left_alone() {
    let disk = log(9);
    let names = disk.list().expect("names");
    disk.set_faults(Faults { read_error: 1.0, ..Faults::default() });
    assert!(Journal::open_on(disk.clone(), still()).is_err());
    disk.set_faults(Faults::default());
    assert_eq!(disk.list().expect("names"), names);
    let (mut bench, report) = open(&disk, 9);
    assert!(report.damage.is_empty(), "{report:?}");
    assert_eq!(entries(&mut bench).len() as u64, COMMITS);
}

#[test]
fn records_that_cannot_be_relocated_are_dropped_and_reported() {
    let mut bench = Bench::new(7, 1);
    let lost = bench.message(&[1; 500]);
    bench.entry(QUEUE, 1, lost);
    bench.append(Record::Open { message: lost, meta: b"" });
    bench.commit();
    let kept = bench.message(&[2; 500]);
    bench.entry(QUEUE, 2, kept);
    // The entry is readable, its message is not.
    bench.entry(QUEUE, 3, lost);
    bench.commit();
    bench.disk.damage(FIRST, 100, 1);
    for _ in 0..100 {
        let queue = bench.journal.new_queue_id();
        let message = bench.message(&[3; 4_000]);
        bench.entry(queue, 1, message);
        bench.commit();
        bench.append(Record::DropQueue { queue });
        bench.commit();
    }
    let stats = bench.journal.stats();
    assert!(stats.log_bytes.get() < 10 * u64::from(options().segment_bytes));
    assert_eq!((stats.lost_records.get(), stats.quarantined.get()), (3, 1));
    assert!(bench.disk.content(&format!("quarantine/{FIRST}")).is_some());
    let read = |id| bench.journal.read(&[id]).pop().expect("an answer").1;
    assert!(matches!(read(lost), Err(ReadError::Gone)));
    assert_eq!(*read(kept).expect("moved"), [2; 500]);
    let mut bench = Bench::open(bench.disk.kill(), 1);
    assert_eq!((bench.recovered.report().unresolved, bench.seen().opens.len()), (1, 0));
    assert!(bench.seen().entries.keys().map(|(_, seq)| *seq).eq([2, 3]));
}
