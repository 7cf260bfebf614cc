//! PUBLISH.

use std::num::NonZeroU16;

use crate::property::repeated::Span;
use crate::property::{self, PropertySink, id};
use crate::read::Reader;
use crate::write::{Properties, Sink, properties_len};
use crate::{
    DecodeError, Direction, EncodeError, Frame, PacketId, PacketType, QoS, ReasonCode,
    SubscriptionIds, UserProperties, VARINT_MAX, Version, varint, varint_len,
};

/// PUBLISH: an application message in transit (3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Publish<'a> {
    /// A retransmission with the same packet identifier; never with QoS 0.
    pub dup: bool,
    /// The delivery guarantee on this connection.
    pub qos: QoS,
    /// To the server: retain the message. To the client: it is a retained message, or the
    /// publisher's flag with Retain As Published.
    pub retain: bool,
    /// Without wildcards; empty only if a topic alias replaces it.
    pub topic: &'a str,
    /// Present if and only if the QoS is above 0.
    pub packet_id: Option<PacketId>,
    /// Empty before 5.0.
    pub properties: PublishProperties<'a>,
    /// Any bytes, possibly none.
    pub payload: &'a [u8],
}

/// The properties of PUBLISH (3.3.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublishProperties<'a> {
    /// Whether the payload is declared as UTF-8 text. The payload is not checked.
    pub payload_format_utf8: Option<bool>,
    /// Seconds until the message expires.
    pub message_expiry_s: Option<u32>,
    /// The number that replaces, or from now on replaces, the topic on this connection.
    pub topic_alias: Option<NonZeroU16>,
    /// The topic name to send a response to.
    pub response_topic: Option<&'a str>,
    /// Identifies the request that a response belongs to.
    pub correlation_data: Option<&'a [u8]>,
    /// The content type of the payload, for the receiving application.
    pub content_type: Option<&'a str>,
    /// The identifiers of the subscriptions that matched; to the client only.
    pub subscription_ids: SubscriptionIds<'a>,
    /// In their order; forwarded unaltered.
    pub user_properties: UserProperties<'a>,
}

impl<'a> Publish<'a> {
    /// Decodes a PUBLISH. Never allocates.
    ///
    /// # Errors
    /// Malformed: QoS 3 [MQTT-3.3.1-4], DUP with QoS 0 [MQTT-3.3.1-2], bad strings, truncated
    /// fields, unknown properties. Topic name invalid: a wildcard in the topic [MQTT-3.3.2-2].
    /// Topic alias invalid: alias zero [MQTT-3.3.2-8]. Protocol error: packet identifier zero, an
    /// empty topic without alias, a repeated property, a subscription identifier from a client
    /// [MQTT-3.3.4-6].
    #[inline]
    pub fn decode(
        frame: &Frame<'a>,
        version: Version,
        direction: Direction,
    ) -> Result<Self, DecodeError> {
        if frame.type_number() != PacketType::Publish as u8 {
            return Err(DecodeError::protocol("the packet is not a PUBLISH"));
        }
        frame.check_header_len(version)?;
        let dup = frame.first_byte & 0b1000 != 0;
        let Some(qos) = QoS::from_u8(frame.first_byte >> 1 & 0b11) else {
            return Err(DecodeError::malformed("a PUBLISH has QoS 3 [MQTT-3.3.1-4]"));
        };
        if dup && qos == QoS::AtMostOnce {
            return Err(DecodeError::malformed("a PUBLISH has DUP with QoS 0 [MQTT-3.3.1-2]"));
        }
        let mut reader = Reader::new(frame.body);
        let topic = reader.topic_name()?;
        let packet_id = match qos {
            QoS::AtMostOnce => None,
            QoS::AtLeastOnce | QoS::ExactlyOnce => Some(reader.packet_id()?),
        };
        let mut block = Reader::new(&[]);
        if version.is_v5() {
            block = property::block(&mut reader)?;
        }
        let mut publish = Self {
            dup,
            qos,
            retain: frame.first_byte & 0b0001 != 0,
            topic,
            packet_id,
            properties: PublishProperties::default(),
            payload: reader.rest(),
        };
        if !block.is_empty() {
            publish.properties = PublishProperties::decode(&mut block, direction)?;
        }
        if topic.is_empty() && publish.properties.topic_alias.is_none() {
            return Err(DecodeError::protocol("a PUBLISH has neither topic nor alias (3.3.2.1)"));
        }
        Ok(publish)
    }

