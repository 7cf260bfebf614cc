//! Keeps commits from taking too much of a processor that shards need.
//!
//! A commit costs the same hundred microseconds whether it takes one record or a hundred. When
//! thousands are due every second, fewer and larger ones leave more for everybody else. What nobody
//! has used may be taken in part.

use std::time::{Duration, Instant};

/// What commits may take of one processor: one part of so many.
const PARTS: u32 = 10;

/// And what they may take beside, of the time in which the whole process used none.
const IDLE_PARTS: u32 = 4;

/// What was not taken may be taken later, up to this.
const CREDIT_MAX: Duration = Duration::from_millis(5);

/// What was used of processors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// By the commit thread.
    pub(super) thread: Duration,
    /// By the whole process.
    pub(super) process: Duration,
}

/// The commit thread's share of a processor.
pub(super) struct Share {
    /// What may be taken at once.
    credit: Duration,
    /// What was taken beyond that.
    debt: Duration,
    /// When it was last looked at, and what was used then.
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
        // What a wait of `max` cannot pay back is forgiven.
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

    /// Used by the commit thread, and by the process in which nobody rests.
    fn used(thread_us: u64, elapsed: Duration) -> Used {
        Used { thread: us(thread_us), process: elapsed }
    }

    #[test]
    fn few_commits_wait_for_nothing() {
        let begin = Instant::now();
        let mut share = Share::new(begin, used(0, us(0)));
        for commit in 1..1000 {
            // 80 us each, every millisecond: less than a tenth.
            let elapsed = us(1000 * commit);
            let pause = share.pause(begin + elapsed, used(80 * commit, elapsed), MAX);
            assert_eq!(pause, Duration::ZERO);
        }
    }

    /// What commits take in a second that are due all the time, if the process rests for so many
    /// parts of a hundred beside them.
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
    fn many_commits_take_a_tenth_and_a_part_of_what_is_left() {
        // And what had not been taken before.
        let busy = taken_us(0);
        assert!(busy > 95_000 && busy < 110_000, "{busy}");
        let idle = taken_us(60);
        assert!(idle > 240_000 && idle < 260_000, "{idle}");
    }

    #[test]
    fn a_burst_is_let_through_and_nobody_waits_longer_than_the_longest_wait() {
        let begin = Instant::now();
        let mut share = Share::new(begin, used(0, us(0)));
        assert_eq!(share.pause(begin, used(4000, us(0)), MAX), Duration::ZERO);
        assert_eq!(share.pause(begin, used(90_000, us(0)), MAX), MAX);
        assert_eq!(share.pause(begin + MAX, used(90_000, MAX), MAX), Duration::ZERO);
    }
}
