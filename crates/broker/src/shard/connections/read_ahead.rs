//! Read-ahead: the packets behind a PUBLISH that cannot be taken in yet.
//!
//! The PUBLISH and everything behind it stay unread. But the acknowledgements behind it may be just
//! what makes room again; without them the client would be held back forever. So acknowledgements
//! and PINGREQ are handled ahead of their turn, and skipped when their turn comes. The socket is
//! read for them up to a bound.

use tacho_codec::{Frame, split_frame};

use crate::keys::SessionSlot;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};

/// A client that is held back at a packet is read on until so much is unread behind it.
const BEHIND_BYTES_MAX: usize = 64 * 1024;

/// PUBACK, PUBREC, PUBCOMP, PINGREQ: they have to do with no packet of the client that is still
/// unread.
#[inline]
pub(in crate::shard) const fn is_read_ahead(first_byte: u8) -> bool {
    matches!(first_byte, 0x40 | 0x50 | 0x70 | 0xc0)
}

impl Shard {
    /// How much of a client's unread input was looked at before.
    #[inline]
    pub(in crate::shard) fn read_ahead_len(&self, session: Option<SessionSlot>) -> usize {
        session.map_or(0, |slot| self.sessions[slot].pressure.read_ahead_len())
    }

    /// Notes how much of what is left unread was looked at.
    #[cold]
    pub(in crate::shard) fn set_read_ahead_len(&mut self, slot: SessionSlot, bytes: usize) {
        self.sessions[slot].pressure.read_ahead(bytes);
    }

    /// Handles what comes ahead of its turn in `unread`, which begins with the packet at which the
    /// client, or the other broker of a bridge, is held back; `looked` bytes of it were looked at
    /// before.
    #[cold]
    pub(in crate::shard) fn read_ahead(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        unread: &[u8],
        looked: usize,
        mut handle: impl FnMut(&mut Self, &mut Net, &Frame<'_>) -> Flow,
    ) -> Flow {
        let size_max = self.limits().packet_size_max;
        let mut at = looked;
        // What is damaged is found when its turn comes.
        while let Ok(Some(frame)) = split_frame(&unread[at..], size_max) {
            // The packet itself is no acknowledgement.
            if is_read_ahead(frame.first_byte) && handle(self, net, &frame) == Flow::Stop {
                return Flow::Stop;
            }
            at += frame.total_len;
        }
        self.set_read_ahead_len(slot, at);
        Flow::Hold
    }

    /// Whether a client that is held back at the first packet of `unread` is read on.
    pub(in crate::shard) fn reads_on(&self, unread: &[u8]) -> bool {
        let held = split_frame(unread, self.limits().packet_size_max).ok().flatten();
        held.is_some_and(|frame| unread.len() - frame.total_len < BEHIND_BYTES_MAX)
    }
}
