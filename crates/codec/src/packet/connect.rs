//! CONNECT.

use crate::property::repeated::Span;
use crate::property::{self, PropertySink, id};
use crate::read::Reader;
use crate::write::{Body, Properties, Sink, encode_frame, frame_len, put_properties};
use crate::{
    DecodeError, EncodeError, Frame, PacketType, QoS, ReasonCode, UserProperties, Version, Will,
};

const RESERVED: u8 = 0x01;
const CLEAN_START: u8 = 0x02;
const WILL: u8 = 0x04;
const WILL_QOS_SHIFT: u32 = 3;
const WILL_RETAIN: u8 = 0x20;
const PASSWORD: u8 = 0x40;
const USERNAME: u8 = 0x80;

/// CONNECT: the first packet from a client (3.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connect<'a> {
    /// The protocol version of the connection.
    pub version: Version,
    /// Discard an existing session; before 5.0 (clean session) also this one when it ends.
    pub clean_start: bool,
    /// Seconds; 0 disables the keep alive.
    pub keep_alive_s: u16,
    /// Empty if the server is to assign one.
    pub client_id: &'a str,
    /// The user name to authenticate with.
    pub username: Option<&'a str>,
    /// Any bytes; before 5.0 only with a user name.
    pub password: Option<&'a [u8]>,
    /// The message to publish if the client disappears.
    pub will: Option<Will<'a>>,
    /// Empty before 5.0.
    pub properties: ConnectProperties<'a>,
}

/// The properties of CONNECT (3.1.2.11, which also defines the defaults of absent ones).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectProperties<'a> {
    /// Seconds that the session outlives the connection; 0xFFFF_FFFF means that it never expires.
    pub session_expiry_s: Option<u32>,
    /// The number of unacknowledged QoS 1 and 2 messages that the client accepts; not zero.
    pub receive_maximum: Option<u16>,
    /// The size in bytes of the largest packet that the client accepts; not zero.
    pub packet_size_max: Option<u32>,
    /// The highest topic alias that the client accepts.
    pub topic_alias_maximum: Option<u16>,
    /// Whether the client requests response information in CONNACK.
    pub request_response_information: Option<bool>,
    /// Whether the client accepts reason strings and user properties in all answers; absent is
    /// yes.
    pub request_problem_information: Option<bool>,
    /// The method of an extended authentication.
    pub authentication_method: Option<&'a str>,
    /// Authentication data, defined by the method; only with a method.
    pub authentication_data: Option<&'a [u8]>,
    /// In their order.
    pub user_properties: UserProperties<'a>,
}

impl<'a> Connect<'a> {
    /// Decodes a CONNECT of any version: the fields in their order [MQTT-3.1.3-1], the client
    /// identifier first and always present [MQTT-3.1.3-3].
    ///
    /// # Errors
    /// Unsupported protocol version: the name is wrong [MQTT-3.1.2-1] or the level unknown
    /// [MQTT-3.1.2-2]; [`Connect::reply_version`] tells how to answer. Client identifier not valid:
    /// empty in 3.1, or in 3.1.1 without clean session. Topic name invalid: the will topic.
    /// Malformed: the reserved flag [MQTT-3.1.2-3], will flags without a will [MQTT-3.1.2-11],
    /// [MQTT-3.1.2-13], will QoS 3 [MQTT-3.1.2-12], before 5.0 a password without user name,
    /// truncated fields, bytes behind the last one. Protocol error: repeated properties, zero where
    /// it is forbidden, authentication data without a method.
    pub fn decode(frame: &Frame<'a>) -> Result<Self, DecodeError> {
        if frame.first_byte != PacketType::Connect.first_byte() {
            return Err(DecodeError::protocol("the packet is not a CONNECT [MQTT-3.1.0-1]"));
        }
        let mut reader = Reader::new(frame.body);
        let version = decode_version(&mut reader)?;
        frame.check_header_len(version)?;
        let flags = reader.u8()?;
        let will_qos = check_flags(flags, version)?;
        let clean_start = flags & CLEAN_START != 0;
        let keep_alive_s = reader.u16()?;
        let mut properties = ConnectProperties::default();
        if version.is_v5() {
            properties = ConnectProperties::decode(property::block(&mut reader)?)?;
        }
        let client_id = reader.string()?; // [MQTT-3.1.3-4]
        check_client_id(client_id, clean_start, version)?;
        let mut will = None;
        if flags & WILL != 0 {
            // [MQTT-3.1.2-9]
            will = Some(Will::decode(&mut reader, version, will_qos, flags & WILL_RETAIN != 0)?);
        }
        // In 3.1 the flags of these two may be set although the packet ends before the fields.
        // Otherwise flag and field go together: [MQTT-3.1.2-16] to [MQTT-3.1.2-19],
        // [MQTT-3.1.3-12].
        let may_lack = |reader: &Reader<'_>| version == Version::V31 && reader.is_empty();
        let mut username = None;
        if flags & USERNAME != 0 && !may_lack(&reader) {
            username = Some(reader.string()?);
        }
        let mut password = None;
        if flags & PASSWORD != 0 && !may_lack(&reader) {
            password = Some(reader.binary()?);
        }
        reader.finish()?;
        Ok(Self {
            version,
            clean_start,
            keep_alive_s,
            client_id,
            username,
            password,
            will,
            properties,
        })
    }

