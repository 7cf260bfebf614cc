//! UNSUBACK.

use super::reason_properties::{ReasonProperties, decode_reason_properties};
use super::reasons;
use crate::property;
use crate::read::Reader;
use crate::write::{Body, Sink, encode_frame, frame_len, put_properties};
use crate::{
    DecodeError, EncodeError, Frame, PacketId, PacketType, ReasonCode, UserProperties, Version,
};

/// UNSUBACK: the result for each filter of an UNSUBSCRIBE, in the same order (3.11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsubAck<'a> {
    /// The identifier of the UNSUBSCRIBE.
    pub packet_id: PacketId,
    /// One per filter; empty before 5.0, where UNSUBACK has no codes.
    pub reasons: Vec<ReasonCode>,
    /// A diagnostic text for people, 5.0 only.
    pub reason_string: Option<&'a str>,
    /// 5.0 only.
    pub user_properties: UserProperties<'a>,
}

impl<'a> UnsubAck<'a> {
    /// Decodes an UNSUBACK.
    ///
    /// # Errors
    /// Malformed: truncated, too long (more than two bytes before 5.0), unknown reason codes, wrong
    /// properties. Protocol error: packet identifier zero, no reason code in 5.0.
    pub fn decode(frame: &Frame<'a>, version: Version) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame.body);
        let packet_id = reader.packet_id()?;
        if !version.is_v5() {
            reader.finish()?;
            return Ok(Self {
                packet_id,
                reasons: Vec::new(),
                reason_string: None,
                user_properties: UserProperties::EMPTY,
            });
        }
        let block = property::block(&mut reader)?;
        let (reason_string, user_properties) = decode_reason_properties(block)?;
        let codes = reader.rest();
        if codes.is_empty() {
            return Err(DecodeError::protocol("an UNSUBACK has no reason code [MQTT-3.11.3-2]"));
        }
        let reasons =
            codes.iter().map(|&value| reasons::unsuback(value)).collect::<Result<_, _>>()?;
        Ok(Self { packet_id, reasons, reason_string, user_properties })
    }

    /// Appends the packet to `out`.
    ///
    /// # Errors
    /// A field that is too long, or no reason code in 5.0; `out` is then unchanged.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_frame(PacketType::UnsubAck.first_byte(), self, version, out)
    }

    /// How many bytes [`UnsubAck::encode`] would append.
    ///
    /// # Errors
    /// The same as [`UnsubAck::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        frame_len(self, version)
    }
}

impl Body for UnsubAck<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_u16(self.packet_id.get());
        if !version.is_v5() {
            return Ok(());
        }
        if self.reasons.is_empty() {
            return Err(EncodeError::NoEntries);
        }
        put_properties(
            sink,
            &ReasonProperties {
                reason_string: self.reason_string,
                user_properties: self.user_properties,
            },
        )?;
        for reason in &self.reasons {
            sink.put_u8(reason.value());
        }
        Ok(())
    }
}
