//! Segments prepared, recycled and removed, on a disk that loses unsynced data.

use super::*;
use crate::blocks::BLOCK;
use crate::committer::Step;
use crate::id::QueueId;
use crate::journal::Journal;
use crate::options::{Level, Options, Urgency};
use crate::record::Record;
use crate::sim::{Disk, Faults};
use crate::storage::Storage;

const BYTES: u32 = 64 << 10;

/// A keeper on a disk, with the number of the first segment that it prepares.
fn keeper(disk: &Disk) -> Arc<Shared> {
    keeper_of_log(disk, 0)
}

/// The same with this minimum log size.
fn keeper_of_log(disk: &Disk, log_bytes_min: u64) -> Arc<Shared> {
    let options = Options { segment_bytes: BYTES, log_bytes_min, ..Options::default() };
    Journal::open_on(disk.clone(), options).expect("opened").committer.shared
}

fn work(shared: &Shared) {
    while shared.pool.work(shared) {}
}

fn unused(name: &str) -> Unused {
    Unused { name: name.to_owned(), sound: true }
}

/// Names of the segment files.
fn segments(disk: &Disk) -> Vec<String> {
    let mut names = disk.list().expect("names");
    names.retain(|name| crate::segment::parse_name(name).is_some());
    names
}

#[test]
fn prepared_segments_are_zeroed_and_their_names_synced() {
    let disk = Disk::new(1);
    let shared = keeper(&disk);
    work(&shared);
    let after = disk.power_cut();
    let names = segments(&after);
    assert_eq!(names.len(), shared.options.segments_ready);
    for name in names {
        assert_eq!(after.content(&name), Some(vec![0; BYTES as usize]));
    }
    assert_eq!(shared.stats.zeroed_bytes.get(), 2 * u64::from(BYTES));
}

#[test]
fn an_urgent_request_does_not_wait_for_zeroing() {
    let disk = Disk::new(1);
    let shared = keeper(&disk);
    let ready = shared.pool.take(&shared).expect("a segment");
    assert_eq!(ready.file.size().expect("a size"), 0);
    assert!(disk.power_cut().content(&file_name(ready.id)).is_some(), "its name is synced");
}

#[test]
fn used_files_become_new_segments_as_they_are() {
    let disk = Disk::new(1);
    disk.put("old", vec![7; BYTES as usize]);
    disk.put("short", vec![7; BLOCK]);
    disk.put("long", vec![7; 3 * BYTES as usize]);
    let shared = keeper(&disk);
    for name in ["old", "short", "long"] {
        shared.pool.give_back(unused(name));
    }
    work(&shared);
    let after = disk.power_cut();
    let contents: Vec<_> = (1..=3)
        .map(|number| after.content(&file_name(SegmentId::new(number))).expect("a segment"))
        .collect();
    assert!(contents.iter().all(|content| content.len() == BYTES as usize));
    assert!(contents[0].iter().all(|byte| *byte == 7));
    assert!(contents[1][BLOCK..].iter().all(|byte| *byte == 0));
    assert!(contents[2].iter().all(|byte| *byte == 7));
    assert_eq!(segments(&after).len(), 3);
    assert_eq!(shared.stats.recycled_segments.get(), 3);
}

#[test]
fn surplus_and_failed_files_are_removed() {
    let disk = Disk::new(1);
    let shared = keeper(&disk);
    for number in 0..10 {
        let name = format!("old{number}");
        disk.put(&name, vec![7; BYTES as usize]);
        shared.pool.give_back(Unused { name, sound: number != 0 });
    }
    work(&shared);
    let names = segments(&disk.power_cut());
    assert_eq!(names.len(), shared.options.segments_ready + KEPT_MORE);
    assert!(names.iter().all(|name| !name.starts_with("old")));
    assert_eq!(shared.stats.freed_segments.get(), 10);
}

#[test]
fn files_that_the_log_will_need_again_are_kept() {
    let disk = Disk::new(1);
    let shared = keeper_of_log(&disk, 7 * u64::from(BYTES));
    for number in 0..10 {
        let name = format!("old{number}");
        disk.put(&name, vec![7; BYTES as usize]);
        shared.pool.give_back(unused(&name));
    }
    work(&shared);
    assert_eq!(segments(&disk).len(), 7);
    assert_eq!(shared.stats.recycled_segments.get(), 7);
}

