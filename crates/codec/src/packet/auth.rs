//! AUTH.

use super::reasons;
use crate::property::repeated::Span;
use crate::property::{self, PropertySink, id};
use crate::read::Reader;
use crate::write::{Body, Properties, Sink, encode_frame, frame_len, put_properties};
use crate::{
    DecodeError, Direction, EncodeError, Frame, PacketType, ReasonCode, UserProperties, Version,
};

/// AUTH: a step of an extended authentication, 5.0 only (3.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Auth<'a> {
    /// Success (from the server), continue, or re-authenticate (from the client).
    pub reason: ReasonCode,
    /// The method named in CONNECT; absent only in the shortest form of success.
    pub method: Option<&'a str>,
    /// Authentication data, defined by the method.
    pub data: Option<&'a [u8]>,
    /// A diagnostic text for people.
    pub reason_string: Option<&'a str>,
    /// In their order.
    pub user_properties: UserProperties<'a>,
}

impl<'a> Auth<'a> {
    /// Decodes an AUTH.
    ///
    /// # Errors
    /// Malformed: an unknown reason code, wrong properties. Protocol error: a reason code that only
    /// the other side may send; no method, unless the packet is an empty success.
    pub fn decode(frame: &Frame<'a>, direction: Direction) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame.body);
        let mut auth = Self::default();
        if reader.is_empty() {
            auth.reason = reasons::auth(ReasonCode::SUCCESS.value(), direction)?;
            return Ok(auth);
        }
        auth.reason = reasons::auth(reader.u8()?, direction)?;
        auth.decode_properties(property::block(&mut reader)?)?;
        reader.finish()?;
        if auth.method.is_none() && (auth.reason != ReasonCode::SUCCESS || auth.has_properties()) {
            return Err(DecodeError::protocol(
                "an AUTH has no authentication method (3.15.2.2.2), [MQTT-4.12.0-5]",
            ));
        }
        Ok(auth)
    }

    fn decode_properties(&mut self, mut block: Reader<'a>) -> Result<(), DecodeError> {
        let mut user_properties = Span::default();
        while !block.is_empty() {
            let before = block.rest();
            match block.u8()? {
                id::AUTHENTICATION_METHOD => property::once(&mut self.method, block.string()?)?,
                id::AUTHENTICATION_DATA => property::once(&mut self.data, block.binary()?)?,
                id::REASON_STRING => property::once(&mut self.reason_string, block.string()?)?,
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

    /// Appends the packet to `out`.
    ///
    /// # Errors
    /// A field that is too long, or a version before 5.0; `out` is then unchanged.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_frame(PacketType::Auth.first_byte(), self, version, out)
    }

    /// How many bytes [`Auth::encode`] would append.
    ///
    /// # Errors
    /// The same as [`Auth::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        frame_len(self, version)
    }

    const fn has_properties(&self) -> bool {
        self.method.is_some()
            || self.data.is_some()
            || self.reason_string.is_some()
            || !self.user_properties.is_empty()
    }
}

impl Body for Auth<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        if !version.is_v5() {
            return Err(EncodeError::NotInVersion);
        }
        if self.reason == ReasonCode::SUCCESS && !self.has_properties() {
            return Ok(());
        }
        sink.put_u8(self.reason.value());
        put_properties(sink, self)
    }
}

impl Properties for Auth<'_> {
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_string_property(id::AUTHENTICATION_METHOD, self.method)?;
        sink.put_binary_property(id::AUTHENTICATION_DATA, self.data)?;
        sink.put_string_property(id::REASON_STRING, self.reason_string)?;
        sink.put_user_properties(self.user_properties)
    }
}