    /// The version in which to encode a CONNACK that refuses this CONNECT, even if the rest of it
    /// is malformed; `None` if it does not look like MQTT: then close without an answer.
    ///
    /// Levels from 6 to 127 are taken for successors of 5.0. Levels with the high bit are 3.1.1 and
    /// 3.1 of mosquitto bridges that probe for another mosquitto; they expect the old CONNACK.
    #[must_use]
    pub fn reply_version(frame: &Frame<'_>) -> Option<Version> {
        let mut reader = Reader::new(frame.body);
        let name = reader.binary().ok()?;
        let level = reader.u8().ok()?;
        match (name, level) {
            (b"MQIsdp", _) => Some(Version::V31),
            (b"MQTT", 5..=0x7F) => Some(Version::V5),
            (b"MQTT", _) => Some(Version::V311),
            _ => None,
        }
    }

    /// Appends the packet to `out`, in its own version.
    ///
    /// # Errors
    /// A field that is too long, or before 5.0 a password without user name; `out` is then
    /// unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_frame(PacketType::Connect.first_byte(), self, self.version, out)
    }

    /// How many bytes [`Connect::encode`] would append.
    ///
    /// # Errors
    /// The same as [`Connect::encode`].
    pub fn encoded_len(&self) -> Result<usize, EncodeError> {
        frame_len(self, self.version)
    }

    fn flags(&self) -> u8 {
        let mut flags = 0;
        if self.clean_start {
            flags |= CLEAN_START;
        }
        if let Some(will) = &self.will {
            flags |= WILL | (will.qos as u8) << WILL_QOS_SHIFT;
            if will.retain {
                flags |= WILL_RETAIN;
            }
        }
        if self.password.is_some() {
            flags |= PASSWORD;
        }
        if self.username.is_some() {
            flags |= USERNAME;
        }
        flags
    }
}

fn decode_version(reader: &mut Reader<'_>) -> Result<Version, DecodeError> {
    let name = reader.binary()?;
    let known_name = matches!(name, b"MQTT" | b"MQIsdp");
    if !known_name {
        return Err(DecodeError::new(
            ReasonCode::UNSUPPORTED_PROTOCOL_VERSION,
            "the protocol name is not MQTT [MQTT-3.1.2-1]",
        ));
    }
    let level = reader.u8()?;
    Version::ALL
        .into_iter()
        .find(|v| v.protocol_level() == level && v.protocol_name().as_bytes() == name)
        .ok_or(
            const {
                DecodeError::new(
                    ReasonCode::UNSUPPORTED_PROTOCOL_VERSION,
                    "the protocol version is not 3.1, 3.1.1 or 5.0 [MQTT-3.1.2-2]",
                )
            },
        )
}

/// Checks the connect flags and returns the will QoS in them.
fn check_flags(flags: u8, version: Version) -> Result<QoS, DecodeError> {
    if flags & RESERVED != 0 {
        return Err(DecodeError::malformed("the reserved connect flag is set [MQTT-3.1.2-3]"));
    }
    let Some(will_qos) = QoS::from_u8(flags >> WILL_QOS_SHIFT & 0b11) else {
        return Err(DecodeError::malformed("the will QoS is 3 [MQTT-3.1.2-12]"));
    };
    if flags & WILL == 0 && (will_qos != QoS::AtMostOnce || flags & WILL_RETAIN != 0) {
        return Err(DecodeError::malformed(
            "will QoS or will retain are set without a will [MQTT-3.1.2-11], [MQTT-3.1.2-13]",
        ));
    }
    if !version.is_v5() && flags & PASSWORD != 0 && flags & USERNAME == 0 {
        return Err(DecodeError::malformed("a password without a user name needs MQTT 5.0"));
    }
    Ok(will_qos)
}

