//! SUBACK.

use super::reason_properties::{ReasonProperties, decode_reason_properties};
use super::reasons;
use crate::property;
use crate::read::Reader;
use crate::write::{Body, Sink, encode_frame, frame_len, put_properties};
use crate::{
    DecodeError, EncodeError, Frame, PacketId, PacketType, ReasonCode, UserProperties, Version,
};

/// SUBACK: the result for each filter of a SUBSCRIBE, in the same order (3.9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubAck<'a> {
    /// The identifier of the SUBSCRIBE.
    pub packet_id: PacketId,
    /// One per filter: a granted QoS or a failure, which before 5.0 is written as 0x80.
    pub reasons: Vec<ReasonCode>,
    /// A diagnostic text for people, 5.0 only.
    pub reason_string: Option<&'a str>,
    /// 5.0 only.
    pub user_properties: UserProperties<'a>,
}

impl<'a> SubAck<'a> {
    /// Decodes a SUBACK.
    ///
    /// # Errors
    /// Malformed: truncated, unknown reason codes, wrong properties. Protocol error: packet
    /// identifier zero, no reason code at all.
    pub fn decode(frame: &Frame<'a>, version: Version) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame.body);
        let packet_id = reader.packet_id()?;
        let (mut reason_string, mut user_properties) = (None, UserProperties::EMPTY);
        if version.is_v5() {
            let block = property::block(&mut reader)?;
            (reason_string, user_properties) = decode_reason_properties(block)?;
        }
        let codes = reader.rest();
        if codes.is_empty() {
            return Err(DecodeError::protocol("a SUBACK has no reason code [MQTT-3.8.4-6]"));
        }
        let code = if version.is_v5() { reasons::suback } else { reasons::suback_v3 };
        let reasons = codes.iter().map(|&value| code(value)).collect::<Result<_, _>>()?;
        Ok(Self { packet_id, reasons, reason_string, user_properties })
    }

    /// Appends the packet to `out`.
    ///
    /// # Errors
    /// A field that is too long, or no reason code; `out` is then unchanged.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_frame(PacketType::SubAck.first_byte(), self, version, out)
    }

    /// How many bytes [`SubAck::encode`] would append.
    ///
    /// # Errors
    /// The same as [`SubAck::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        frame_len(self, version)
    }
}

impl Body for SubAck<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        if self.reasons.is_empty() {
            return Err(EncodeError::NoEntries);
        }
        sink.put_u16(self.packet_id.get());
        if version.is_v5() {
            put_properties(
                sink,
                &ReasonProperties {
                    reason_string: self.reason_string,
                    user_properties: self.user_properties,
                },
            )?;
        }
        for reason in &self.reasons {
            sink.put_u8(if version.is_v5() { reason.value() } else { reason.to_suback_v3() });
        }
        Ok(())
    }
}
