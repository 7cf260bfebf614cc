//! Why a WebSocket ends, in the numbers of RFC 6455, section 7.4.

use std::io;

/// Ended as planned.
pub(super) const NORMAL: u16 = 1000;
/// The peer broke the protocol.
pub(super) const PROTOCOL: u16 = 1002;
/// The peer sent text.
pub(super) const UNSUPPORTED: u16 = 1003;
/// A text that is not UTF-8.
pub(super) const NOT_UTF8: u16 = 1007;
/// A frame beyond all bounds.
pub(super) const TOO_BIG: u16 = 1009;

/// An offence of the peer, with the code that it is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Offence {
    pub(super) code: u16,
    pub(super) why: &'static str,
}

impl Offence {
    pub(super) const fn protocol(why: &'static str) -> Self {
        Self { code: PROTOCOL, why }
    }
}

impl From<Offence> for io::Error {
    fn from(offence: Offence) -> Self {
        Self::new(io::ErrorKind::InvalidData, format!("WebSocket: the peer {}", offence.why))
    }
}

/// The code in the payload of a close frame; `None` if there is none.
pub(super) fn parse(payload: &[u8]) -> Result<Option<u16>, Offence> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return match payload.is_empty() {
            true => Ok(None),
            false => Err(Offence::protocol("closed with half a code")),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1013 | 3000..=4999) {
        return Err(Offence::protocol("closed with a code that must not be sent"));
    }
    match std::str::from_utf8(reason) {
        Ok(_) => Ok(Some(code)),
        Err(_) => Err(Offence { code: NOT_UTF8, why: "closed with a reason that is not UTF-8" }),
    }
}