/// Checks for an empty identifier, which before 5.0 is legal in 3.1.1 with clean session only.
fn check_client_id(
    client_id: &str,
    clean_session: bool,
    version: Version,
) -> Result<(), DecodeError> {
    let empty_is_legal = match version {
        Version::V31 => false,
        Version::V311 => clean_session,
        Version::V5 => true,
    };
    if client_id.is_empty() && !empty_is_legal {
        return Err(DecodeError::new(
            ReasonCode::CLIENT_IDENTIFIER_NOT_VALID,
            "an empty client identifier needs MQTT 3.1.1 with clean session, or 5.0",
        ));
    }
    Ok(())
}

impl Body for Connect<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        if !version.is_v5() && self.password.is_some() && self.username.is_none() {
            return Err(EncodeError::PasswordWithoutUsername);
        }
        sink.put_binary(version.protocol_name().as_bytes())?;
        sink.put_u8(version.protocol_level());
        sink.put_u8(self.flags());
        sink.put_u16(self.keep_alive_s);
        if version.is_v5() {
            put_properties(sink, &self.properties)?;
        }
        sink.put_binary(self.client_id.as_bytes())?;
        if let Some(will) = &self.will {
            will.write(version, sink)?;
        }
        if let Some(username) = self.username {
            sink.put_binary(username.as_bytes())?;
        }
        if let Some(password) = self.password {
            sink.put_binary(password)?;
        }
        Ok(())
    }
}

impl<'a> ConnectProperties<'a> {
    fn decode(mut block: Reader<'a>) -> Result<Self, DecodeError> {
        let mut properties = Self::default();
        let mut user_properties = Span::default();
        while !block.is_empty() {
            let before = block.rest();
            let identifier = block.u8()?;
            if identifier == id::USER_PROPERTY {
                property::user_property(&mut block)?;
                user_properties.extend(before, block.rest());
            } else {
                properties.decode_one(identifier, &mut block)?;
            }
        }
        if properties.authentication_data.is_some() && properties.authentication_method.is_none() {
            return Err(DecodeError::protocol(
                "authentication data comes without a method (3.1.2.11.10)",
            ));
        }
        properties.user_properties = UserProperties::from_span(user_properties);
        Ok(properties)
    }

    fn decode_one(&mut self, identifier: u8, block: &mut Reader<'a>) -> Result<(), DecodeError> {
        match identifier {
            id::SESSION_EXPIRY_INTERVAL => property::once(&mut self.session_expiry_s, block.u32()?),
            id::RECEIVE_MAXIMUM => {
                property::once(&mut self.receive_maximum, property::nonzero_u16(block)?)
            }
            id::MAXIMUM_PACKET_SIZE => {
                property::once(&mut self.packet_size_max, property::nonzero_u32(block)?)
            }
            id::TOPIC_ALIAS_MAXIMUM => property::once(&mut self.topic_alias_maximum, block.u16()?),
            id::REQUEST_RESPONSE_INFORMATION => {
                property::once(&mut self.request_response_information, property::boolean(block)?)
            }
            id::REQUEST_PROBLEM_INFORMATION => {
                property::once(&mut self.request_problem_information, property::boolean(block)?)
            }
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

impl Properties for ConnectProperties<'_> {
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_u32_property(id::SESSION_EXPIRY_INTERVAL, self.session_expiry_s);
        sink.put_u16_property(id::RECEIVE_MAXIMUM, self.receive_maximum);
        sink.put_u32_property(id::MAXIMUM_PACKET_SIZE, self.packet_size_max);
        sink.put_u16_property(id::TOPIC_ALIAS_MAXIMUM, self.topic_alias_maximum);
        sink.put_bool_property(id::REQUEST_RESPONSE_INFORMATION, self.request_response_information);
        sink.put_bool_property(id::REQUEST_PROBLEM_INFORMATION, self.request_problem_information);
        sink.put_string_property(id::AUTHENTICATION_METHOD, self.authentication_method)?;
        sink.put_binary_property(id::AUTHENTICATION_DATA, self.authentication_data)?;
        sink.put_user_properties(self.user_properties)
    }
}
