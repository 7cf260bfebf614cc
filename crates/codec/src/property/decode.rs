//! Reading of single properties.

use crate::read::Reader;
use crate::{DecodeError, text};

/// A property that the packet may not carry, or that does not exist.
pub(crate) const NOT_ALLOWED: DecodeError =
    DecodeError::malformed("a property is unknown or not allowed in this packet (2.2.2.2)");

/// Splits the property block off the reader and returns a reader for it.
#[inline]
pub(crate) fn block<'a>(reader: &mut Reader<'a>) -> Result<Reader<'a>, DecodeError> {
    let len = reader.varint()?;
    reader.bytes(len as usize).map(Reader::new)
}

/// Stores a property that may occur only once.
#[inline]
pub(crate) fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), DecodeError> {
    if slot.is_some() {
        return Err(DecodeError::protocol("a property that may occur only once occurs twice"));
    }
    *slot = Some(value);
    Ok(())
}

/// A byte that must be 0 or 1.
pub(crate) fn boolean(reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::protocol("a property that must be 0 or 1 has another value")),
    }
}

/// A two-byte integer that must not be zero.
pub(crate) fn nonzero_u16(reader: &mut Reader<'_>) -> Result<u16, DecodeError> {
    match reader.u16()? {
        0 => Err(DecodeError::protocol("a property that must not be zero is zero")),
        value => Ok(value),
    }
}

/// A four-byte integer that must not be zero.
pub(crate) fn nonzero_u32(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    match reader.u32()? {
        0 => Err(DecodeError::protocol("a property that must not be zero is zero")),
        value => Ok(value),
    }
}

/// A subscription identifier, 1 to 268,435,455.
pub(crate) fn subscription_id(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    match reader.varint()? {
        0 => Err(DecodeError::protocol("a subscription identifier is zero (3.8.2.1.2)")),
        value => Ok(value),
    }
}

/// A response topic: a topic name, so neither empty nor with wildcards [MQTT-3.3.2-14].
pub(crate) fn response_topic<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let topic = reader.string()?;
    if topic.is_empty() || text::has_wildcard(topic) {
        return Err(DecodeError::protocol(
            "a response topic is empty or contains a wildcard [MQTT-3.3.2-14]",
        ));
    }
    Ok(topic)
}

/// A user property; both strings are checked [MQTT-1.5.7-1].
#[inline]
pub(crate) fn user_property<'a>(
    reader: &mut Reader<'a>,
) -> Result<(&'a str, &'a str), DecodeError> {
    Ok((reader.string()?, reader.string()?))
}

/// Skips one property of any kind; for blocks that are checked already.
pub(crate) fn skip(identifier: u8, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    match identifier {
        0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28..=0x2A => reader.u8().map(drop),
        0x13 | 0x21..=0x23 => reader.u16().map(drop),
        0x02 | 0x11 | 0x18 | 0x27 => reader.u32().map(drop),
        0x0B => reader.varint().map(drop),
        0x03 | 0x08 | 0x09 | 0x12 | 0x15 | 0x16 | 0x1A | 0x1C | 0x1F => reader.binary().map(drop),
        0x26 => reader.binary().and_then(|_| reader.binary()).map(drop),
        _ => Err(NOT_ALLOWED),
    }
}
