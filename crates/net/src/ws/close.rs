//! Close codes of WebSockets (RFC 6455, section 7.4).

use std::io;

/// A normal end.
pub(super) const NORMAL: u16 = 1000;
/// A protocol violation.
pub(super) const PROTOCOL: u16 = 1002;
/// Text instead of binary data.
pub(super) const UNSUPPORTED: u16 = 1003;
/// Text that is not UTF-8.
pub(super) const NOT_UTF8: u16 = 1007;
/// A frame above the size limit.
pub(super) const TOO_BIG: u16 = 1009;

/// A protocol violation by the peer, with the code of our close frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) code: u16,
    pub(super) why: &'static str,
}

impl Violation {
    pub(super) const fn protocol(why: &'static str) -> Self {
        Self { code: PROTOCOL, why }
    }
}

impl From<Violation> for io::Error {
    fn from(violation: Violation) -> Self {
        Self::new(io::ErrorKind::InvalidData, format!("WebSocket: the peer {}", violation.why))
    }
}

/// The code in the payload of a close frame; `None` if the payload is empty.
pub(super) fn parse(payload: &[u8]) -> Result<Option<u16>, Violation> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return match payload.is_empty() {
            true => Ok(None),
            false => Err(Violation::protocol("sent a close code of one byte")),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1013 | 3000..=4999) {
        return Err(Violation::protocol("sent a close code that is not allowed"));
    }
    match std::str::from_utf8(reason) {
        Ok(_) => Ok(Some(code)),
        Err(_) => Err(Violation { code: NOT_UTF8, why: "sent a close reason that is not UTF-8" }),
    }
}
