//! The header of a proxy, from a peer that sends anything: it ends where it ends, in any pieces.

use tacho_net::proxy::{HEADER_BYTES_MAX, ProxyHeader};

/// The beginning of a connection.
pub fn check(data: &[u8]) {
    let whole = ProxyHeader::parse(data);
    if let Ok(Some(header)) = whole {
        assert!(header.len <= HEADER_BYTES_MAX.min(data.len()), "longer than what is there");
    }
    if whole == Ok(None) {
        assert!(data.len() < HEADER_BYTES_MAX, "more is awaited than a header may have");
    }
    let mut settled = Ok(None);
    for len in 0..=data.len().min(HEADER_BYTES_MAX) {
        let now = ProxyHeader::parse(&data[..len]);
        if settled == Ok(None) {
            settled = now;
        } else {
            assert_eq!(now, settled, "what follows changes the answer");
        }
        if let Ok(Some(header)) = now {
            assert!(header.len <= len, "a header that has not arrived");
        }
    }
    assert_eq!(settled, whole);
}
