//! Even steps, with one message or a burst per step.

use super::StartOffset;
use crate::plan::{Rate, Scale};

/// Message `i` is due at `first + floor(i / burst) * per_ns / steps`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Even {
    first_ns: u64,
    per_ns: u64,
    steps: u64,
    burst: u64,
}

impl Even {
    /// `burst` messages in each step of `rate x scale`, the first one at `offset` from
    /// `start_ns`.
    pub(super) fn new(
        start_ns: u64,
        rate: Rate,
        burst: u64,
        scale: Scale,
        offset: StartOffset,
    ) -> Self {
        let per_ns = u128::from(rate.per_ns) * u128::from(scale.den);
        let steps = u128::from(rate.messages) * u128::from(scale.num);
        let shift = per_ns * u128::from(offset.num) / (steps * u128::from(offset.den));
        // Small terms keep `due_ns` on its 64-bit path.
        let common = greatest_common_divisor(per_ns, steps);
        let (mut per_ns, mut steps) = (per_ns / common, steps / common);
        while per_ns > u128::from(u64::MAX) || steps > u128::from(u64::MAX) {
            // Only extreme rates get here; they keep nineteen digits.
            (per_ns, steps) = (per_ns / 2, (steps / 2).max(1));
        }
        let first_ns = start_ns.saturating_add(shift as u64).saturating_add(offset.after_ns);
        Self { first_ns, per_ns: per_ns as u64, steps: steps as u64, burst: burst.max(1) }
    }

    #[inline]
    pub(super) fn due_ns(&self, index: u64) -> u64 {
        let step = if self.burst == 1 { index } else { index / self.burst };
        // 64 bits are sufficient for round rates; the other path is exact for all rates.
        let offset = match step.checked_mul(self.per_ns) {
            Some(product) => product / self.steps,
            None => {
                let offset = u128::from(step) * u128::from(self.per_ns) / u128::from(self.steps);
                u64::try_from(offset).unwrap_or(u64::MAX)
            }
        };
        self.first_ns.saturating_add(offset)
    }

    /// Number of the first message due at or after `end_ns`; `end_ns` is after the first message.
    pub(super) fn due_before(&self, end_ns: u64) -> u64 {
        let elapsed = u128::from(end_ns - 1 - self.first_ns);
        // floor(i * per / steps) <= elapsed  <=>  i * per < (elapsed + 1) * steps
        let latest = ((elapsed + 1) * u128::from(self.steps) - 1) / u128::from(self.per_ns);
        (latest as u64 + 1) * self.burst
    }
}

const fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
