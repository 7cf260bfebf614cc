//! Time and memory that a journal takes to open: 1,000 queues with 1,000 messages of
//! 256 bytes each, with an entry each.
//!
//! ```sh
//! cargo run --release -p tacho-journal --example recovery -- DIRECTORY fill
//! cargo run --release -p tacho-journal --example recovery -- DIRECTORY open
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tacho_journal::{
    CommitSeq, Journal, Level, MessageId, Opened, Options, QueueId, Record, Urgency, Visitor,
};
use tacho_testkit::memory::{resident_bytes, resident_bytes_max};

const QUEUES: u64 = 1_000;
const MESSAGES: u64 = 1_000;
const BYTES: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [directory, what] if what == "fill" => fill(Path::new(directory)),
        [directory, what] if what == "open" => open(Path::new(directory)),
        _ => Err("name a directory, and `fill` or `open`".into()),
    }
}

fn fill(directory: &Path) -> Result<(), Box<dyn Error>> {
    let Opened { journal, committer, .. } = Journal::open(directory, Options::default())?;
    let thread = committer.spawn(Arc::new(|_: CommitSeq| {}))?;
    let mut writer = journal.writer();
    let body = [7; BYTES];
    for seq in 0..MESSAGES {
        for queue in 1..=QUEUES {
            let id = journal.new_message_id();
            let level = Level::Written;
            writer.append(Record::Message { id, body: &[&body] }, level, Urgency::Rides);
            let queue = QueueId::new(queue);
            let entry = Record::Entry { queue, seq, message: id, state: 0, meta: &[1; 12] };
            writer.append(entry, level, Urgency::Forces);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    thread.stop();
    Ok(())
}

#[derive(Default)]
struct Count {
    keys: u64,
    entries: u64,
}

impl Visitor for Count {
    fn key(&mut self, _: QueueId, _: &[u8], _: u64, _: &[u8], _: Option<(MessageId, &[u8])>) {
        self.keys += 1;
    }

    fn entry(&mut self, _: QueueId, _: u64, _: Option<MessageId>, _: u32, _: &[u8]) {
        self.entries += 1;
    }

    fn open(&mut self, _: MessageId, _: &[u8], _: &[u8], _: &[QueueId]) {}
}

fn open(directory: &Path) -> Result<(), Box<dyn Error>> {
    let begin = clock_gettime(ClockId::Monotonic);
    let Opened { journal, mut recovered, .. } = Journal::open(directory, Options::default())?;
    let opened = clock_gettime(ClockId::Monotonic);
    let mut count = Count::default();
    recovered.visit(&mut count)?;
    let visited = clock_gettime(ClockId::Monotonic);
    let report = recovered.report();
    println!(
        "{} segments, {} commits, {} records; {} entries, {} keys",
        report.segments, report.frames, report.records, count.entries, count.keys
    );
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    println!("opened in {:.0} ms", ms((opened - begin).try_into()?));
    println!("shown in {:.0} ms", ms((visited - opened).try_into()?));
    let mib = |bytes: u64| bytes / (1 << 20);
    println!("{} MiB resident, {} MiB at most", mib(resident_bytes()), mib(resident_bytes_max()));
    drop(journal);
    Ok(())
}
