//! The reason codes that each packet may carry (5.0 table 2-6).

use super::kind::AckKind;
use crate::{DecodeError, Direction, ReasonCode};

const UNKNOWN: DecodeError =
    DecodeError::malformed("this packet may not carry this reason code (2.4)");

fn accept(value: u8, allowed: bool) -> Result<ReasonCode, DecodeError> {
    ReasonCode::from_u8(value).filter(|_| allowed).ok_or(UNKNOWN)
}

/// [MQTT-3.2.2-8]
pub(super) fn connack(value: u8) -> Result<ReasonCode, DecodeError> {
    let allowed = matches!(
        value,
        0x00 | 0x80..=0x8A | 0x8C | 0x90 | 0x95 | 0x97 | 0x99..=0x9D | 0x9F
    );
    accept(value, allowed)
}

/// [MQTT-3.4.2-1], [MQTT-3.5.2-1], [MQTT-3.6.2-1], [MQTT-3.7.2-1]
#[inline]
pub(super) fn ack(kind: AckKind, value: u8) -> Result<ReasonCode, DecodeError> {
    if value == 0 {
        return Ok(ReasonCode::SUCCESS);
    }
    let allowed = match kind {
        AckKind::PubAck | AckKind::PubRec => {
            matches!(value, 0x10 | 0x80 | 0x83 | 0x87 | 0x90 | 0x91 | 0x97 | 0x99)
        }
        AckKind::PubRel | AckKind::PubComp => value == 0x92,
    };
    accept(value, allowed)
}

/// [MQTT-3.9.3-2]
pub(super) fn suback(value: u8) -> Result<ReasonCode, DecodeError> {
    let allowed =
        matches!(value, 0x00..=0x02 | 0x80 | 0x83 | 0x87 | 0x8F | 0x91 | 0x97 | 0x9E | 0xA1 | 0xA2);
    accept(value, allowed)
}

/// The codes of 3.1.1: a granted QoS or 0x80.
pub(super) fn suback_v3(value: u8) -> Result<ReasonCode, DecodeError> {
    accept(value, matches!(value, 0x00..=0x02 | 0x80))
}

/// [MQTT-3.11.3-2]
pub(super) fn unsuback(value: u8) -> Result<ReasonCode, DecodeError> {
    accept(value, matches!(value, 0x00 | 0x11 | 0x80 | 0x83 | 0x87 | 0x8F | 0x91))
}

/// [MQTT-3.14.2-1]
pub(super) fn disconnect(value: u8, direction: Direction) -> Result<ReasonCode, DecodeError> {
    match value {
        0x00 | 0x80..=0x83 | 0x90 | 0x93..=0x99 => accept(value, true),
        0x04 if direction == Direction::ToServer => accept(value, true),
        0x87 | 0x89 | 0x8B..=0x8F | 0x9A..=0xA2 if direction == Direction::ToClient => {
            accept(value, true)
        }
        0x04 | 0x87 | 0x89 | 0x8B..=0x8F | 0x9A..=0xA2 => Err(DecodeError::protocol(
            "only the other side may send this reason code in DISCONNECT (3.14.2.1)",
        )),
        _ => Err(UNKNOWN),
    }
}

/// [MQTT-3.15.2-1]
pub(super) fn auth(value: u8, direction: Direction) -> Result<ReasonCode, DecodeError> {
    match (value, direction) {
        (0x00, Direction::ToClient) | (0x18, _) | (0x19, Direction::ToServer) => {
            accept(value, true)
        }
        (0x00 | 0x19, _) => Err(DecodeError::protocol(
            "only the other side may send this reason code in AUTH (3.15.2.1)",
        )),
        _ => Err(UNKNOWN),
    }
}
