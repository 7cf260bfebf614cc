//! When messages are due: an absolute schedule in nanoseconds that never drifts.
//!
//! Due times follow from the number of a message and not from adding up periods, so that
//! rounding never accumulates whatever the rate. The one exception is JMeter's pacing, which is
//! defined by what happened before.

use crate::plan::{CatchUp, Pace, PhasePolicy, Scale};

mod even;
mod jmeter;
mod poisson;
mod trace;

use even::Even;
use jmeter::Jmeter;
use poisson::Poisson;
use trace::Traced;

/// Due times of one stream.
#[derive(Debug, Clone)]
pub struct Schedule {
    kind: Kind,
    /// When the next message is due; `u64::MAX` when none is.
    next_ns: u64,
    /// Number of the next message.
    next: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    Even(Even),
    Poisson(Box<Poisson>),
    Trace(Box<Traced>),
    Jmeter(Box<Jmeter>),
}

/// Which of the streams of its block a stream is.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Its position.
    pub ordinal: u64,
    /// How many there are.
    pub siblings: u64,
    /// Seed of the block's random numbers.
    pub seed: u64,
}

impl Schedule {
    /// A stream at `pace` with its rate times `scale`, from `start_ns` on. `acknowledged` says
    /// whether its messages are. `None` in closed mode, which has no schedule.
    pub fn new(
        start_ns: u64,
        pace: &Pace,
        scale: Scale,
        place: Place,
        acknowledged: bool,
    ) -> Option<Self> {
        let kind = match pace {
            Pace::Open { rate, phase, .. } => {
                Kind::Even(Even::new(start_ns, *rate, 1, scale, Phase::of(*phase, place)))
            }
            Pace::Bursts { messages, period_ns, phase, .. } => {
                let rate = crate::plan::Rate::every_ns(*period_ns);
                let phase = Phase::of(*phase, place);
                Kind::Even(Even::new(start_ns, rate, u64::from(*messages), scale, phase))
            }
            Pace::Poisson { rate, .. } => {
                Kind::Poisson(Box::new(Poisson::new(start_ns, *rate, scale, place)))
            }
            Pace::Trace { trace, .. } => {
                Kind::Trace(Box::new(Traced::new(start_ns, trace, scale, place)))
            }
            Pace::Jmeter { per_minute, threads, ramp_ns, wait } => {
                let per_minute = per_minute * scale.factor();
                let group = (u64::from(*threads), *ramp_ns, per_minute);
                let wait = *wait && acknowledged;
                Kind::Jmeter(Box::new(Jmeter::new(start_ns, group, place, wait)))
            }
            Pace::Closed { .. } => return None,
        };
        let mut schedule = Self { kind, next_ns: 0, next: 0 };
        schedule.next_ns = schedule.kind.next_ns(0);
        Some(schedule)
    }

    /// When the next message is due; `u64::MAX` when none is, for now or for ever.
    #[inline]
    pub const fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the message that is due at `now_ns`, if one is.
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
        self.kind.taken(now_ns);
        self.next += 1;
        self.next_ns = self.kind.next_ns(self.next);
        Some(Due { intended_ns, skipped })
    }

    /// The message taken last was acknowledged; true if the next one waited for that.
    pub fn acknowledged(&mut self, now_ns: u64) -> bool {
        let Kind::Jmeter(jmeter) = &mut self.kind else { return false };
        let waited = jmeter.acknowledged(now_ns);
        self.next_ns = jmeter.next_ns();
        waited
    }

    /// Leaves the next `count` messages out.
    pub fn skip(&mut self, count: u64) {
        self.next += count;
        match &mut self.kind {
            Kind::Even(_) | Kind::Trace(_) => {}
            Kind::Poisson(poisson) => poisson.skip(count),
            Kind::Jmeter(jmeter) => (0..count).for_each(|_| jmeter.skip()),
        }
        self.next_ns = self.kind.next_ns(self.next);
    }

    /// Messages due before `end_ns` that were not taken. JMeter's pacing knows of one at most.
    pub fn remaining_before(&self, end_ns: u64) -> u64 {
        if end_ns <= self.next_ns {
            return 0;
        }
        match &self.kind {
            Kind::Even(even) => even.due_before(end_ns) - self.next,
            Kind::Poisson(poisson) => poisson.due_before(end_ns),
            Kind::Trace(trace) => trace.due_before(self.next, end_ns) - self.next,
            Kind::Jmeter(_) => 1,
        }
    }
}

impl Kind {
    #[inline]
    fn next_ns(&self, next: u64) -> u64 {
        match self {
            Self::Even(even) => even.due_ns(next),
            Self::Poisson(poisson) => poisson.next_ns(),
            Self::Trace(trace) => trace.due_ns(next),
            Self::Jmeter(jmeter) => jmeter.next_ns(),
        }
    }

    /// The next message is being sent.
    #[inline]
    fn taken(&mut self, now_ns: u64) {
        match self {
            Self::Even(_) | Self::Trace(_) => {}
            Self::Poisson(poisson) => poisson.skip(1),
            Self::Jmeter(jmeter) => jmeter.taken(now_ns),
        }
    }
}

/// A message whose time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// When it was due.
    pub intended_ns: u64,
    /// Messages before it that the catch-up policy dropped.
    pub skipped: u64,
}

/// Where a stream starts: a fraction of its period, or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phase {
    num: u64,
    den: u64,
    after_ns: u64,
}

impl Phase {
    pub(crate) fn of(policy: PhasePolicy, place: Place) -> Self {
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
