//! The deliveries of one stream to a shared group: one bit per message.
//!
//! Members of a group may be on different generator threads, and messages alternate between them,
//! so that no member observes order or gaps. Each thread keeps a bitmap; the bitmaps of all threads
//! are united when the books are closed.

use serde::{Deserialize, Serialize};

use super::tracker::{Hole, Observation, widen};

/// Messages that the members on one thread received, from `floor` on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SharedTracker {
    /// Messages before this are settled.
    floor: u64,
    /// First message of `words`; a multiple of 64, at most `floor`.
    base: u64,
    words: Vec<u64>,
    highest: u64,
}

impl SharedTracker {
    /// Records a delivery.
    pub(crate) fn observe(&mut self, seq: u32) -> Observation {
        let seq = widen(seq, self.highest);
        if seq < self.floor {
            return Observation::Late;
        }
        self.highest = self.highest.max(seq);
        let (word, bit) = (((seq - self.base) / 64) as usize, 1 << (seq % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] & bit != 0 {
            return Observation::Duplicate;
        }
        self.words[word] |= bit;
        Observation::New { skipped: 0 }
    }

    /// Takes the receipts, and restarts at `to`.
    pub(crate) fn settle(&mut self, to: u64) -> Receipts {
        let receipts = Receipts { base: self.base, words: std::mem::take(&mut self.words) };
        self.floor = to;
        self.base = to / 64 * 64;
        self.highest = self.highest.max(to);
        receipts
    }
}

/// The messages received: a bitmap that begins at message `base`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipts {
    base: u64,
    words: Vec<u64>,
}

impl Receipts {
    /// Adds the receipts of another thread; calls `both` for each message that both received.
    pub(crate) fn unite(&mut self, other: &Self, mut both: impl FnMut(u64)) {
        // Invariant: all threads settle at the same message, so that bases are equal.
        debug_assert_eq!(self.base, other.base);
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (index, (mine, theirs)) in self.words.iter_mut().zip(&other.words).enumerate() {
            let mut common = *mine & theirs;
            while common != 0 {
                both(self.base + index as u64 * 64 + u64::from(common.trailing_zeros()));
                common &= common - 1;
            }
            *mine |= theirs;
        }
    }

    fn contains(&self, seq: u64) -> bool {
        let word = ((seq - self.base) / 64) as usize;
        self.words.get(word).is_some_and(|word| word >> (seq % 64) & 1 == 1)
    }

    /// Calls `lost` for each run of messages in `from..to` that did not arrive.
    pub(crate) fn holes(&self, from: u64, to: u64, mut lost: impl FnMut(Hole)) {
        let mut seq = from;
        while seq < to {
            let word = self.words.get(((seq - self.base) / 64) as usize).copied().unwrap_or(0);
            if word == u64::MAX && seq.is_multiple_of(64) {
                seq += 64;
                continue;
            }
            if self.contains(seq) {
                seq += 1;
                continue;
            }
            let first = seq;
            while seq < to && !self.contains(seq) {
                seq += 1;
            }
            lost(Hole::exact(first, seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(receipts: &Receipts, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut holes = Vec::new();
        receipts.holes(from, to, |hole| holes.push((hole.from, hole.to)));
        holes
    }

    #[test]
    fn receipts_of_two_threads_are_united() {
        let (mut even, mut odd) = (SharedTracker::default(), SharedTracker::default());
        for seq in 0..1_000 {
            let tracker = if seq % 2 == 0 { &mut even } else { &mut odd };
            assert_eq!(tracker.observe(seq), Observation::New { skipped: 0 });
        }
        assert_eq!(odd.observe(7), Observation::Duplicate);
        let mut receipts = even.settle(1_000);
        receipts.unite(&odd.settle(1_000), |seq| panic!("{seq} was received once"));
        assert_eq!(holes(&receipts, 0, 1_000), []);
        assert_eq!(holes(&receipts, 990, 1_003), [(1_000, 1_003)]);
    }

    #[test]
    fn a_message_to_two_members_is_a_duplicate() {
        let (mut one, mut other) = (SharedTracker::default(), SharedTracker::default());
        for seq in [0, 1, 70] {
            one.observe(seq);
        }
        for seq in [1, 3, 70, 200] {
            other.observe(seq);
        }
        let mut receipts = one.settle(300);
        let mut both = Vec::new();
        receipts.unite(&other.settle(300), |seq| both.push(seq));
        assert_eq!(both, [1, 70]);
        assert_eq!(holes(&receipts, 0, 202), [(2, 3), (4, 70), (71, 200), (201, 202)]);
    }

    #[test]
    fn a_new_window_begins_at_the_end_of_the_last_one() {
        let mut tracker = SharedTracker::default();
        tracker.observe(99);
        tracker.settle(100);
        assert_eq!(tracker.observe(98), Observation::Late);
        assert_eq!(tracker.observe(100), Observation::New { skipped: 0 });
        assert_eq!(holes(&tracker.settle(103), 100, 103), [(101, 103)]);
    }
}
