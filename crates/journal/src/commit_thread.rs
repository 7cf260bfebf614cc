//! The threads of a journal: one commits, one prepares segments, one compacts.

mod share;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::committer::{Committer, Step};
use crate::compaction::CompactThread;
use crate::id::CommitSeq;
use crate::options::Options;
use crate::shared::Shared;
use crate::troubles::Trouble;
use share::{Share, Used};

/// From this many records on the load is not low: the commit does not wait for more records.
const LINGER_RECORDS: u32 = 64;

/// From this many records on a commit is cheap in comparison: it never waits.
const BATCH_RECORDS: u32 = 512;

/// After a commit that waited in vain for more records, this many commits do not wait.
const ALONE_COMMITS: u32 = 15;

/// Without commits the thread looks after the data directory at this interval.
const IDLE: Duration = Duration::from_secs(1);

/// Called with each completed commit.
type Notify = Arc<dyn Fn(CommitSeq) + Send + Sync>;

/// A committer that runs in its own threads.
pub struct CommitThread {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    commit: Option<JoinHandle<bool>>,
    keep: Option<JoinHandle<()>>,
    collect: Option<CompactThread>,
}

impl Committer {
    /// Runs in its own threads from now on; `notify` is called after each commit.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn spawn(mut self, notify: Notify) -> io::Result<CommitThread> {
        let shared = Arc::clone(&self.shared);
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = CommitThread {
            shared: Arc::clone(&shared),
            stop: Arc::clone(&stop),
            commit: None,
            keep: None,
            collect: None,
        };
        shared.pool.set_threaded();
        self.is_threaded = true;
        let keeper = move || shared.pool.run(&shared);
        threads.keep = Some(thread::Builder::new().name("journal-keep".to_owned()).spawn(keeper)?);
        threads.collect = Some(CompactThread::spawn(Arc::clone(&threads.shared))?);
        let commit = move || {
            let share = Share::new(Instant::now(), used());
            let driver = Driver { committer: self, notify, stop, deadline: None, alone: 0, share };
            driver.run()
        };
        threads.commit = Some(thread::Builder::new().name("journal".to_owned()).spawn(commit)?);
        Ok(threads)
    }
}

impl CommitThread {
    /// Commits all appended records and ends; false if not all could be written.
    pub fn stop(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        self.collect = None;
        self.stop.store(true, Ordering::Release);
        let mut all = true;
        if let Some(thread) = self.commit.take() {
            thread.thread().unpark();
            // The panic hook has reported a panic of that thread.
            all = thread.join().unwrap_or(false);
        }
        self.shared.pool.stop();
        if let Some(thread) = self.keep.take() {
            all &= thread.join().is_ok();
        }
        all
    }
}

impl Drop for CommitThread {
    fn drop(&mut self) {
        self.end();
    }
}

/// Decides when to commit.
struct Driver {
    committer: Committer,
    notify: Notify,
    stop: Arc<AtomicBool>,
    /// When to commit riding records. `None`: none were appended since the last commit.
    deadline: Option<Instant>,
    /// Number of further commits that do not wait for more records.
    alone: u32,
    share: Share,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if thread::panicking() {
            // No more commits will follow: the condition has to report it.
            self.committer.shared.troubles.begin(Trouble::CommitFails);
        }
    }
}

impl Driver {
    /// True if all appended records are committed at the end.
    fn run(mut self) -> bool {
        if self.committer.shared.signal.attach().is_err() {
            return false;
        }
        minimise_timer_slack();
        loop {
            let stopping = self.wait();
            if !stopping {
                self.linger();
            }
            match self.commit() {
                Step::Idle if stopping => return true,
                Step::Held if !self.pause() => return self.commit_last(),
                _ => {}
            }
        }
    }

    /// Sleeps until a commit is due; true if it is to be the last.
    fn wait(&mut self) -> bool {
        loop {
            let signal = &self.committer.shared.signal;
            if self.stop.load(Ordering::Acquire) {
                return true;
            }
            if signal.is_forced() {
                return false;
            }
            match self.deadline {
                None if signal.is_armed() => {
                    self.deadline = Some(Instant::now() + self.committer.shared.options.ride_max);
                }
                None => {
                    thread::park_timeout(IDLE);
                    // Before the first record that would have to wait.
                    self.committer.is_displaced();
                }
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        // Without riding records the thread sleeps until it is woken.
                        self.deadline = None;
                        return false;
                    }
                    thread::park_timeout(left);
                }
            }
        }
    }

    /// Waits for more records: briefly, as long as that proves useful, and longer while commits
    /// take too much of a processor.
    fn linger(&mut self) {
        let shared = &self.committer.shared;
        let Options { linger, linger_busy, .. } = shared.options;
        let before = shared.buffers.records();
        if !shared.signal.is_forced() || before >= BATCH_RECORDS {
            return;
        }
        let busy = self.share.pause(Instant::now(), used(), linger_busy);
        if !busy.is_zero() {
            thread::sleep(busy.max(linger));
            return;
        }
        if self.alone > 0 {
            self.alone -= 1;
            return;
        }
        if linger.is_zero() || before >= LINGER_RECORDS {
            return;
        }
        thread::sleep(linger);
        if shared.buffers.records() == before {
            self.alone = ALONE_COMMITS;
        }
    }

    fn commit(&mut self) -> Step {
        let signal = &self.committer.shared.signal;
        signal.begin();
        signal.arm(self.deadline.is_some());
        let step = self.committer.step();
        if let Step::Committed(commit) = step {
            self.committer.shared.signal.arm(true);
            self.deadline = Some(Instant::now() + self.committer.shared.options.ride_max);
            (self.notify)(commit);
        }
        step
    }

    /// After a failure: waits before the next try. False when it is time to stop.
    fn pause(&self) -> bool {
        let end = Instant::now() + self.committer.shared.options.retry;
        loop {
            if self.stop.load(Ordering::Acquire) {
                return false;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The pending frame is no longer in the writers' buffers.
                self.committer.shared.signal.force();
                return true;
            }
            thread::park_timeout(left);
        }
    }

    /// The disk has failed and the journal stops: one more try.
    fn commit_last(&mut self) -> bool {
        thread::sleep(self.committer.shared.options.retry.min(Duration::from_secs(1)));
        loop {
            match self.commit() {
                Step::Idle => return true,
                Step::Committed(_) => {}
                Step::Held => return false,
            }
        }
    }
}

/// The processor time of the calling thread and of its process.
fn used() -> Used {
    let time_of = |clock| {
        let time = clock_gettime(clock);
        // Invariant: processor times are not negative.
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    Used { thread: time_of(ClockId::ThreadCPUTime), process: time_of(ClockId::ProcessCPUTime) }
}

/// By default Linux lets a sleep take up to 50 us longer.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn minimise_timer_slack() {
    // If it is not allowed, commits linger a little longer.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Other systems have no such setting.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn minimise_timer_slack() {}

#[cfg(test)]
mod tests;
