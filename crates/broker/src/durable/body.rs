//! The format of a message in the journal: a head, then the payload.
//!
//! The head begins with the version of the format and flags, followed by the expiry, the publisher,
//! its user, the topic, and the properties, as far as version and flags announce them.

use std::sync::Arc;

use tacho_codec::{Publish, PublishProperties, QoS, UserPropertiesBuf};
use tacho_journal::MessageId;

use super::WallClock;
use super::bytes::{Rest, put_bytes, put_number};
use crate::message::{Message, Restored, Source};

/// Of a message without a user. Those of anonymous clients, and all of earlier releases, are such.
const VERSION: u8 = 1;
/// Of a message with a user: a will, or one to be retained.
const WITH_USER: u8 = 2;

const QOS: u8 = 0b11;
const RETAIN: u8 = 1 << 2;
/// The message expires.
const EXPIRES: u8 = 1 << 3;
/// The expiry interval has not started: the message is a will.
const RELATIVE: u8 = 1 << 4;
const PROPERTIES: u8 = 1 << 5;

// Flags of the properties.
const FORMAT: u8 = 1;
const FORMAT_IS_UTF8: u8 = 1 << 1;
const RESPONSE_TOPIC: u8 = 1 << 2;
const CORRELATION_DATA: u8 = 1 << 3;
const CONTENT_TYPE: u8 = 1 << 4;

/// Writes a message without its payload to `head`.
pub(crate) fn encode_head(message: &Message, wall: WallClock, head: &mut Vec<u8>) {
    encode(message, Some(wall), head);
}

/// Writes a will that is not published yet, without its payload, to `head`.
pub(crate) fn encode_head_of_will(message: &Message, head: &mut Vec<u8>) {
    encode(message, None, head);
}

fn encode(message: &Message, wall: Option<WallClock>, head: &mut Vec<u8>) {
    let header = message.header();
    // The time does not matter: the expiry comes from the header.
    let properties = message.as_publish(0).properties;
    let expires = header.expires_at_ns != u64::MAX;
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let property_flags = flag(properties.payload_format_utf8.is_some(), FORMAT)
        | flag(properties.payload_format_utf8 == Some(true), FORMAT_IS_UTF8)
        | flag(properties.response_topic.is_some(), RESPONSE_TOPIC)
        | flag(properties.correlation_data.is_some(), CORRELATION_DATA)
        | flag(properties.content_type.is_some(), CONTENT_TYPE);
    let user = properties.user_properties;
    let has_properties = property_flags != 0 || !user.is_empty();
    let flags = header.qos as u8
        | flag(header.retain, RETAIN)
        | flag(expires, EXPIRES)
        | flag(wall.is_none(), RELATIVE)
        | flag(has_properties, PROPERTIES);
    head.clear();
    let version = if header.user.is_some() { WITH_USER } else { VERSION };
    head.extend_from_slice(&[version, flags]);
    if expires {
        put_number(header.expiry_s.into(), head);
        if let Some(wall) = wall {
            head.extend_from_slice(&wall.to_unix(header.expires_at_ns).to_le_bytes());
        }
    }
    head.extend_from_slice(&header.source.key().to_le_bytes());
    if let Some(user) = &header.user {
        put_bytes(user.as_bytes(), head);
    }
    put_bytes(header.topic.as_bytes(), head);
    if has_properties {
        head.push(property_flags);
        let texts = [properties.response_topic, properties.content_type];
        texts.into_iter().flatten().for_each(|text| put_bytes(text.as_bytes(), head));
        if let Some(data) = properties.correlation_data {
            put_bytes(data, head);
        }
        put_number(user.iter().count() as u64, head);
        for (name, value) in user {
            put_bytes(name.as_bytes(), head);
            put_bytes(value.as_bytes(), head);
        }
    }
}

/// Decodes a message; `None` if the format is invalid.
pub(crate) fn decode(bytes: &[u8], wall: WallClock, id: MessageId) -> Option<Message> {
    let mut rest = Rest(bytes);
    let has_user = match rest.byte()? {
        VERSION => false,
        WITH_USER => true,
        _ => return None,
    };
    let flags = rest.byte()?;
    let has = |flag: u8| flags & flag != 0;
    let (mut expiry_s, mut expires_at_ns) = (None, u64::MAX);
    if has(EXPIRES) {
        let s = rest.number_u32()?;
        expiry_s = Some(s);
        expires_at_ns =
            if has(RELATIVE) { u64::from(s) * 1_000_000_000 } else { wall.from_unix(rest.u64()?) };
    }
    let source = Source::from_key(rest.u64()?);
    let maker: Option<Arc<str>> = if has_user { Some(rest.text()?.into()) } else { None };
    let topic: Arc<str> = rest.text()?.into();
    let mut properties = PublishProperties { message_expiry_s: expiry_s, ..Default::default() };
    let mut user = UserPropertiesBuf::default();
    if has(PROPERTIES) {
        let flags = rest.byte()?;
        let has = |flag: u8| flags & flag != 0;
        properties.payload_format_utf8 = has(FORMAT).then_some(has(FORMAT_IS_UTF8));
        if has(RESPONSE_TOPIC) {
            properties.response_topic = Some(rest.text()?);
        }
        if has(CONTENT_TYPE) {
            properties.content_type = Some(rest.text()?);
        }
        if has(CORRELATION_DATA) {
            properties.correlation_data = Some(rest.bytes()?);
        }
        for _ in 0..rest.number()? {
            user.push(rest.text()?, rest.text()?).ok()?;
        }
    }
    properties.user_properties = user.view();
    let publish = Publish {
        topic: &topic,
        qos: QoS::from_u8(flags & QOS)?,
        retain: has(RETAIN),
        properties,
        payload: rest.0,
        ..Publish::default()
    };
    let restored = Restored { id, source, expires_at_ns, user: maker.as_ref() };
    Some(Message::restored(Arc::clone(&topic), &publish, restored))
}

#[cfg(test)]
mod tests;
