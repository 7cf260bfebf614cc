//! JMeter's constant throughput timer.
//!
//! Before each sample a thread adds `round(active x 60000 / per_minute)` ms to the time of its
//! previous sample and sleeps until then; if that time has passed, it continues at once and counts
//! from now. Its first sample is not delayed.

use super::Place;
use crate::plan::jmeter_delay_ms;

const MS: u64 = 1_000_000;

/// A JMeter thread group, as far as its pacing depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadGroup {
    pub(super) threads: u64,
    pub(super) ramp_ns: u64,
    pub(super) per_minute: f64,
}

#[derive(Debug, Clone)]
pub(super) struct Jmeter {
    /// When the first thread of the group starts.
    origin_ns: u64,
    /// Time between the starts of consecutive threads.
    step_ns: u64,
    threads: u64,
    per_minute: f64,
    wait: bool,
    /// Time of the last sample, as the timer counts it.
    previous_ns: u64,
    next_ns: u64,
    waiting: bool,
}

impl Jmeter {
    pub(super) fn new(start_ns: u64, group: ThreadGroup, place: Place, wait: bool) -> Self {
        let threads = group.threads.max(1);
        let step_ns = (group.ramp_ns as f64 / 1e6 / threads as f64).round() as u64 * MS;
        let next_ns = start_ns.saturating_add(place.ordinal % threads * step_ns);
        Self {
            origin_ns: start_ns,
            step_ns,
            threads,
            per_minute: group.per_minute,
            wait,
            previous_ns: 0,
            next_ns,
            waiting: false,
        }
    }

    pub(super) const fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The sample begins.
    pub(super) fn taken(&mut self, now_ns: u64) {
        if self.previous_ns == 0 {
            self.previous_ns = now_ns;
        }
        if self.wait {
            (self.waiting, self.next_ns) = (true, u64::MAX);
        } else {
            self.end(now_ns);
        }
    }

    pub(super) fn acknowledged(&mut self, now_ns: u64) -> bool {
        let waited = std::mem::replace(&mut self.waiting, false);
        if waited {
            self.end(now_ns);
        }
        waited
    }

    /// A sample that failed at its intended time.
    pub(super) fn skip(&mut self) {
        if self.next_ns != u64::MAX {
            let at_ns = self.next_ns;
            if self.previous_ns == 0 {
                self.previous_ns = at_ns;
            }
            self.end(at_ns);
        }
    }

    /// Ends the sample and schedules the next one.
    fn end(&mut self, now_ns: u64) {
        let started = now_ns.saturating_sub(self.origin_ns).checked_div(self.step_ns);
        let active = started.map_or(self.threads, |started| (started + 1).min(self.threads));
        let delay_ns = jmeter_delay_ms(active, self.per_minute).saturating_mul(MS);
        self.previous_ns = self.previous_ns.saturating_add(delay_ns).max(now_ns);
        self.next_ns = self.previous_ns;
    }
}
