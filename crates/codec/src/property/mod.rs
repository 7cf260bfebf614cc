//! Properties of 5.0 (section 2.2.2): identifiers, typed reading and writing.

pub(crate) mod repeated;

pub use repeated::{
    SubscriptionIds, SubscriptionIdsBuf, SubscriptionIdsIter, UserProperties, UserPropertiesBuf,
    UserPropertiesIter,
};

use crate::read::Reader;
use crate::write::Sink;
use crate::{DecodeError, EncodeError, text};

/// The identifiers (table 2-4).
pub(crate) mod id {
    pub(crate) const PAYLOAD_FORMAT_INDICATOR: u8 = 0x01;
    pub(crate) const MESSAGE_EXPIRY_INTERVAL: u8 = 0x02;
    pub(crate) const CONTENT_TYPE: u8 = 0x03;
    pub(crate) const RESPONSE_TOPIC: u8 = 0x08;
    pub(crate) const CORRELATION_DATA: u8 = 0x09;
    pub(crate) const SUBSCRIPTION_IDENTIFIER: u8 = 0x0B;
    pub(crate) const SESSION_EXPIRY_INTERVAL: u8 = 0x11;
    pub(crate) const ASSIGNED_CLIENT_IDENTIFIER: u8 = 0x12;
    pub(crate) const SERVER_KEEP_ALIVE: u8 = 0x13;
    pub(crate) const AUTHENTICATION_METHOD: u8 = 0x15;
    pub(crate) const AUTHENTICATION_DATA: u8 = 0x16;
    pub(crate) const REQUEST_PROBLEM_INFORMATION: u8 = 0x17;
    pub(crate) const WILL_DELAY_INTERVAL: u8 = 0x18;
    pub(crate) const REQUEST_RESPONSE_INFORMATION: u8 = 0x19;
    pub(crate) const RESPONSE_INFORMATION: u8 = 0x1A;
    pub(crate) const SERVER_REFERENCE: u8 = 0x1C;
    pub(crate) const REASON_STRING: u8 = 0x1F;
    pub(crate) const RECEIVE_MAXIMUM: u8 = 0x21;
    pub(crate) const TOPIC_ALIAS_MAXIMUM: u8 = 0x22;
    pub(crate) const TOPIC_ALIAS: u8 = 0x23;
    pub(crate) const MAXIMUM_QOS: u8 = 0x24;
    pub(crate) const RETAIN_AVAILABLE: u8 = 0x25;
    pub(crate) const USER_PROPERTY: u8 = 0x26;
    pub(crate) const MAXIMUM_PACKET_SIZE: u8 = 0x27;
    pub(crate) const WILDCARD_SUBSCRIPTION_AVAILABLE: u8 = 0x28;
    pub(crate) const SUBSCRIPTION_IDENTIFIER_AVAILABLE: u8 = 0x29;
    pub(crate) const SHARED_SUBSCRIPTION_AVAILABLE: u8 = 0x2A;
}

/// A property that the packet may not carry, or that does not exist.
pub(crate) const NOT_ALLOWED: DecodeError =
    DecodeError::malformed("a property is unknown or not allowed in this packet (2.2.2.2)");

/// Cuts the property block off the reader: what it holds is read with a reader of its own.
#[inline]
pub(crate) fn block<'a>(reader: &mut Reader<'a>) -> Result<Reader<'a>, DecodeError> {
    let len = reader.varint()?;
    reader.bytes(len as usize).map(Reader::new)
}

/// Stores a property that may come once only.
#[inline]
pub(crate) fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), DecodeError> {
    if slot.is_some() {
        return Err(DecodeError::protocol("a property comes twice that may come once only"));
    }
    *slot = Some(value);
    Ok(())
}

/// A byte that must be 0 or 1.
pub(crate) fn boolean(reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::protocol("a property that must be 0 or 1 is neither")),
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

/// Passes over one property of any kind; used on blocks that were checked before.
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

/// Writing of optional properties: absent ones write nothing.
pub(crate) trait PropertySink: Sink {
    #[inline]
    fn put_bool_property(&mut self, identifier: u8, value: Option<bool>) {
        if let Some(value) = value {
            self.put(&[identifier, u8::from(value)]);
        }
    }

    #[inline]
    fn put_u16_property(&mut self, identifier: u8, value: Option<u16>) {
        if let Some(value) = value {
            self.put_u8(identifier);
            self.put_u16(value);
        }
    }

    #[inline]
    fn put_u32_property(&mut self, identifier: u8, value: Option<u32>) {
        if let Some(value) = value {
            self.put_u8(identifier);
            self.put_u32(value);
        }
    }

    #[inline]
    fn put_binary_property(
        &mut self,
        identifier: u8,
        value: Option<&[u8]>,
    ) -> Result<(), EncodeError> {
        if let Some(value) = value {
            self.put_u8(identifier);
            self.put_binary(value)?;
        }
        Ok(())
    }

    #[inline]
    fn put_string_property(
        &mut self,
        identifier: u8,
        value: Option<&str>,
    ) -> Result<(), EncodeError> {
        self.put_binary_property(identifier, value.map(str::as_bytes))
    }

    #[inline]
    fn put_user_properties(&mut self, properties: UserProperties<'_>) -> Result<(), EncodeError> {
        if let Some(bytes) = properties.as_properties() {
            self.put(bytes);
            return Ok(());
        }
        for (name, value) in properties {
            self.put_u8(id::USER_PROPERTY);
            self.put_binary(name.as_bytes())?;
            self.put_binary(value.as_bytes())?;
        }
        Ok(())
    }
}

impl<S: Sink> PropertySink for S {}
