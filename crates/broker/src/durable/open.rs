//! What is noted beside a message whose distribution is not finished: for whom it still is.

use super::bytes::Rest;

/// Everybody who subscribes to its topic, sessions and one member of every shared subscription, as
/// far as the journal does not say that they have had it.
const FOR_ALL: u8 = 0;

/// The same, but for those to whom a replay brings it: subscriptions that became visible only after
/// it was routed.
const FOR_ALL_BEFORE: u8 = 1;

/// What is noted of a message: of a retained one, with which version of the route map it was
/// routed.
pub(crate) fn encode(routed: Option<u64>) -> ([u8; 9], usize) {
    let mut bytes = [FOR_ALL; 9];
    let Some(routed) = routed else { return (bytes, 1) };
    bytes[0] = FOR_ALL_BEFORE;
    bytes[1..].copy_from_slice(&routed.to_le_bytes());
    (bytes, 9)
}

/// The reverse. The outer `None` is for what no version of this program has written.
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
    fn notes_come_back_as_they_were() {
        for routed in [None, Some(0), Some(1 << 50)] {
            let (bytes, len) = encode(routed);
            assert_eq!(decode(&bytes[..len]), Some(routed));
        }
        for unknown in [&[][..], &[1, 0], &[2; 9]] {
            assert_eq!(decode(unknown), None);
        }
    }
}
