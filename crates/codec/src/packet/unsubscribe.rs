//! UNSUBSCRIBE.

use super::reason_properties::ReasonProperties;
use super::subscribe::TOO_MANY_FILTERS;
use crate::property::repeated::Span;
use crate::property::{self, id};
use crate::read::Reader;
use crate::write::{Body, Sink, encode_frame, frame_len, put_properties};
use crate::{DecodeError, EncodeError, Frame, PacketId, PacketType, UserProperties, Version};

/// UNSUBSCRIBE: the filters of subscriptions to end (3.10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Repeated in the UNSUBACK.
    pub packet_id: PacketId,
    /// 5.0 only.
    pub user_properties: UserProperties<'a>,
    /// At least one; checked strings, but not checked to be valid filters.
    pub filters: Vec<&'a str>,
}

impl<'a> Unsubscribe<'a> {
    /// Decodes an UNSUBSCRIBE.
    ///
    /// # Errors
    /// Malformed: truncated, bad strings, wrong properties. Protocol error: packet identifier zero,
    /// no filter [MQTT-3.10.3-2].
    pub fn decode(frame: &Frame<'a>, version: Version) -> Result<Self, DecodeError> {
        Self::decode_bounded(frame, version, usize::MAX)
    }

    /// [`Unsubscribe::decode`] of at most `filters_max` filters; a packet with more is refused with
    /// [`ReasonCode::QUOTA_EXCEEDED`](crate::ReasonCode::QUOTA_EXCEEDED) before more is read of it.
    ///
    /// # Errors
    /// The same, and too many filters.
    pub fn decode_bounded(
        frame: &Frame<'a>,
        version: Version,
        filters_max: usize,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame.body);
        let packet_id = reader.packet_id()?;
        let mut user_properties = Span::default();
        if version.is_v5() {
            let mut block = property::block(&mut reader)?;
            while !block.is_empty() {
                let before = block.rest();
                if block.u8()? != id::USER_PROPERTY {
                    return Err(property::NOT_ALLOWED);
                }
                property::user_property(&mut block)?;
                user_properties.extend(before, block.rest());
            }
        }
        if reader.is_empty() {
            return Err(DecodeError::protocol("an UNSUBSCRIBE has no filter [MQTT-3.10.3-2]"));
        }
        let mut filters = Vec::new();
        while !reader.is_empty() {
            if filters.len() == filters_max {
                return Err(TOO_MANY_FILTERS);
            }
            filters.push(reader.string()?);
        }
        let user_properties = UserProperties::from_span(user_properties);
        Ok(Self { packet_id, user_properties, filters })
    }

    /// Appends the packet to `out`.
    ///
    /// # Errors
    /// A field that is too long, or no filter; `out` is then unchanged.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_frame(PacketType::Unsubscribe.first_byte(), self, version, out)
    }

    /// How many bytes [`Unsubscribe::encode`] would append.
    ///
    /// # Errors
    /// The same as [`Unsubscribe::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        frame_len(self, version)
    }
}

impl Body for Unsubscribe<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        if self.filters.is_empty() {
            return Err(EncodeError::NoEntries);
        }
        sink.put_u16(self.packet_id.get());
        if version.is_v5() {
            put_properties(
                sink,
                &ReasonProperties { reason_string: None, user_properties: self.user_properties },
            )?;
        }
        for filter in &self.filters {
            sink.put_binary(filter.as_bytes())?;
        }
        Ok(())
    }
}