#[test]
fn an_unzeroed_segment_is_left_once_another_is_prepared() {
    let disk = Disk::new(1);
    let options = Options { segment_bytes: BYTES, ..Options::default() };
    let opened = Journal::open_on(disk.clone(), options).expect("opened");
    let (mut committer, mut writer) = (opened.committer, opened.journal.writer());
    let shared = Arc::clone(&committer.shared);
    // Segments are prepared only by explicit calls.
    committer.is_threaded = true;
    let mut keys = 0..;
    let mut commit = || {
        let (queue, key) = (QueueId::COMMON, &[keys.next().unwrap_or(0)][..]);
        let record = Record::Put { queue, key, version: 0, value: &[], message: None };
        let commit = writer.append(record, Level::Fsynced, Urgency::Forces);
        assert_eq!(committer.step(), Step::Committed(commit));
    };
    commit();
    commit();
    assert_eq!(shared.segments.sum().0, 1);
    work(&shared);
    assert!(shared.pool.has_prepared());
    commit();
    commit();
    assert_eq!(shared.segments.sum().0, 2, "and no further");
    let opened = Journal::open_on(disk.power_cut(), Options::default()).expect("opened");
    assert_eq!(opened.recovered.report().records, 4);
}

#[test]
fn segments_disappear_in_the_order_they_were_released() {
    for seed in 0..300 {
        let disk = Disk::new(seed);
        let shared = keeper(&disk);
        let names: Vec<_> = (0..8).map(|number| format!("old{number}")).collect();
        for name in &names {
            disk.put(name, vec![7; BYTES as usize]);
        }
        for name in &names {
            shared.pool.give_back(unused(name));
        }
        disk.set_faults(Faults { name_error: 0.3, ..Faults::default() });
        for _ in 0..seed % 16 {
            shared.pool.work(&shared);
        }
        let left = segments(&disk.power_cut());
        let there: Vec<_> = names.iter().map(|name| left.contains(name)).collect();
        assert!(there.is_sorted(), "seed {seed}: {there:?}");
    }
}

#[test]
fn a_file_removed_externally_blocks_no_work() {
    let disk = Disk::new(1);
    let shared = keeper(&disk);
    shared.pool.give_back(unused("missing"));
    assert!(shared.pool.take(&shared).is_ok());
    work(&shared);
    assert!(!shared.pool.work(&shared), "no work is left");
}

#[test]
fn files_that_cannot_be_recycled_do_not_delay_the_committer() {
    let disk = Disk::new(1);
    let shared = keeper(&disk);
    for number in 0..100 {
        let name = format!("old{number}");
        disk.put(&name, vec![7; BYTES as usize]);
        shared.pool.give_back(Unused { name, sound: false });
    }
    disk.set_faults(Faults { name_error: 0.8, ..Faults::default() });
    while shared.pool.take(&shared).is_err() {}
    assert!(disk.list().expect("names").iter().any(|name| name.starts_with("old")));
}

/// Two retained messages reserved three segments of 64 MiB.
#[test]
fn segments_grow_with_the_log() {
    let disk = Disk::new(1);
    let options =
        Options { first_segment_bytes: BYTES / 8, segment_bytes: BYTES, ..Options::default() };
    let shared = Journal::open_on(disk.clone(), options.clone()).expect("opened").committer.shared;
    let used = || -> usize {
        let size = |name: &String| disk.content(name).map_or(0, |content| content.len());
        segments(&disk).iter().map(size).sum()
    };
    work(&shared);
    assert_eq!(used(), 2 * BYTES as usize / 8, "two are ready");
    let mut taken = Vec::new();
    for _ in 0..7 {
        taken.push(shared.pool.take(&shared).expect("a segment").bytes);
        work(&shared);
    }
    assert_eq!(taken, [1, 1, 2, 4, 8, 8, 8].map(|eighths| eighths * BYTES / 8));
    // A small file is recycled at the size of the others; a large one keeps its size.
    shared.pool.give_back(unused(&segments(&disk)[0]));
    work(&shared);
    assert_eq!(shared.pool.lock().ready.back().map(|ready| ready.bytes), Some(BYTES));
    drop(shared);
    let shared = Journal::open_on(disk.clone(), options).expect("opened").committer.shared;
    work(&shared);
    assert_eq!(shared.pool.lock().segment_bytes, BYTES / 8, "there is no log");
    assert!(shared.pool.lock().ready.iter().any(|ready| ready.bytes == BYTES), "kept");
}

#[test]
fn a_large_log_continues_with_large_segments() {
    let options = Options::default();
    let mib = |bytes: u64| options.segment_bytes_for(bytes << 20) >> 20;
    assert_eq!([0, 1, 8, 9, 64, 200, 600, 1 << 20].map(mib), [1, 1, 1, 2, 8, 32, 64, 64]);
    let small = Options { segment_bytes: BYTES, ..Options::default() };
    assert_eq!(small.segment_bytes_for(0), BYTES, "the largest size wins over the first");
}
