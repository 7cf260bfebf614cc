//! Keeps commits from taking too much of a processor that shards need.
//!
//! A commit costs the same few tens of microseconds whether it takes one record or a hundred. When
//! thousands are due every second, fewer and larger ones leave more for everybody else.

use std::time::{Duration, Instant};

/// What commits may take of one processor: one part of so many.
const PARTS: u32 = 10;

/// What was not taken may be taken later, up to this.
const CREDIT_MAX: Duration = Duration::from_millis(5);

/// The commit thread's share of a processor.
pub(super) struct Share {
    /// What may be taken at once.
    credit: Duration,
    /// What was taken beyond that.
    debt: Duration,
    /// When it was last looked at, and what the thread had taken then.
    at: Instant,
    cpu: Duration,
}

impl Share {
    pub(super) fn new(now: Instant, cpu: Duration) -> Self {
        Self { credit: CREDIT_MAX, debt: Duration::ZERO, at: now, cpu }
    }

    /// How long the next commit should wait, at most `max`. `cpu` is what the thread has taken.
    pub(super) fn pause(&mut self, now: Instant, cpu: Duration, max: Duration) -> Duration {
        let earned = now.saturating_duration_since(self.at) / PARTS;
        let taken = cpu.saturating_sub(self.cpu);
        (self.at, self.cpu) = (now, cpu);
        let has = self.credit + earned;
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

    #[test]
    fn few_commits_wait_for_nothing() {
        let begin = Instant::now();
        let mut share = Share::new(begin, Duration::ZERO);
        for commit in 1..1000 {
            // 80 us each, every millisecond: less than a tenth.
            let pause = share.pause(begin + us(1000 * commit), us(80 * commit), MAX);
            assert_eq!(pause, Duration::ZERO);
        }
    }

    #[test]
    fn many_commits_take_a_tenth() {
        let begin = Instant::now();
        let mut share = Share::new(begin, Duration::ZERO);
        let mut now = begin;
        let mut commits = 0;
        while now < begin + Duration::from_secs(1) {
            commits += 1;
            now += us(150);
            now += share.pause(now, us(80 * commits), MAX);
        }
        // A tenth of a second, and what had not been taken before.
        let taken = us(80 * commits);
        assert!(taken > us(95_000) && taken < us(110_000), "{taken:?}");
    }

    #[test]
    fn a_burst_is_let_through_and_nobody_waits_longer_than_the_longest_wait() {
        let begin = Instant::now();
        let mut share = Share::new(begin, Duration::ZERO);
        assert_eq!(share.pause(begin, us(4000), MAX), Duration::ZERO);
        assert_eq!(share.pause(begin, us(90_000), MAX), MAX);
        assert_eq!(share.pause(begin + MAX, us(90_000), MAX), Duration::ZERO);
    }
}