    /// Appends the packet to `out`, growing it at most once. Before 5.0 without properties.
    ///
    /// # Errors
    /// A field that is too long, or a packet identifier that does not match the QoS; `out` is then
    /// unchanged. DUP is cleared for QoS 0.
    #[inline]
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let lengths = self.lengths(version)?;
        out.reserve(lengths.frame());
        self.put_head(version, lengths, out)?;
        out.extend_from_slice(self.payload);
        Ok(())
    }

    /// Appends everything before the payload, for payloads that are sent by reference. The
    /// remaining length includes the payload.
    ///
    /// # Errors
    /// The same as [`Publish::encode`].
    #[inline]
    pub fn encode_head(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let lengths = self.lengths(version)?;
        out.reserve(lengths.frame() - self.payload.len());
        self.put_head(version, lengths, out)
    }

    /// How many bytes [`Publish::encode`] would append.
    ///
    /// # Errors
    /// The same as [`Publish::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        self.lengths(version).map(Lengths::frame)
    }

    /// Computes the lengths and finds all errors, so that writing cannot fail half-way.
    #[inline]
    fn lengths(&self, version: Version) -> Result<Lengths, EncodeError> {
        if self.topic.len() > usize::from(u16::MAX) {
            return Err(EncodeError::FieldTooLong);
        }
        let has_packet_id = self.qos != QoS::AtMostOnce;
        if self.packet_id.is_some() != has_packet_id {
            return Err(EncodeError::PacketIdMismatch);
        }
        let mut remaining =
            2 + self.topic.len() + 2 * usize::from(has_packet_id) + self.payload.len();
        let mut properties = 0;
        if version.is_v5() {
            if !self.properties.is_empty() {
                properties = properties_len(&self.properties)?;
            }
            remaining += varint_len(properties) + properties as usize;
        }
        match u32::try_from(remaining) {
            Ok(remaining @ ..=VARINT_MAX) => Ok(Lengths { remaining, properties }),
            _ => Err(EncodeError::PacketTooLarge),
        }
    }

    #[inline]
    fn put_head(
        &self,
        version: Version,
        lengths: Lengths,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        // One append for all that is in front of the topic, and one for what mostly follows it:
        // appended byte by byte, a head took three times as many instructions.
        let first = first_byte(self.dup, self.retain, self.qos);
        let topic_len = u16::try_from(self.topic.len()).map_err(|_| EncodeError::FieldTooLong)?;
        let [high, low] = topic_len.to_be_bytes();
        match varint::bytes(lengths.remaining) {
            ([a, ..], 1) => out.put(&[first, a, high, low]),
            ([a, b, ..], 2) => out.put(&[first, a, b, high, low]),
            ([a, b, c, _], 3) => out.put(&[first, a, b, c, high, low]),
            ([a, b, c, d], _) => out.put(&[first, a, b, c, d, high, low]),
        }
        out.put(self.topic.as_bytes());
        let packet_id = self.packet_id.map(|packet_id| packet_id.get().to_be_bytes());
        match packet_id {
            Some([high, low]) if version.is_v5() && lengths.properties == 0 => {
                out.put(&[high, low, 0]);
                return Ok(());
            }
            Some(packet_id) => out.put(&packet_id),
            None => {}
        }
        if version.is_v5() {
            out.put_varint(lengths.properties);
            if lengths.properties > 0 {
                self.properties.write(out)?;
            }
        }
        Ok(())
    }
}

/// The length fields of a PUBLISH, in bytes.
#[derive(Clone, Copy)]
struct Lengths {
    remaining: u32,
    properties: u32,
}

impl Lengths {
    #[inline]
    const fn frame(self) -> usize {
        1 + varint_len(self.remaining) + self.remaining as usize
    }
}

