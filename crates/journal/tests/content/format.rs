//! Every format ever released can be read: a fixture directory of each is kept.
//!
//! `cargo test -p tacho-journal --test content write_the_fixture -- --ignored` writes the
//! fixture of the current format, once, after a format change.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tacho_journal::sim::Disk;
use tacho_journal::{Inspection, Level, QueueId, Record, Urgency};

use super::Bench;
use super::model::Seen;

const SEGMENT: &str = "0000000000000001.segment";

fn fixture(format: u16) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/content/formats");
    folder.join(format!("{format}.segment"))
}

/// Every kind of record, in frames of two writers.
fn write() -> Bench {
    let mut bench = Bench::new(1, 2);
    let (one, two) = (bench.journal.new_queue_id(), bench.journal.new_queue_id());
    let first = bench.message(b"the first message");
    bench.entry(one, 1, first);
    bench.entry(two, 1, first);
    bench.append(Record::Open { message: first, meta: b"somewhere else" });
    bench.commit();
    let second = bench.message(&[0xab; 300]);
    bench.entry(one, 2, second);
    bench.entry(one, 3, second);
    bench.append(Record::State { queue: one, seq: 1, state: 4_000_000, keep_message: true });
    bench.append(Record::State { queue: one, seq: 2, state: 5, keep_message: false });
    bench.append(Record::Remove { queue: one, seq: 3 });
    let queue = QueueId::COMMON;
    let message = Some(second);
    bench.append(Record::Put { queue, key: b"r/a", version: 1 << 40, value: b"v", message });
    bench.append(Record::Put { queue, key: b"r/b", version: 7, value: b"w", message: None });
    bench.append(Record::Delete { queue, key: b"r/b", version: 8 });
    bench.append(Record::Put { queue: one, key: b"s", version: 0, value: b"", message: None });
    bench.commit();
    let third = bench.message(b"third");
    bench.append(Record::Open { message: third, meta: b"" });
    bench.append(Record::Done { message: third });
    let dropped = bench.journal.new_queue_id();
    let entry = Record::Entry { queue: dropped, seq: 1, message: third, state: 0, meta: b"" };
    bench.writers[1].append(entry, Level::Written, Urgency::Rides);
    bench.commit();
    bench.append(Record::DropQueue { queue: dropped });
    bench.commit();
    bench
}

/// The live state, as text lines.
fn describe(disk: &Disk) -> String {
    let inspection = Inspection::open_on(disk).expect("the fixture can be read");
    assert_eq!(inspection.check(), []);
    let mut seen = Seen::default();
    inspection.visit(&mut seen).expect("the fixture can be read");
    let mut text = String::new();
    let bytes = |bytes: &[u8]| bytes.escape_ascii().to_string();
    for ((queue, key), value) in &seen.keys {
        let (version, message) = (value.version, value.message);
        let (key, value) = (bytes(key), bytes(&value.value));
        writeln!(text, "key {queue} {key} {version} {value} {message:?}").expect("written");
    }
    for ((queue, seq), entry) in &seen.entries {
        let (message, state, meta) = (entry.message, entry.state, bytes(&entry.meta));
        writeln!(text, "entry {queue} {seq} {message:?} {state} {meta}").expect("written");
        let body = message.and_then(tacho_journal::MessageId::new).map(|id| inspection.message(id));
        for body in body.into_iter().map(|body| body.expect("readable")) {
            writeln!(text, "  body {}", bytes(&body)).expect("written");
        }
    }
    for (message, opened) in &seen.opens {
        for (meta, served) in opened {
            writeln!(text, "open {message} {} {served:?}", bytes(meta)).expect("written");
        }
    }
    let summary = inspection.summary();
    let (commit, message, queue) = (summary.last_commit, summary.last_message, summary.last_queue);
    writeln!(text, "last {commit} {message} {queue}").expect("written");
    text
}

const FORMAT_1: &str = "\
key 0 r/a 1099511627776 v Some(2)
key 1 s 0  None
entry 1 1 Some(1) 4000000 meta
  body the first message
entry 1 2 None 5 meta
entry 2 1 Some(1) 0 meta
  body the first message
open 1 somewhere else {1, 2}
last 4 3 3
";

#[test]
fn format_1_is_read() {
    let disk = Disk::new(1);
    disk.put(SEGMENT, fs::read(fixture(1)).expect("the fixture is there"));
    assert_eq!(describe(&disk), FORMAT_1);
    let mut bench = Bench::open(disk, 1);
    let message = bench.message(b"new");
    assert_eq!(message.get(), 4);
    bench.entry(QueueId::new(1), 4, message);
    bench.commit();
    let text = describe(&bench.disk.kill());
    assert!(text.contains("entry 1 4 Some(4) 0 meta\n  body new\n"), "{text}");
}

#[test]
fn the_current_format_reads_like_its_fixture() {
    let disk = write().disk.kill();
    assert_eq!(describe(&disk), FORMAT_1, "a format change needs a new number and a new fixture");
}

#[test]
#[ignore = "writes the fixture of the present format"]
fn write_the_fixture() {
    let mut content = write().disk.content(SEGMENT).expect("the segment");
    let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    content.truncate(used);
    fs::write(fixture(1), content).expect("written");
}
