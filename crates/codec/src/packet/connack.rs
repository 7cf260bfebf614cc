//! CONNACK.

use super::reasons;
use crate::property::repeated::Span;
use crate::property::{self, PropertySink, id};
use crate::read::Reader;
use crate::write::{Body, Properties, Sink, encode_frame, frame_len, put_properties};
use crate::{
    DecodeError, EncodeError, Frame, PacketType, QoS, ReasonCode, UserProperties, Version,
};

/// CONNACK: the server's answer to CONNECT (3.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnAck<'a> {
    /// The server resumes a session; false with every failure, and always in 3.1.
    pub session_present: bool,
    /// Success or the reason for the refusal; before 5.0 mapped with
    /// [`ReasonCode::to_connack_v3`].
    pub reason: ReasonCode,
    /// Empty before 5.0.
    pub properties: ConnAckProperties<'a>,
}

/// The properties of CONNACK (3.2.2.3, which also defines the defaults of absent ones).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnAckProperties<'a> {
    /// Seconds that the session outlives the connection, if different from the request in CONNECT.
    pub session_expiry_s: Option<u32>,
    /// The number of unacknowledged QoS 1 and 2 messages that the server accepts; not zero.
    pub receive_maximum: Option<u16>,
    /// The highest QoS that the server supports, 0 or 1; absent is 2.
    pub maximum_qos: Option<QoS>,
    /// Whether the server stores retained messages; absent is yes.
    pub retain_available: Option<bool>,
    /// The size in bytes of the largest packet that the server accepts; not zero.
    pub packet_size_max: Option<u32>,
    /// The identifier that the server assigned to a client without one.
    pub assigned_client_id: Option<&'a str>,
    /// The highest topic alias that the server accepts.
    pub topic_alias_maximum: Option<u16>,
    /// A diagnostic text for people.
    pub reason_string: Option<&'a str>,
    /// Whether filters may have wildcards; absent is yes.
    pub wildcard_subscription_available: Option<bool>,
    /// Whether subscriptions may have identifiers; absent is yes.
    pub subscription_id_available: Option<bool>,
    /// Whether subscriptions may be shared; absent is yes.
    pub shared_subscription_available: Option<bool>,
    /// The keep alive in seconds that replaces the one in CONNECT.
    pub server_keep_alive_s: Option<u16>,
    /// The basis for response topics.
    pub response_information: Option<&'a str>,
    /// Another server to use.
    pub server_reference: Option<&'a str>,
    /// The method named in CONNECT.
    pub authentication_method: Option<&'a str>,
    /// Authentication data, defined by the method; only with a method.
    pub authentication_data: Option<&'a [u8]>,
    /// In their order.
    pub user_properties: UserProperties<'a>,
}

impl<'a> ConnAck<'a> {
    /// A refusing CONNACK without properties.
    #[must_use]
    pub fn refusal(reason: ReasonCode) -> Self {
        Self { session_present: false, reason, properties: ConnAckProperties::default() }
    }

    /// Decodes a CONNACK.
    ///
    /// # Errors
    /// Malformed: reserved flags [MQTT-3.2.2-1], unknown codes, truncated, trailing bytes, wrong
    /// properties. Protocol error: session present with a failure [MQTT-3.2.2-6], repeated
    /// properties, zero where it is forbidden.
    pub fn decode(frame: &Frame<'a>, version: Version) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame.body);
        let flags = reader.u8()?;
        let code = reader.u8()?;
        // 3.1 reserves the first byte and prescribes no value.
        if version != Version::V31 && flags > 1 {
            return Err(DecodeError::malformed("CONNACK has reserved flags set [MQTT-3.2.2-1]"));
        }
        let session_present = version != Version::V31 && flags == 1;
        let mut properties = ConnAckProperties::default();
        let reason = if version.is_v5() {
            let reason = reasons::connack(code)?;
            properties = ConnAckProperties::decode(property::block(&mut reader)?)?;
            reason
        } else {
            ReasonCode::from_connack_v3(code).ok_or(
                const { DecodeError::malformed("the CONNACK return code is reserved (3.2.2.3)") },
            )?
        };
        reader.finish()?;
        if session_present && reason != ReasonCode::SUCCESS {
            return Err(DecodeError::protocol(
                "a refusing CONNACK has session present set [MQTT-3.2.2-6]",
            ));
        }
        Ok(Self { session_present, reason, properties })
    }

    /// Appends the packet to `out`. Session present is cleared in refusals [MQTT-3.2.2-6].
    ///
    /// # Errors
    /// A field that is too long; `out` is then unchanged.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_frame(PacketType::ConnAck.first_byte(), self, version, out)
    }

    /// How many bytes [`ConnAck::encode`] would append.
    ///
    /// # Errors
    /// The same as [`ConnAck::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        frame_len(self, version)
    }
}

impl Body for ConnAck<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        let session_present =
            self.session_present && !self.reason.is_error() && version != Version::V31;
        sink.put_u8(u8::from(session_present));
        if version.is_v5() {
            sink.put_u8(self.reason.value());
            put_properties(sink, &self.properties)
        } else {
            sink.put_u8(self.reason.to_connack_v3());
            Ok(())
        }
    }
}

