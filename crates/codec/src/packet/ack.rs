//! PUBACK, PUBREC, PUBREL and PUBCOMP, which share one layout.

use super::kind::{AckKind, check_first_byte};
use super::reason_properties::{ReasonProperties, decode_reason_properties, put_properties_if_any};
use super::reasons;
use crate::property;
use crate::read::Reader;
use crate::write::{Body, Sink, encode_frame, frame_len};
use crate::{
    DecodeError, Direction, EncodeError, Frame, PacketId, ReasonCode, UserProperties, Version,
};

/// The content of PUBACK, PUBREC, PUBREL or PUBCOMP (3.4 to 3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The identifier of the PUBLISH.
    pub packet_id: PacketId,
    /// Always success before 5.0.
    pub reason: ReasonCode,
    /// A diagnostic text for people, 5.0 only.
    pub reason_string: Option<&'a str>,
    /// 5.0 only.
    pub user_properties: UserProperties<'a>,
}

impl<'a> Ack<'a> {
    /// An acknowledgement without properties.
    #[inline]
    #[must_use]
    pub const fn new(packet_id: PacketId, reason: ReasonCode) -> Self {
        Self { packet_id, reason, reason_string: None, user_properties: UserProperties::EMPTY }
    }

    /// Decodes the body of an acknowledgement of this kind. All three forms of 5.0 are legal:
    /// identifier alone, with reason code, with reason code and properties.
    ///
    /// # Errors
    /// Malformed: wrong flags [MQTT-3.6.1-1], truncated, too long (more than two bytes before 5.0),
    /// a reason code that the packet may not carry, wrong properties. Protocol error: packet
    /// identifier zero, a repeated reason string.
    #[inline]
    pub fn decode(frame: &Frame<'a>, kind: AckKind, version: Version) -> Result<Self, DecodeError> {
        if frame.first_byte != kind.packet_type().first_byte() {
            check_flags(frame, kind, version)?;
        }
        frame.check_header_len(version)?;
        let mut reader = Reader::new(frame.body);
        let mut ack = Self::new(reader.packet_id()?, ReasonCode::SUCCESS);
        if version.is_v5() && !reader.is_empty() {
            ack.reason = reasons::ack(kind, reader.u8()?)?;
            if !reader.is_empty() {
                let block = property::block(&mut reader)?;
                (ack.reason_string, ack.user_properties) = decode_reason_properties(block)?;
            }
        }
        reader.finish()?;
        Ok(ack)
    }

    /// Appends the packet to `out` in its shortest form.
    ///
    /// # Errors
    /// A field that is too long; `out` is then unchanged.
    #[inline]
    pub fn encode(
        &self,
        kind: AckKind,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let first_byte = kind.packet_type().first_byte();
        let [high, low] = self.packet_id.get().to_be_bytes();
        if !version.is_v5() || (self.reason == ReasonCode::SUCCESS && !self.has_properties()) {
            out.extend_from_slice(&[first_byte, 2, high, low]);
            return Ok(());
        }
        encode_frame(first_byte, self, version, out)
    }

    /// How many bytes [`Ack::encode`] would append.
    ///
    /// # Errors
    /// The same as [`Ack::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        frame_len(self, version)
    }

    #[inline]
    const fn has_properties(&self) -> bool {
        self.reason_string.is_some() || !self.user_properties.is_empty()
    }
}

/// Checks a first byte other than the usual one: in 3.1, PUBREL may carry DUP.
#[cold]
fn check_flags(frame: &Frame<'_>, kind: AckKind, version: Version) -> Result<(), DecodeError> {
    // Acknowledgements travel in both directions.
    if check_first_byte(frame.first_byte, version, Direction::ToServer)? == kind.packet_type() {
        Ok(())
    } else {
        Err(DecodeError::protocol("the packet is not an acknowledgement of this kind"))
    }
}

impl Body for Ack<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_u16(self.packet_id.get());
        if !version.is_v5() {
            return Ok(());
        }
        if self.reason != ReasonCode::SUCCESS || self.has_properties() {
            sink.put_u8(self.reason.value());
        }
        put_properties_if_any(
            sink,
            &ReasonProperties {
                reason_string: self.reason_string,
                user_properties: self.user_properties,
            },
        )
    }
}
