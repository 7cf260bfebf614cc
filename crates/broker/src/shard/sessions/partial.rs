//! Unfinished packets as signs of life.

/// Bytes of an unfinished packet that count as a sign of life.
const PARTIAL_STEP: u32 = 1_000;

/// How much of a client's unfinished packet has counted as a sign of life.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartialPacket {
    counted: u32,
}

impl PartialPacket {
    /// Whether the packet, now `len` bytes, has a step more than when that was last so. One that is
    /// shorter than before is another packet.
    pub(super) fn has_grown(&mut self, len: u32) -> bool {
        let grown = len >= self.counted.saturating_add(PARTIAL_STEP) && len > self.counted;
        if grown || len < self.counted {
            self.counted = len;
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::{PARTIAL_STEP, PartialPacket};

    // 12
    #[test]
    fn an_unfinished_packet_counts_once_for_each_step() {
        let mut partial = PartialPacket::default();
        assert!(!partial.has_grown(PARTIAL_STEP - 1));
        assert!(partial.has_grown(PARTIAL_STEP));
        assert!(!partial.has_grown(PARTIAL_STEP + 1));
        assert!(!partial.has_grown(2 * PARTIAL_STEP - 1));
        assert!(partial.has_grown(2 * PARTIAL_STEP + 5));
        assert!(!partial.has_grown(3 * PARTIAL_STEP));
        // The next packet begins anew.
        assert!(!partial.has_grown(3));
        assert!(!partial.has_grown(PARTIAL_STEP + 2));
        assert!(partial.has_grown(PARTIAL_STEP + 3));
    }
}
