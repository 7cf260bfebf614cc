//! Random arrivals with an exact mean.
//!
//! Given their number, the arrivals of a Poisson process in an interval are independent and
//! uniformly distributed. So each block of 256 periods gets exactly 256 messages at such positions:
//! gaps are approximately exponential, and the rate never drifts. Positions are drawn in ascending
//! order: the first of `k` uniform positions in the rest of the block lies at `1 - u^(1/k)` of it.

use fastrand::Rng;

use super::Place;
use crate::plan::{Pace, Rate, Scale};

const BLOCK: u64 = Pace::POISSON_BLOCK;

#[derive(Debug, Clone)]
pub(super) struct Poisson {
    start_ns: u64,
    /// `messages` messages in `per_ns` on average.
    per_ns: u128,
    messages: u128,
    seed: u64,
    block: u64,
    /// Messages of the block from the next one on, at least 1.
    left: u64,
    /// Position of the next message in the block, 0 to 1.
    at: f64,
    rng: Rng,
}

impl Poisson {
    pub(super) fn new(start_ns: u64, rate: Rate, scale: Scale, place: Place) -> Self {
        let mut poisson = Self {
            start_ns,
            per_ns: u128::from(rate.per_ns) * u128::from(scale.den),
            messages: u128::from(rate.messages) * u128::from(scale.num),
            seed: place.seed ^ place.ordinal.wrapping_mul(0xD1B5_4A32_D192_ED03),
            block: 0,
            left: BLOCK,
            at: 0.0,
            rng: Rng::with_seed(0),
        };
        poisson.open(0);
        poisson
    }

    /// Begins a block, whose random numbers are independent of earlier blocks.
    fn open(&mut self, block: u64) {
        self.block = block;
        self.left = BLOCK;
        self.rng = Rng::with_seed(self.seed ^ block.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.at = 0.0;
        self.draw();
    }

    fn draw(&mut self) {
        let left = 1.0 - self.at;
        self.at = 1.0 - left * self.rng.f64().powf(1.0 / self.left as f64);
    }

    fn block_start_ns(&self, block: u64) -> u64 {
        let offset = u128::from(block) * u128::from(BLOCK) * self.per_ns / self.messages;
        self.start_ns.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    pub(super) fn next_ns(&self) -> u64 {
        let (from, to) = (self.block_start_ns(self.block), self.block_start_ns(self.block + 1));
        from + ((to - from) as f64 * self.at) as u64
    }

    pub(super) fn skip(&mut self, count: u64) {
        let mut count = count;
        if count >= self.left {
            count -= self.left;
            self.open(self.block + 1 + count / BLOCK);
            count %= BLOCK;
        }
        for _ in 0..count {
            self.left -= 1;
            self.draw();
        }
    }

    /// Messages due before `end_ns` from the next one on.
    pub(super) fn due_before(&self, end_ns: u64) -> u64 {
        let mut walk = self.clone();
        let mut count = 0;
        if walk.block_start_ns(walk.block + 1) <= end_ns {
            count += walk.left;
            let elapsed = u128::from(end_ns - walk.start_ns);
            let blocks = elapsed * walk.messages / (walk.per_ns * u128::from(BLOCK));
            // The block that contains `end_ns`, or the next one because of rounding.
            let mut block = (blocks as u64).max(walk.block + 1);
            while walk.block_start_ns(block) > end_ns {
                block -= 1;
            }
            count += (block - walk.block - 1) * BLOCK;
            walk.open(block);
        }
        while walk.next_ns() < end_ns {
            count += 1;
            walk.skip(1);
        }
        count
    }
}
