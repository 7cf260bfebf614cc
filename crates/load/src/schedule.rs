//! The schedule of a stream: absolute intended times in nanoseconds, without drift.
//!
//! Intended times are computed from the number of a message and not by adding periods, so that
//! rounding errors never accumulate. The exception is JMeter's pacing, which is defined relative to
//! the previous sample.

use crate::plan::{CatchUp, Pace, PhasePolicy, Scale};

mod even;
mod jmeter;
mod poisson;
mod trace;

use even::Even;
use jmeter::{Jmeter, ThreadGroup};
use poisson::Poisson;
use trace::Traced;

/// The schedule of one stream.
#[derive(Debug, Clone)]
pub struct Schedule {
    pattern: Pattern,
    /// Intended time of the next message; `u64::MAX` when none is due.
    next_ns: u64,
    /// Number of the next message.
    next: u64,
}

#[derive(Debug, Clone)]
enum Pattern {
    Even(Even),
    Poisson(Box<Poisson>),
    Trace(Box<Traced>),
    Jmeter(Box<Jmeter>),
}

/// The place of a stream within its block.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Its position.
    pub ordinal: u64,
    /// Number of streams in the block.
    pub siblings: u64,
    /// Seed of the block's random numbers.
    pub seed: u64,
}

impl Schedule {
    /// The schedule of a stream at `pace`, its rate multiplied by `scale`, from `start_ns` on.
    /// `acknowledged`: its messages have acknowledgements. `None` in closed mode, which has no
    /// schedule.
    pub fn new(
        start_ns: u64,
        pace: &Pace,
        scale: Scale,
        place: Place,
        acknowledged: bool,
    ) -> Option<Self> {
        let pattern = match pace {
            Pace::Open { rate, phase, .. } => Pattern::Even(Even::new(
                start_ns,
                *rate,
                1,
                scale,
                StartOffset::from_policy(*phase, place),
            )),
            Pace::Bursts { messages, period_ns, phase, .. } => {
                let rate = crate::plan::Rate::every_ns(*period_ns);
                let phase = StartOffset::from_policy(*phase, place);
                Pattern::Even(Even::new(start_ns, rate, u64::from(*messages), scale, phase))
            }
            Pace::Poisson { rate, .. } => {
                Pattern::Poisson(Box::new(Poisson::new(start_ns, *rate, scale, place)))
            }
            Pace::Trace { trace, .. } => {
                Pattern::Trace(Box::new(Traced::new(start_ns, trace, scale, place)))
            }
            Pace::Jmeter { per_minute, threads, ramp_ns, wait } => {
                let per_minute = per_minute * scale.factor();
                let group =
                    ThreadGroup { threads: u64::from(*threads), ramp_ns: *ramp_ns, per_minute };
                let wait = *wait && acknowledged;
                Pattern::Jmeter(Box::new(Jmeter::new(start_ns, group, place, wait)))
            }
            Pace::Closed { .. } => return None,
        };
        let mut schedule = Self { pattern, next_ns: 0, next: 0 };
        schedule.next_ns = schedule.pattern.next_ns(0);
        Some(schedule)
    }

    /// Intended time of the next message; `u64::MAX` when none is due, temporarily or permanently.
    #[inline]
    pub const fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next message if it is due at `now_ns`.
    #[inline]
    pub fn take(&mut self, now_ns: u64, catch_up: CatchUp) -> Option<Due> {
        if self.next_ns > now_ns {
            return None;
        }
        let mut skipped = 0;
        if catch_up == CatchUp::Skip {
            skipped = self.remaining_before(now_ns + 1) - 1;
            if skipped > 0 {
                self.skip(skipped);
            }
        }
        let intended_ns = self.next_ns;
        self.pattern.taken(now_ns);
        self.next += 1;
        self.next_ns = self.pattern.next_ns(self.next);
        Some(Due { intended_ns, skipped })
    }

    /// The message taken last was acknowledged; true if the next one was waiting for it.
    pub fn acknowledged(&mut self, now_ns: u64) -> bool {
        let Pattern::Jmeter(jmeter) = &mut self.pattern else { return false };
        let waited = jmeter.acknowledged(now_ns);
        self.next_ns = jmeter.next_ns();
        waited
    }

    /// Skips the next `count` messages.
    pub fn skip(&mut self, count: u64) {
        self.next += count;
        match &mut self.pattern {
            Pattern::Even(_) | Pattern::Trace(_) => {}
            Pattern::Poisson(poisson) => poisson.skip(count),
            Pattern::Jmeter(jmeter) => (0..count).for_each(|_| jmeter.skip()),
        }
        self.next_ns = self.pattern.next_ns(self.next);
    }

    /// The backlog: messages due before `end_ns` and not taken. At most one with JMeter's pacing.
    pub fn remaining_before(&self, end_ns: u64) -> u64 {
        if end_ns <= self.next_ns {
            return 0;
        }
        match &self.pattern {
            Pattern::Even(even) => even.due_before(end_ns) - self.next,
            Pattern::Poisson(poisson) => poisson.due_before(end_ns),
            Pattern::Trace(trace) => trace.due_before(self.next, end_ns) - self.next,
            Pattern::Jmeter(_) => 1,
        }
    }
}

impl Pattern {
    #[inline]
    fn next_ns(&self, next: u64) -> u64 {
        match self {
            Self::Even(even) => even.due_ns(next),
            Self::Poisson(poisson) => poisson.next_ns(),
            Self::Trace(trace) => trace.due_ns(next),
            Self::Jmeter(jmeter) => jmeter.next_ns(),
        }
    }

    /// The next message is taken.
    #[inline]
    fn taken(&mut self, now_ns: u64) {
        match self {
            Self::Even(_) | Self::Trace(_) => {}
            Self::Poisson(poisson) => poisson.skip(1),
            Self::Jmeter(jmeter) => jmeter.taken(now_ns),
        }
    }
}

/// A message that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its intended time.
    pub intended_ns: u64,
    /// Earlier messages that the catch-up policy dropped.
    pub skipped: u64,
}

/// The offset of a stream's first message: a fraction of its period, plus a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartOffset {
    num: u64,
    den: u64,
    after_ns: u64,
}

impl StartOffset {
    pub(crate) fn from_policy(policy: PhasePolicy, place: Place) -> Self {
        let Place { ordinal, siblings, seed } = place;
        let part = |num, den| Self { num, den, after_ns: 0 };
        match policy {
            PhasePolicy::Uniform => part(ordinal, siblings.max(1)),
            PhasePolicy::Random => {
                let mut rng =
                    fastrand::Rng::with_seed(seed ^ ordinal.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                part(rng.u64(..1 << 32), 1 << 32)
            }
            PhasePolicy::Aligned => part(0, 1),
            PhasePolicy::Ramp { step_ns } => {
                Self { num: 0, den: 1, after_ns: ordinal.saturating_mul(step_ns) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
