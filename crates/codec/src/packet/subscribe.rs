//! SUBSCRIBE.

use crate::property::repeated::Span;
use crate::property::{self, PropertySink, id};
use crate::read::Reader;
use crate::write::{Body, Properties, Sink, encode_frame, frame_len, put_properties};
use crate::{
    DecodeError, EncodeError, Frame, PacketId, PacketType, QoS, ReasonCode, UserProperties,
    VARINT_MAX, Version,
};

/// The packet has more filters than its receiver takes in one.
pub(super) const TOO_MANY_FILTERS: DecodeError = DecodeError {
    reason: ReasonCode::QUOTA_EXCEEDED,
    message: "one packet has too many topic filters",
};

/// SUBSCRIBE: filters with their options (3.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Repeated in the SUBACK.
    pub packet_id: PacketId,
    /// 1 to 268,435,455; repeated in each PUBLISH that matches one of the filters. 5.0 only.
    pub subscription_id: Option<u32>,
    /// 5.0 only.
    pub user_properties: UserProperties<'a>,
    /// At least one.
    pub filters: Vec<SubscribeFilter<'a>>,
}

/// One filter of a SUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscribeFilter<'a> {
    /// A checked string, but not checked to be a valid topic filter.
    pub filter: &'a str,
    /// How to deliver matching messages.
    pub options: SubscribeOptions,
}

/// The options of a subscription (3.8.3.1). Before 5.0 only the QoS exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SubscribeOptions {
    /// The highest QoS of deliveries.
    pub qos: QoS,
    /// Do not deliver messages that the same client published.
    pub no_local: bool,
    /// Deliver with the RETAIN flag of the publisher instead of 0.
    pub retain_as_published: bool,
    /// Whether to send the retained messages that match.
    pub retain_handling: RetainHandling,
}

/// When a SUBSCRIBE triggers sending of the retained messages that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum RetainHandling {
    /// Always; the only behaviour before 5.0.
    #[default]
    Always = 0,
    /// Only if the subscription did not exist yet.
    IfNew = 1,
    /// Never.
    Never = 2,
}

impl SubscribeOptions {
    /// The options of 3.1.1 and the defaults of 5.0.
    #[must_use]
    pub const fn new(qos: QoS) -> Self {
        Self {
            qos,
            no_local: false,
            retain_as_published: false,
            retain_handling: RetainHandling::Always,
        }
    }

    /// The options byte.
    #[must_use]
    pub const fn to_u8(self, version: Version) -> u8 {
        let qos = self.qos as u8;
        if !version.is_v5() {
            return qos;
        }
        qos | (self.no_local as u8) << 2
            | (self.retain_as_published as u8) << 3
            | (self.retain_handling as u8) << 4
    }

    /// Decodes an options byte.
    ///
    /// # Errors
    /// Malformed for reserved bits [MQTT-3.8.3-5]; a protocol error for QoS 3 and retain handling 3
    /// (3.8.3.1).
    pub const fn from_u8(byte: u8, version: Version) -> Result<Self, DecodeError> {
        let reserved = if version.is_v5() { 0xC0 } else { 0xFC };
        if byte & reserved != 0 {
            return Err(DecodeError::malformed(
                "the subscription options have reserved bits set [MQTT-3.8.3-5]",
            ));
        }
        let Some(qos) = QoS::from_u8(byte & 0b11) else {
            return Err(DecodeError::protocol("a subscription asks for QoS 3 (3.8.3.1)"));
        };
        let retain_handling = match byte >> 4 & 0b11 {
            0 => RetainHandling::Always,
            1 => RetainHandling::IfNew,
            2 => RetainHandling::Never,
            _ => {
                return Err(DecodeError::protocol(
                    "a subscription has retain handling 3 (3.8.3.1)",
                ));
            }
        };
        Ok(Self {
            qos,
            no_local: byte & 0b0100 != 0,
            retain_as_published: byte & 0b1000 != 0,
            retain_handling,
        })
    }
}

impl<'a> Subscribe<'a> {
    /// Decodes a SUBSCRIBE.
    ///
    /// # Errors
    /// Malformed: truncated, bad strings, reserved option bits, wrong properties. Protocol error:
    /// packet identifier zero, no filter [MQTT-3.8.3-2], QoS 3, retain handling 3, No Local on a
    /// shared subscription [MQTT-3.8.3-4], subscription identifier zero or twice.
    pub fn decode(frame: &Frame<'a>, version: Version) -> Result<Self, DecodeError> {
        Self::decode_bounded(frame, version, usize::MAX)
    }

    /// [`Subscribe::decode`] of at most `filters_max` filters; a packet with more is refused with
    /// [`ReasonCode::QUOTA_EXCEEDED`] before more is read of it.
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
        let mut subscription_id = None;
        let mut user_properties = Span::default();
        if version.is_v5() {
            let mut block = property::block(&mut reader)?;
            while !block.is_empty() {
                let before = block.rest();
                match block.u8()? {
                    id::SUBSCRIPTION_IDENTIFIER => {
                        let value = property::subscription_id(&mut block)?;
                        property::once(&mut subscription_id, value)?;
                    }
                    id::USER_PROPERTY => {
                        property::user_property(&mut block)?;
                        user_properties.extend(before, block.rest());
                    }
                    _ => return Err(property::NOT_ALLOWED),
                }
            }
        }
        if reader.is_empty() {
            return Err(DecodeError::protocol("a SUBSCRIBE has no filter [MQTT-3.8.3-2]"));
        }
        let mut filters = Vec::new();
        while !reader.is_empty() {
            if filters.len() == filters_max {
                return Err(TOO_MANY_FILTERS);
            }
            let filter = reader.string()?;
            let options = SubscribeOptions::from_u8(reader.u8()?, version)?;
            if options.no_local && filter.starts_with("$share/") {
                return Err(DecodeError::protocol(
                    "No Local is set on a shared subscription [MQTT-3.8.3-4]",
                ));
            }
            filters.push(SubscribeFilter { filter, options });
        }
        let user_properties = UserProperties::from_span(user_properties);
        Ok(Self { packet_id, subscription_id, user_properties, filters })
    }

    /// Appends the packet to `out`.
    ///
    /// # Errors
    /// A field that is too long, no filter, or a subscription identifier out of range; `out` is
    /// then unchanged.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode_frame(PacketType::Subscribe.first_byte(), self, version, out)
    }

    /// How many bytes [`Subscribe::encode`] would append.
    ///
    /// # Errors
    /// The same as [`Subscribe::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        frame_len(self, version)
    }
}

impl Body for Subscribe<'_> {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError> {
        if self.filters.is_empty() {
            return Err(EncodeError::NoEntries);
        }
        sink.put_u16(self.packet_id.get());
        if version.is_v5() {
            put_properties(sink, self)?;
        }
        for SubscribeFilter { filter, options } in &self.filters {
            sink.put_binary(filter.as_bytes())?;
            sink.put_u8(options.to_u8(version));
        }
        Ok(())
    }
}

impl Properties for Subscribe<'_> {
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        if let Some(subscription_id) = self.subscription_id {
            if !(1..=VARINT_MAX).contains(&subscription_id) {
                return Err(EncodeError::SubscriptionIdOutOfRange);
            }
            sink.put_u8(id::SUBSCRIPTION_IDENTIFIER);
            sink.put_varint(subscription_id);
        }
        sink.put_user_properties(self.user_properties)
    }
}
