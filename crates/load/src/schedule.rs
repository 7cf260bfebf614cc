//! When messages are due: an absolute schedule in nanoseconds that never drifts.
//!
//! Message `i` of a stream is due at `start + phase + i * per_ns / messages`, computed from `i`
//! every time and not by adding up periods, so that rounding never accumulates whatever the
//! rate.

use crate::plan::{CatchUp, PhasePolicy, Rate, Scale};

/// Due times of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    first_ns: u64,
    per_ns: u128,
    messages: u128,
    /// Index of the next message.
    next: u64,
}

impl Schedule {
    /// A stream at `rate x scale` whose first message is due `phase` of a period after
    /// `start_ns`.
    pub fn new(start_ns: u64, rate: Rate, scale: Scale, phase: Phase) -> Self {
        let per_ns = u128::from(rate.per_ns) * u128::from(scale.den);
        let messages = u128::from(rate.messages) * u128::from(scale.num);
        let shift = per_ns * u128::from(phase.num) / (messages * u128::from(phase.den));
        // Small terms keep `due_ns` on its 64-bit path.
        let common = greatest_common_divisor(per_ns, messages);
        let (per_ns, messages) = (per_ns / common, messages / common);
        Self { first_ns: start_ns + shift as u64, per_ns, messages, next: 0 }
    }

    /// When message `index` is due.
    #[inline]
    pub fn due_ns(&self, index: u64) -> u64 {
        // 64 bits are enough for round rates; the other path is exact whatever the rate.
        let offset = match (u64::try_from(self.per_ns), u64::try_from(self.messages)) {
            (Ok(per_ns), Ok(messages)) => match index.checked_mul(per_ns) {
                Some(product) => product / messages,
                None => (u128::from(index) * self.per_ns / self.messages) as u64,
            },
            _ => (u128::from(index) * self.per_ns / self.messages) as u64,
        };
        self.first_ns + offset
    }

    /// When the next message is due.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.due_ns(self.next)
    }

    /// Takes the message that is due at `now_ns`, if one is.
    #[inline]
    pub fn take(&mut self, now_ns: u64, catch_up: CatchUp) -> Option<Due> {
        let mut intended_ns = self.next_ns();
        if intended_ns > now_ns {
            return None;
        }
        let mut skipped = 0;
        if catch_up == CatchUp::Skip && self.due_ns(self.next + 1) <= now_ns {
            let latest = self.latest_at(now_ns);
            skipped = latest - self.next;
            self.next = latest;
            intended_ns = self.due_ns(latest);
        }
        self.next += 1;
        Some(Due { intended_ns, skipped })
    }

    /// Leaves the next `count` messages out.
    pub const fn skip(&mut self, count: u64) {
        self.next += count;
    }

    /// Messages due before `end_ns` that were not taken.
    pub fn remaining_before(&self, end_ns: u64) -> u64 {
        if end_ns <= self.next_ns() { 0 } else { self.latest_at(end_ns - 1) + 1 - self.next }
    }

    /// Index of the latest message due at or before `now_ns`, which is not before the first.
    fn latest_at(&self, now_ns: u64) -> u64 {
        let elapsed = u128::from(now_ns - self.first_ns);
        // floor(i * per / messages) <= elapsed  <=>  i * per < (elapsed + 1) * messages
        (((elapsed + 1) * self.messages - 1) / self.per_ns) as u64
    }
}

const fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A message whose time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// When it was due.
    pub intended_ns: u64,
    /// Messages before it that the catch-up policy dropped.
    pub skipped: u64,
}

/// Where in its period a stream starts, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    num: u64,
    den: u64,
}

impl Phase {
    /// Of stream `index` among `count`.
    pub fn of(policy: PhasePolicy, index: u64, count: u64, seed: u64) -> Self {
        match policy {
            PhasePolicy::Uniform => Self { num: index, den: count.max(1) },
            PhasePolicy::Random => {
                let mut rng =
                    fastrand::Rng::with_seed(seed ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                Self { num: rng.u64(..1 << 32), den: 1 << 32 }
            }
            PhasePolicy::Aligned => Self { num: 0, den: 1 },
        }
    }
}

#[cfg(test)]
mod tests;