impl<'a> ConnAckProperties<'a> {
    fn decode(mut block: Reader<'a>) -> Result<Self, DecodeError> {
        let mut properties = Self::default();
        let mut user_properties = Span::default();
        while !block.is_empty() {
            let before = block.rest();
            let identifier = block.u8()?;
            if identifier == id::USER_PROPERTY {
                property::user_property(&mut block)?;
                user_properties.extend(before, block.rest());
            } else if !properties.decode_limit(identifier, &mut block)? {
                properties.decode_text(identifier, &mut block)?;
            }
        }
        if properties.authentication_data.is_some() && properties.authentication_method.is_none() {
            return Err(DecodeError::protocol(
                "authentication data comes without a method (3.2.2.3.18)",
            ));
        }
        properties.user_properties = UserProperties::from_span(user_properties);
        Ok(properties)
    }

    /// Decodes a number or a boolean; false if the identifier denotes neither.
    fn decode_limit(
        &mut self,
        identifier: u8,
        block: &mut Reader<'a>,
    ) -> Result<bool, DecodeError> {
        match identifier {
            id::SESSION_EXPIRY_INTERVAL => property::once(&mut self.session_expiry_s, block.u32()?),
            id::RECEIVE_MAXIMUM => {
                property::once(&mut self.receive_maximum, property::nonzero_u16(block)?)
            }
            id::MAXIMUM_QOS => {
                let at_least_once = property::boolean(block)?;
                let qos = if at_least_once { QoS::AtLeastOnce } else { QoS::AtMostOnce };
                property::once(&mut self.maximum_qos, qos)
            }
            id::RETAIN_AVAILABLE => {
                property::once(&mut self.retain_available, property::boolean(block)?)
            }
            id::MAXIMUM_PACKET_SIZE => {
                property::once(&mut self.packet_size_max, property::nonzero_u32(block)?)
            }
            id::TOPIC_ALIAS_MAXIMUM => property::once(&mut self.topic_alias_maximum, block.u16()?),
            id::WILDCARD_SUBSCRIPTION_AVAILABLE => {
                property::once(&mut self.wildcard_subscription_available, property::boolean(block)?)
            }
            id::SUBSCRIPTION_IDENTIFIER_AVAILABLE => {
                property::once(&mut self.subscription_id_available, property::boolean(block)?)
            }
            id::SHARED_SUBSCRIPTION_AVAILABLE => {
                property::once(&mut self.shared_subscription_available, property::boolean(block)?)
            }
            id::SERVER_KEEP_ALIVE => property::once(&mut self.server_keep_alive_s, block.u16()?),
            _ => return Ok(false),
        }
        .map(|()| true)
    }

    fn decode_text(&mut self, identifier: u8, block: &mut Reader<'a>) -> Result<(), DecodeError> {
        match identifier {
            id::ASSIGNED_CLIENT_IDENTIFIER => {
                property::once(&mut self.assigned_client_id, block.string()?)
            }
            id::REASON_STRING => property::once(&mut self.reason_string, block.string()?),
            id::RESPONSE_INFORMATION => {
                property::once(&mut self.response_information, block.string()?)
            }
            id::SERVER_REFERENCE => property::once(&mut self.server_reference, block.string()?),
            id::AUTHENTICATION_METHOD => {
                property::once(&mut self.authentication_method, block.string()?)
            }
            id::AUTHENTICATION_DATA => {
                property::once(&mut self.authentication_data, block.binary()?)
            }
            _ => Err(property::NOT_ALLOWED),
        }
    }
}

impl Properties for ConnAckProperties<'_> {
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        // An absent maximum QoS means 2 (3.2.2.3.4).
        let maximum_qos = match self.maximum_qos {
            Some(QoS::AtMostOnce) => Some(false),
            Some(QoS::AtLeastOnce) => Some(true),
            Some(QoS::ExactlyOnce) | None => None,
        };
        sink.put_u32_property(id::SESSION_EXPIRY_INTERVAL, self.session_expiry_s);
        sink.put_u16_property(id::RECEIVE_MAXIMUM, self.receive_maximum);
        sink.put_bool_property(id::MAXIMUM_QOS, maximum_qos);
        sink.put_bool_property(id::RETAIN_AVAILABLE, self.retain_available);
        sink.put_u32_property(id::MAXIMUM_PACKET_SIZE, self.packet_size_max);
        sink.put_string_property(id::ASSIGNED_CLIENT_IDENTIFIER, self.assigned_client_id)?;
        sink.put_u16_property(id::TOPIC_ALIAS_MAXIMUM, self.topic_alias_maximum);
        sink.put_string_property(id::REASON_STRING, self.reason_string)?;
        sink.put_bool_property(
            id::WILDCARD_SUBSCRIPTION_AVAILABLE,
            self.wildcard_subscription_available,
        );
        sink.put_bool_property(
            id::SUBSCRIPTION_IDENTIFIER_AVAILABLE,
            self.subscription_id_available,
        );
        sink.put_bool_property(
            id::SHARED_SUBSCRIPTION_AVAILABLE,
            self.shared_subscription_available,
        );
        sink.put_u16_property(id::SERVER_KEEP_ALIVE, self.server_keep_alive_s);
        sink.put_string_property(id::RESPONSE_INFORMATION, self.response_information)?;
        sink.put_string_property(id::SERVER_REFERENCE, self.server_reference)?;
        sink.put_string_property(id::AUTHENTICATION_METHOD, self.authentication_method)?;
        sink.put_binary_property(id::AUTHENTICATION_DATA, self.authentication_data)?;
        sink.put_user_properties(self.user_properties)
    }
}
