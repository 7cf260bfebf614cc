//! Unfinished packets as signs of life, and as a part of what a client sends.

/// Bytes of an unfinished packet that count.
const PARTIAL_STEP: u32 = 1_000;

/// How much of a client's unfinished packet has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartialPacket {
    counted: u32,
}

impl PartialPacket {
    /// How many bytes the packet, now `len` bytes, has more than when that was last told: at least
    /// a step, or 0. One that is shorter than before is another packet.
    pub(super) fn grown_by(&mut self, len: u32) -> u32 {
        let more = len.saturating_sub(self.counted);
        let is_step = more >= PARTIAL_STEP;
        if is_step || len < self.counted {
            self.counted = len;
        }
        if is_step { more } else { 0 }
    }

    /// The packet is finished: how much of it has counted.
    pub(super) fn finish(&mut self) -> u32 {
        std::mem::take(&mut self.counted)
    }
}

#[cfg(test)]
mod tests {
    use super::{PARTIAL_STEP, PartialPacket};

    // 12
    #[test]
    fn an_unfinished_packet_counts_once_for_each_step() {
        let mut partial = PartialPacket::default();
        assert_eq!(partial.grown_by(PARTIAL_STEP - 1), 0);
        assert_eq!(partial.grown_by(PARTIAL_STEP), PARTIAL_STEP);
        assert_eq!(partial.grown_by(PARTIAL_STEP + 1), 0);
        assert_eq!(partial.grown_by(2 * PARTIAL_STEP - 1), 0);
        assert_eq!(partial.grown_by(2 * PARTIAL_STEP + 5), PARTIAL_STEP + 5);
        assert_eq!(partial.grown_by(3 * PARTIAL_STEP), 0);
        // The next packet begins anew.
        assert_eq!(partial.grown_by(3), 0);
        assert_eq!(partial.grown_by(PARTIAL_STEP + 2), 0);
        assert_eq!(partial.grown_by(PARTIAL_STEP + 3), PARTIAL_STEP);
        assert_eq!(partial.finish(), PARTIAL_STEP + 3);
        assert_eq!(partial.finish(), 0);
    }
}