/// The first byte of a PUBLISH; DUP is cleared for QoS 0 [MQTT-3.3.1-2].
#[inline]
pub(crate) const fn first_byte(dup: bool, retain: bool, qos: QoS) -> u8 {
    let dup = dup && !matches!(qos, QoS::AtMostOnce);
    (PacketType::Publish as u8) << 4 | (dup as u8) << 3 | (qos as u8) << 1 | retain as u8
}

impl<'a> PublishProperties<'a> {
    /// True if there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.payload_format_utf8.is_none()
            && self.message_expiry_s.is_none()
            && self.topic_alias.is_none()
            && self.response_topic.is_none()
            && self.correlation_data.is_none()
            && self.content_type.is_none()
            && self.subscription_ids.is_empty()
            && self.user_properties.is_empty()
    }

    fn decode(block: &mut Reader<'a>, direction: Direction) -> Result<Self, DecodeError> {
        let mut properties = Self::default();
        let mut subscription_ids = Span::default();
        let mut user_properties = Span::default();
        while !block.is_empty() {
            let before = block.rest();
            match block.u8()? {
                id::PAYLOAD_FORMAT_INDICATOR => {
                    property::once(&mut properties.payload_format_utf8, property::boolean(block)?)?;
                }
                id::MESSAGE_EXPIRY_INTERVAL => {
                    property::once(&mut properties.message_expiry_s, block.u32()?)?;
                }
                id::TOPIC_ALIAS => {
                    property::once(&mut properties.topic_alias, topic_alias(block)?)?;
                }
                id::RESPONSE_TOPIC => {
                    let topic = property::response_topic(block)?;
                    property::once(&mut properties.response_topic, topic)?;
                }
                id::CORRELATION_DATA => {
                    property::once(&mut properties.correlation_data, block.binary()?)?;
                }
                id::CONTENT_TYPE => {
                    property::once(&mut properties.content_type, block.string()?)?;
                }
                id::SUBSCRIPTION_IDENTIFIER => {
                    if direction == Direction::ToServer {
                        return Err(DecodeError::protocol(
                            "a client sends a subscription identifier in PUBLISH [MQTT-3.3.4-6]",
                        ));
                    }
                    property::subscription_id(block)?;
                    subscription_ids.extend(before, block.rest());
                }
                id::USER_PROPERTY => {
                    property::user_property(block)?;
                    user_properties.extend(before, block.rest());
                }
                _ => return Err(property::NOT_ALLOWED),
            }
        }
        properties.subscription_ids = SubscriptionIds::from_span(subscription_ids);
        properties.user_properties = UserProperties::from_span(user_properties);
        Ok(properties)
    }
}

fn topic_alias(block: &mut Reader<'_>) -> Result<NonZeroU16, DecodeError> {
    NonZeroU16::new(block.u16()?).ok_or(
        const {
            DecodeError::new(
                ReasonCode::TOPIC_ALIAS_INVALID,
                "the topic alias is zero [MQTT-3.3.2-8]",
            )
        },
    )
}

impl Properties for PublishProperties<'_> {
    #[inline]
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_bool_property(id::PAYLOAD_FORMAT_INDICATOR, self.payload_format_utf8);
        sink.put_u32_property(id::MESSAGE_EXPIRY_INTERVAL, self.message_expiry_s);
        sink.put_u16_property(id::TOPIC_ALIAS, self.topic_alias.map(NonZeroU16::get));
        sink.put_string_property(id::RESPONSE_TOPIC, self.response_topic)?;
        sink.put_binary_property(id::CORRELATION_DATA, self.correlation_data)?;
        sink.put_string_property(id::CONTENT_TYPE, self.content_type)?;
        if let Some(bytes) = self.subscription_ids.as_properties() {
            sink.put(bytes);
        } else {
            for subscription_id in self.subscription_ids {
                sink.put_u8(id::SUBSCRIPTION_IDENTIFIER);
                sink.put_varint(subscription_id);
            }
        }
        sink.put_user_properties(self.user_properties)
    }
}
