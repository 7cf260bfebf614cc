//! The will in CONNECT.

use crate::property::repeated::Span;
use crate::property::{self, PropertySink, id};
use crate::read::Reader;
use crate::write::{Body, Properties, Sink, put_properties};
use crate::{DecodeError, EncodeError, QoS, ReasonCode, UserProperties, Version};

/// The message that the server publishes if the client goes without DISCONNECT (3.1.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Will<'a> {
    /// A topic name.
    pub topic: &'a str,
    /// Any bytes, at most 65,535.
    pub payload: &'a [u8],
    /// The QoS to publish with.
    pub qos: QoS,
    /// Whether to publish as a retained message.
    pub retain: bool,
    /// Empty before 5.0.
    pub properties: WillProperties<'a>,
}

/// The properties of a will (3.1.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WillProperties<'a> {
    /// Seconds to wait before publishing; absent is 0. Not forwarded.
    pub delay_s: Option<u32>,
    /// Whether the payload is declared as UTF-8 text.
    pub payload_format_utf8: Option<bool>,
    /// Seconds from publication until the message expires.
    pub message_expiry_s: Option<u32>,
    /// The content type of the payload.
    pub content_type: Option<&'a str>,
    /// The topic name to send a response to.
    pub response_topic: Option<&'a str>,
    /// Identifies the request that a response belongs to.
    pub correlation_data: Option<&'a [u8]>,
    /// In their order; forwarded unaltered.
    pub user_properties: UserProperties<'a>,
}

impl<'a> Will<'a> {
    pub(super) fn decode(
        reader: &mut Reader<'a>,
        version: Version,
        qos: QoS,
        retain: bool,
    ) -> Result<Self, DecodeError> {
        let mut properties = WillProperties::default();
        if version.is_v5() {
            properties = WillProperties::decode(property::block(reader)?)?;
        }
        let topic = reader.topic_name()?; // [MQTT-3.1.3-11]
        if topic.is_empty() {
            return Err(DecodeError::new(
                ReasonCode::TOPIC_NAME_INVALID,
                "the will topic is empty [MQTT-4.7.3-1]",
            ));
        }
        let payload = reader.binary()?;
        Ok(Self { topic, payload, qos, retain, properties })
    }
}

impl Body for Will<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        if version.is_v5() {
            put_properties(sink, &self.properties)?;
        }
        sink.put_binary(self.topic.as_bytes())?;
        sink.put_binary(self.payload)
    }
}

impl<'a> WillProperties<'a> {
    fn decode(mut block: Reader<'a>) -> Result<Self, DecodeError> {
        let mut properties = Self::default();
        let mut user_properties = Span::default();
        while !block.is_empty() {
            let before = block.rest();
            match block.u8()? {
                id::WILL_DELAY_INTERVAL => property::once(&mut properties.delay_s, block.u32()?)?,
                id::PAYLOAD_FORMAT_INDICATOR => property::once(
                    &mut properties.payload_format_utf8,
                    property::boolean(&mut block)?,
                )?,
                id::MESSAGE_EXPIRY_INTERVAL => {
                    property::once(&mut properties.message_expiry_s, block.u32()?)?;
                }
                id::CONTENT_TYPE => property::once(&mut properties.content_type, block.string()?)?,
                id::RESPONSE_TOPIC => {
                    let topic = property::response_topic(&mut block)?;
                    property::once(&mut properties.response_topic, topic)?;
                }
                id::CORRELATION_DATA => {
                    property::once(&mut properties.correlation_data, block.binary()?)?;
                }
                id::USER_PROPERTY => {
                    property::user_property(&mut block)?;
                    user_properties.extend(before, block.rest());
                }
                _ => return Err(property::NOT_ALLOWED),
            }
        }
        properties.user_properties = UserProperties::from_span(user_properties);
        Ok(properties)
    }
}

impl Properties for WillProperties<'_> {
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_u32_property(id::WILL_DELAY_INTERVAL, self.delay_s);
        sink.put_bool_property(id::PAYLOAD_FORMAT_INDICATOR, self.payload_format_utf8);
        sink.put_u32_property(id::MESSAGE_EXPIRY_INTERVAL, self.message_expiry_s);
        sink.put_string_property(id::CONTENT_TYPE, self.content_type)?;
        sink.put_string_property(id::RESPONSE_TOPIC, self.response_topic)?;
        sink.put_binary_property(id::CORRELATION_DATA, self.correlation_data)?;
        sink.put_user_properties(self.user_properties)
    }
}
