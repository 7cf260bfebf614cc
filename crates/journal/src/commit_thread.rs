//! The threads that drive a committer: one commits, one prepares segments, one collects garbage.

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

/// With so many records the load is not low: the commit waits for nobody.
const LINGER_RECORDS: u32 = 64;

/// With so many, another commit costs little in comparison: it waits for nothing at all.
const BATCH_RECORDS: u32 = 512;

/// When nobody came while a commit waited for company, so many do not wait.
const ALONE_COMMITS: u32 = 15;

/// What is called with each commit.
type Notify = Arc<dyn Fn(CommitSeq) + Send + Sync>;

/// A committer that runs in threads of its own.
pub struct CommitThread {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    commit: Option<JoinHandle<bool>>,
    keep: Option<JoinHandle<()>>,
    collect: Option<CompactThread>,
}

impl Committer {
    /// Runs in a thread of its own from now on; `notify` is called there after each commit.
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
    /// Commits what there is and ends; false if the disk did not take everything.
    pub fn stop(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        self.collect = None;
        self.stop.store(true, Ordering::Release);
        let mut all = true;
        if let Some(thread) = self.commit.take() {
            thread.thread().unpark();
            // A panic there was told by itself.
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
    /// When to look for what rides. `None`: nothing has been appended since the last look.
    deadline: Option<Instant>,
    /// So many commits do not wait for company.
    alone: u32,
    share: Share,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if thread::panicking() {
            // Nothing will be committed any more: nobody must believe that it will.
            self.committer.shared.troubles.begin(Trouble::CommitFails);
        }
    }
}

impl Driver {
    /// True if everything is committed at the end.
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
        let signal = &self.committer.shared.signal;
        loop {
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
                None => thread::park(),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        // If nothing rides this is the last look before somebody wakes us.
                        self.deadline = None;
                        return false;
                    }
                    thread::park_timeout(left);
                }
            }
        }
    }

    /// Waits for company: briefly, as long as that proves to be worth it, and longer while commits
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
                // The frame that is held is not among what the writers have.
                self.committer.shared.signal.force();
                return true;
            }
            thread::park_timeout(left);
        }
    }

    /// The disk failed and the journal is to stop: one more try.
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

/// What the calling thread and its process have used of processors.
fn used() -> Used {
    let of = |clock| {
        let time = clock_gettime(clock);
        // Invariant: nobody has used less than nothing.
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    Used { thread: of(ClockId::ThreadCPUTime), process: of(ClockId::ProcessCPUTime) }
}

/// By default the system lets a sleep take 50 us longer.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn minimise_timer_slack() {
    // Where it is not allowed, commits linger a little longer.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// The system's sleeps are as they are.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn minimise_timer_slack() {}

#[cfg(test)]
mod tests;
