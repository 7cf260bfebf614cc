//! DISCONNECT.

use super::reason_properties::put_properties_if_any;
use super::reasons;
use crate::property::repeated::Span;
use crate::property::{self, PropertySink, id};
use crate::read::Reader;
use crate::write::{Body, Properties, Sink, encode_frame, frame_len};
use crate::{
    DecodeError, Direction, EncodeError, Frame, PacketType, ReasonCode, UserProperties, Version,
};

/// DISCONNECT: the last packet on a connection (3.14). Before 5.0 it is empty and sent by clients
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disconnect<'a> {
    /// Why the connection ends.
    pub reason: ReasonCode,
    /// Seconds that the session is to outlive the connection; from the client only.
    pub session_expiry_s: Option<u32>,
    /// A diagnostic text for people.
    pub reason_string: Option<&'a str>,
    /// Another server to use; from the server only.
    pub server_reference: Option<&'a str>,
    /// In their order.
    pub user_properties: UserProperties<'a>,
}

impl<'a> Disconnect<'a> {
    /// A DISCONNECT without properties.
    #[must_use]
    pub const fn new(reason: ReasonCode) -> Self {
        Self {
            reason,
            session_expiry_s: None,
            reason_string: None,
            server_reference: None,
            user_properties: UserProperties::EMPTY,
        }
    }

    /// Decodes a DISCONNECT. In 5.0 an empty body, a reason code, or a reason code with properties
    /// are legal.
    ///
    /// # Errors
    /// Malformed: a body before 5.0, an unknown reason code, wrong properties. Protocol error: a
    /// reason code or property that only the other side may send, such as a session expiry from the
    /// server [MQTT-3.14.2-2].
    pub fn decode(
        frame: &Frame<'a>,
        version: Version,
        direction: Direction,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame.body);
        let mut disconnect = Self::new(ReasonCode::NORMAL_DISCONNECTION);
        if version.is_v5() && !reader.is_empty() {
            disconnect.reason = reasons::disconnect(reader.u8()?, direction)?;
            if !reader.is_empty() {
                disconnect.decode_properties(property::block(&mut reader)?, direction)?;
            }
        }
        reader.finish()?;
        Ok(disconnect)
    }

    fn decode_properties(
        &mut self,
        mut block: Reader<'a>,
        direction: Direction,
    ) -> Result<(), DecodeError> {
        let mut user_properties = Span::default();
        while !block.is_empty() {
            let before = block.rest();
            match block.u8()? {
                id::SESSION_EXPIRY_INTERVAL => {
                    if direction == Direction::ToClient {
                        return Err(DecodeError::protocol(
                            "a server sends a session expiry in DISCONNECT [MQTT-3.14.2-2]",
                        ));
                    }
                    property::once(&mut self.session_expiry_s, block.u32()?)?;
                }
                id::REASON_STRING => property::once(&mut self.reason_string, block.string()?)?,
                id::SERVER_REFERENCE => {
                    if direction == Direction::ToServer {
                        return Err(DecodeError::protocol(
                            "a client sends a server reference in DISCONNECT (3.14.2.2.5)",
                        ));
                    }
                    property::once(&mut self.server_reference, block.string()?)?;
                }
                id::USER_PROPERTY => {
                    property::user_property(&mut block)?;
                    user_properties.extend(before, block.rest());
                }
                _ => return Err(property::NOT_ALLOWED),
            }
        }
        self.user_properties = UserProperties::from_span(user_properties);
        Ok(())
    }

    /// Appends the packet to `out` in its shortest form.
    ///
    /// # Errors
    /// A field that is too long; `out` is then unchanged.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_frame(PacketType::Disconnect.first_byte(), self, version, out)
    }

    /// How many bytes [`Disconnect::encode`] would append.
    ///
    /// # Errors
    /// The same as [`Disconnect::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        frame_len(self, version)
    }

    const fn has_properties(&self) -> bool {
        self.session_expiry_s.is_some()
            || self.reason_string.is_some()
            || self.server_reference.is_some()
            || !self.user_properties.is_empty()
    }
}

impl Body for Disconnect<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        if !version.is_v5() {
            return Ok(());
        }
        if self.reason != ReasonCode::NORMAL_DISCONNECTION || self.has_properties() {
            sink.put_u8(self.reason.value());
        }
        put_properties_if_any(sink, self)
    }
}

impl Properties for Disconnect<'_> {
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_u32_property(id::SESSION_EXPIRY_INTERVAL, self.session_expiry_s);
        sink.put_string_property(id::REASON_STRING, self.reason_string)?;
        sink.put_string_property(id::SERVER_REFERENCE, self.server_reference)?;
        sink.put_user_properties(self.user_properties)
    }
}
