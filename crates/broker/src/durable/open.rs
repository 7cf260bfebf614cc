//! The metadata of an open message: which subscribers still have to get it.

use super::bytes::Rest;

/// All sessions that subscribe to its topic, and one member of each such shared subscription,
/// except those that have it according to the journal.
const FOR_ALL: u8 = 0;

/// The same without subscriptions that became visible after it was routed: their replay delivers
/// it.
const FOR_ALL_BEFORE: u8 = 1;

/// Encodes the metadata. `routed` is the route map version that a retained message was routed with.
pub(crate) fn encode(routed: Option<u64>) -> ([u8; 9], usize) {
    let mut bytes = [FOR_ALL; 9];
    let Some(routed) = routed else { return (bytes, 1) };
    bytes[0] = FOR_ALL_BEFORE;
    bytes[1..].copy_from_slice(&routed.to_le_bytes());
    (bytes, 9)
}

/// Decodes the metadata. The outer `None` means an unknown format.
pub(crate) fn decode(meta: &[u8]) -> Option<Option<u64>> {
    let mut rest = Rest(meta);
    match rest.byte()? {
        FOR_ALL => Some(None),
        FOR_ALL_BEFORE => Some(Some(rest.u64()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_round_trips() {
        for routed in [None, Some(0), Some(1 << 50)] {
            let (bytes, len) = encode(routed);
            assert_eq!(decode(&bytes[..len]), Some(routed));
        }
        for unknown in [&[][..], &[1, 0], &[2; 9]] {
            assert_eq!(decode(unknown), None);
        }
    }
}
