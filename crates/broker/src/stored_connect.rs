//! A CONNECT that waits: for its password, its authentication method or the journal.

use tacho_codec::{Connect, split_frame};

/// Decodes a CONNECT that was kept as it arrived.
pub(crate) fn stored_connect(packet: &[u8]) -> Option<Connect<'_>> {
    let frame = split_frame(packet, u32::MAX).ok().flatten()?;
    Connect::decode(&frame).ok()
}
