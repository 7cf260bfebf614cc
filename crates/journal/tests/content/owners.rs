//! Two processes at one data directory: a second one is kept out, and what the first one writes
//! after it was not is found.

use tacho_journal::sim::Disk;
use tacho_journal::{Inspection, Level, Options, Problem, QueueId, Record, Urgency};

use super::{Bench, options};

const QUEUE: QueueId = QueueId::new(7);

/// No compaction, and room for everything in the first segment.
fn roomy() -> Options {
    Options { segment_bytes: 1 << 20, log_bytes_min: u64::MAX, ..options() }
}

fn publish(bench: &mut Bench, seq: u64, body: &[u8]) {
    let message = bench.message(body);
    bench.entry(QUEUE, seq, message);
    bench.commit();
}

fn problems(disk: &Disk) -> Vec<Problem> {
    Inspection::open_on(disk).expect("can be read").check()
}

#[test]
fn commits_of_a_process_whose_directory_was_taken_over_are_found() {
    let disk = Disk::new(1);
    let mut first = Bench::open_with(disk.clone(), 1, roomy());
    for seq in 0..5 {
        publish(&mut first, seq, b"of the first alone");
    }
    let mut second = Bench::open_with(disk.clone(), 1, roomy());
    assert_eq!(second.seen().entries.len(), 5);
    assert_eq!(problems(&disk), [], "nothing was written yet");
    publish(&mut second, 100, b"of the second");
    assert_eq!(problems(&disk), [], "the first one was silent since");
    for seq in 5..12 {
        publish(&mut first, seq, b"of the first, taken over");
    }
    let found = problems(&disk);
    let [Problem::Foreign(foreign)] = &found[..] else { panic!("{found:?}") };
    assert!(foreign.to_string().contains("7 commits (6 to 12)"), "{foreign}");
    // The next start says so, keeps a copy, and goes on with what the second has written.
    let mut third = Bench::open_with(disk.kill(), 1, roomy());
    let report = third.recovered.report();
    assert_eq!((report.foreign.len(), report.quarantined.len()), (1, 1), "{report:?}");
    let seen: Vec<u64> = third.seen().entries.keys().map(|(_, seq)| *seq).collect();
    assert_eq!(seen, [0, 1, 2, 3, 4, 100]);
}

#[test]
fn commits_that_are_written_again_are_not_taken_for_those_of_another_process() {
    let mut bench = Bench::open_with(Disk::new(2), 1, roomy());
    for start in 0..6 {
        for seq in 0..3 {
            let id = bench.journal.new_message_id();
            let body = Record::Message { id, body: &[b"body"] };
            bench.writers[0].append(body, Level::Written, Urgency::Forces);
            let message = id;
            let seq = 10 * start + seq;
            let record = Record::Entry { queue: QUEUE, seq, message, state: 0, meta: b"" };
            // Not synced: the next process writes it again.
            bench.writers[0].append(record, Level::Written, Urgency::Forces);
            bench.steps(1);
        }
        assert_eq!(problems(&bench.disk), [], "start {start}");
        let disk = bench.disk.kill();
        bench = Bench::open_with(disk, 1, roomy());
        assert_eq!(bench.recovered.report().foreign, []);
    }
    assert_eq!(bench.seen().entries.len(), 18);
}
