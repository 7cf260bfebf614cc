//! The header of a proxy, from a peer that sends anything: it ends where it ends, in any pieces,
//! and a name in it is one of its own, of limited length.

use tacho_net::proxy::{HEADER_BYTES_MAX, ProxyHeader};

/// Of the name in a certificate.
const NAME_BYTES_MAX: usize = 1024;

/// The beginning of a connection.
pub fn check(data: &[u8]) {
    let whole = ProxyHeader::parse(data);
    if let Ok(Some(header)) = whole {
        assert!(header.len <= HEADER_BYTES_MAX.min(data.len()), "longer than what is there");
        if let Some(name) = header.certificate_name {
            assert!(name.len() <= NAME_BYTES_MAX, "a name that is too long");
            let own = data[..header.len].as_ptr_range();
            let name = name.as_ptr_range();
            assert!(own.start < name.start && name.end <= own.end, "a name of something else");
        }
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
