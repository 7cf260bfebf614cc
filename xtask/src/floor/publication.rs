//! A PUBLISH of MQTT 3.1.1 that is made once and sent many times.

use crate::mqtt;

pub(super) const PAYLOAD_BYTES: usize = 128;

/// The packet of one publisher.
pub(super) struct Publication {
    packet: Vec<u8>,
    /// Where the packet identifier is; 0 without one.
    id_at: usize,
    id: u16,
}

impl Publication {
    pub(super) fn new(topic: &str, qos: u8) -> Self {
        let mut body = Vec::new();
        mqtt::push_text(&mut body, topic);
        body.resize(body.len() + if qos == 0 { 0 } else { 2 }, 0);
        body.resize(body.len() + PAYLOAD_BYTES, 0x55);
        let packet = mqtt::packet(0x30 | qos << 1, &body);
        let id_at = if qos == 0 { 0 } else { packet.len() - PAYLOAD_BYTES - 2 };
        Self { packet, id_at, id: 0 }
    }

    /// The next packet, with an identifier of its own.
    pub(super) fn next(&mut self) -> &[u8] {
        if self.id_at > 0 {
            self.id = self.id.checked_add(1).unwrap_or(1);
            let id = self.id.to_be_bytes();
            self.packet[self.id_at..self.id_at + 2].copy_from_slice(&id);
        }
        &self.packet
    }

    /// The next packet, with `stamp` at the beginning of its payload.
    pub(super) fn next_with(&mut self, stamp: u64) -> &[u8] {
        let at = self.packet.len() - PAYLOAD_BYTES;
        self.packet[at..at + 8].copy_from_slice(&stamp.to_le_bytes());
        self.next()
    }

    /// Length of every packet.
    pub(super) fn bytes(&self) -> usize {
        self.packet.len()
    }
}

/// What a subscriber needs of a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) stamp: u64,
    /// With QoS 1.
    pub(super) id: Option<u16>,
}

impl Delivery {
    /// Reads a packet that was published by [`Publication::next_with`].
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let (first, at) = (packet.first()?, packet.len().checked_sub(PAYLOAD_BYTES)?);
        let stamp = u64::from_le_bytes(*packet.get(at..)?.first_chunk::<8>()?);
        let id = match first & 0xf6 {
            0x30 => None,
            0x32 => Some(u16::from_be_bytes(*packet.get(at - 2..)?.first_chunk::<2>()?)),
            _ => return None,
        };
        Some(Self { stamp, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_has_the_stamp_and_the_identifier_of_its_publication() {
        for qos in [0, 1] {
            let mut publication = Publication::new("pairs/7", qos);
            let bytes = publication.bytes();
            for number in 1..=3_u16 {
                let stamp = u64::from(number) << 40;
                let packet = publication.next_with(stamp);
                assert_eq!(packet.len(), bytes);
                let id = (qos > 0).then_some(number);
                assert_eq!(Delivery::parse(packet), Some(Delivery { stamp, id }));
            }
        }
        assert_eq!(Delivery::parse(&[0x40, 2, 0, 1]), None, "shorter than a payload");
        assert_eq!(Delivery::parse(&[0xd0; 200]), None, "no PUBLISH");
    }
}
