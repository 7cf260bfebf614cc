//! Throughput of the journal on this disk: messages with one entry each, at full speed and at a
//! fixed rate, with the disk's own sync latency measured in between.
//!
//! ```sh
//! cargo run --release -p tacho-journal --example throughput -- DIRECTORY [SECONDS]
//! ```

use std::collections::VecDeque;
use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tacho_journal::{
    CommitSeq, CommitThread, Journal, Level, Opened, Options, QueueId, Record, Urgency, Writer,
};

/// Messages awaiting their commit at full speed: 100 publishers with 16 each.
const WINDOW: usize = 1600;

/// An entry is removed after this many further messages.
const QUEUED: u64 = 10_000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        return Err("usage: throughput DIRECTORY [SECONDS]".into());
    };
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory)?;
    println!("case                msg/s  cpu us/msg  p50 us  p99 us  commits/s  written/payload");
    let mut disk = Disk::new(directory)?;
    disk.measure()?;
    for bytes in [32, 1024] {
        for rate in [None, Some(15_000)] {
            let name = rate.map_or_else(|| "full".to_owned(), |rate| format!("{rate}/s"));
            let case = Case { bytes, rate, time: Duration::from_secs(seconds) };
            println!("{:18} {}", format!("{bytes} B {name}"), case.run(directory)?);
            disk.measure()?;
        }
    }
    println!("disk, 4 KiB and fdatasync: p50 {} us, p99 {} us", disk.share(0.5), disk.share(0.99));
    Ok(())
}

/// Latency of the smallest possible commit on this disk.
struct Disk {
    file: File,
    at: u64,
    us: Vec<u64>,
}

impl Disk {
    const BYTES: u64 = 16 << 20;

    fn new(directory: &Path) -> Result<Self> {
        let path = directory.join("zeros");
        let file = File::options().create(true).truncate(true).write(true).open(path)?;
        for at in (0..Self::BYTES).step_by(1 << 20) {
            file.write_all_at(&[0; 1 << 20], at)?;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0, us: Vec::new() })
    }

    fn measure(&mut self) -> Result<()> {
        for _ in 0..1000 {
            let begin = Instant::now();
            self.file.write_all_at(&[1; 4096], self.at)?;
            self.file.sync_data()?;
            self.us.push(begin.elapsed().as_micros() as u64);
            self.at = (self.at + 4096) % Self::BYTES;
        }
        Ok(())
    }

    fn share(&mut self, share: f64) -> u64 {
        quantile(&mut self.us, share)
    }
}

fn quantile(values: &mut [u64], share: f64) -> u64 {
    values.sort_unstable();
    let index = (values.len() as f64 * share) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or(0)
}

struct Case {
    bytes: usize,
    /// Messages per second; `None`: as many as are committed.
    rate: Option<u64>,
    time: Duration,
}

/// State reported by the commit thread.
#[derive(Default)]
struct Reported {
    commits: VecDeque<(CommitSeq, Instant)>,
    cpu: Duration,
}

/// One producer.
struct Producer {
    journal: Journal,
    writer: Writer,
    queue: QueueId,
    body: Vec<u8>,
    sent: u64,
    /// Messages whose commit is not complete, and when they were appended.
    waiting: VecDeque<(CommitSeq, Instant)>,
    reported: Arc<Mutex<Reported>>,
    latencies_us: Vec<u64>,
}

impl Case {
    fn run(&self, directory: &Path) -> Result<String> {
        let directory = directory.join("journal");
        let Opened { journal, committer, .. } = Journal::open(&directory, Options::default())?;
        let reported = Arc::new(Mutex::new(Reported::default()));
        let sink = Arc::clone(&reported);
        let threads = committer.spawn(Arc::new(move |commit| {
            let cpu = clock_gettime(ClockId::ThreadCPUTime);
            // Invariant: no thread panics while it holds this lock.
            let mut reported = sink.lock().expect("no panic under the lock");
            reported.cpu = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32);
            reported.commits.push_back((commit, Instant::now()));
        }))?;
        // Gives the keeper time to prepare segments, as in a broker that has just started.
        thread::sleep(Duration::from_secs(1));
        let mut producer = Producer {
            writer: journal.writer(),
            queue: journal.new_queue_id(),
            journal,
            body: vec![b'x'; self.bytes],
            sent: 0,
            waiting: VecDeque::new(),
            reported,
            latencies_us: Vec::new(),
        };
        let begin = Instant::now();
        while begin.elapsed() < self.time {
            let due = self.rate.map(|rate| begin.elapsed().as_micros() as u64 * rate / 1_000_000);
            producer.turn(due);
        }
        let line = producer.line(begin.elapsed());
        finish(threads, &directory)?;
        Ok(line)
    }
}

fn finish(threads: CommitThread, directory: &Path) -> Result<()> {
    if !threads.stop() {
        return Err("the journal could not commit everything".into());
    }
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

impl Producer {
    /// Appends the due messages, and sleeps when idle.
    fn turn(&mut self, due: Option<u64>) {
        self.collect();
        let before = self.sent;
        // Like a turn of a shard, which handles a bounded number of packets.
        for _ in 0..64 {
            if self.waiting.len() >= WINDOW || due.is_some_and(|due| self.sent >= due) {
                break;
            }
            self.append();
        }
        if self.sent == before {
            thread::sleep(Duration::from_micros(50));
        }
    }

    fn append(&mut self) {
        self.sent += 1;
        let id = self.journal.new_message_id();
        let message = Record::Message { id, body: &[&self.body] };
        let entry = Record::Entry {
            queue: self.queue,
            seq: self.sent,
            message: id,
            state: 0,
            meta: &[1, 2, 3, 4],
        };
        self.writer.append(message, Level::Fsynced, Urgency::Rides);
        let commit = self.writer.append(entry, Level::Fsynced, Urgency::Forces);
        self.waiting.push_back((commit, Instant::now()));
        if self.sent > QUEUED {
            let remove = Record::Remove { queue: self.queue, seq: self.sent - QUEUED };
            self.writer.append(remove, Level::Fsynced, Urgency::Rides);
        }
    }

    fn collect(&mut self) {
        // Invariant: no thread panics while it holds this lock.
        let mut reported = self.reported.lock().expect("no panic under the lock");
        while let Some((committed, at)) = reported.commits.pop_front() {
            while let Some((_, since)) =
                self.waiting.pop_front_if(|(commit, _)| *commit <= committed)
            {
                self.latencies_us.push(at.saturating_duration_since(since).as_micros() as u64);
            }
        }
    }

    fn line(&mut self, took: Duration) -> String {
        self.collect();
        let done = self.latencies_us.len() as f64;
        let cpu = self.reported.lock().map_or(Duration::ZERO, |reported| reported.cpu);
        let stats = self.journal.stats();
        let written = stats.written_bytes.get() as f64 / stats.body_bytes.get() as f64;
        format!(
            "{:7.0}  {:10.2}  {:6}  {:6}  {:9.0}  {:15.2}",
            done / took.as_secs_f64(),
            cpu.as_secs_f64() * 1e6 / done,
            quantile(&mut self.latencies_us, 0.5),
            quantile(&mut self.latencies_us, 0.99),
            stats.commits.get() as f64 / took.as_secs_f64(),
            written,
        )
    }
}
