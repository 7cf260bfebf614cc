//! Limits the share of a processor that commits take.
//!
//! A commit costs about a hundred microseconds for one record as for a hundred. When thousands are
//! due every second, fewer and larger ones leave more processor time for the shards. A part of the
//! idle time may be used in addition.

use std::time::{Duration, Instant};

/// Commits may take one part of this many of one processor.
const PARTS: u32 = 10;

/// And in addition one part of this many of the time in which the process used no processor.
const IDLE_PARTS: u32 = 4;

/// Unused time is saved up to this.
const CREDIT_MAX: Duration = Duration::from_millis(5);

/// Processor time used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// By the commit thread.
    pub(super) thread: Duration,
    /// By the whole process.
    pub(super) process: Duration,
}

/// The commit thread's share of a processor.
pub(super) struct Share {
    /// Time that may be taken at once.
    credit: Duration,
    /// Time that was taken beyond the credit.
    debt: Duration,
    /// The time of the last calculation, and the usage then.
    at: Instant,
    used: Used,
}

impl Share {
    pub(super) fn new(now: Instant, used: Used) -> Self {
        Self { credit: CREDIT_MAX, debt: Duration::ZERO, at: now, used }
    }

    /// How long the next commit should wait, at most `max`.
    pub(super) fn pause(&mut self, now: Instant, used: Used, max: Duration) -> Duration {
        let elapsed = now.saturating_duration_since(self.at);
        let taken = used.thread.saturating_sub(self.used.thread);
        let idle = elapsed.saturating_sub(used.process.saturating_sub(self.used.process));
        (self.at, self.used) = (now, used);
        let has = self.credit + elapsed / PARTS + idle / IDLE_PARTS;
        let owes = self.debt + taken;
        self.credit = has.saturating_sub(owes).min(CREDIT_MAX);
        // Debt beyond a wait of `max` is dropped.
        self.debt = owes.saturating_sub(has).min(max / PARTS);
        self.debt * PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(1);

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// Used by the commit thread, and by a process that is never idle.
    fn used(thread_us: u64, elapsed: Duration) -> Used {
        Used { thread: us(thread_us), process: elapsed }
    }

    #[test]
    fn rare_commits_do_not_wait() {
        let begin = Instant::now();
        let mut share = Share::new(begin, used(0, us(0)));
        for commit in 1..1000 {
            // 80 us each, every millisecond: less than a tenth.
            let elapsed = us(1000 * commit);
            let pause = share.pause(begin + elapsed, used(80 * commit, elapsed), MAX);
            assert_eq!(pause, Duration::ZERO);
        }
    }

    /// Processor time per second of commits that are due all the time, if the process is idle for
    /// this percentage beside them.
    fn taken_us(idle_percent: u32) -> u64 {
        let begin = Instant::now();
        let mut share = Share::new(begin, used(0, us(0)));
        let mut now = begin;
        let mut commits = 0;
        while now < begin + Duration::from_secs(1) {
            commits += 1;
            now += us(150);
            let process = (now - begin) * (100 - idle_percent) / 100;
            now += share.pause(now, Used { thread: us(80 * commits), process }, MAX);
        }
        80 * commits
    }

    #[test]
    fn frequent_commits_take_a_tenth_and_a_part_of_the_idle_time() {
        // Plus the credit from before.
        let busy = taken_us(0);
        assert!(busy > 95_000 && busy < 110_000, "{busy}");
        let idle = taken_us(60);
        assert!(idle > 240_000 && idle < 260_000, "{idle}");
    }

    #[test]
    fn a_burst_does_not_wait_and_no_wait_exceeds_the_maximum() {
        let begin = Instant::now();
        let mut share = Share::new(begin, used(0, us(0)));
        assert_eq!(share.pause(begin, used(4000, us(0)), MAX), Duration::ZERO);
        assert_eq!(share.pause(begin, used(90_000, us(0)), MAX), MAX);
        assert_eq!(share.pause(begin + MAX, used(90_000, MAX), MAX), Duration::ZERO);
    }
}
