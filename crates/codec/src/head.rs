//! A PUBLISH head that is encoded once for many receivers.

use crate::packet::publish::first_byte;
use crate::{EncodeError, PacketId, Publish, QoS, Version};

/// Everything before the payload of a PUBLISH, encoded once per layout (version, and whether there
/// is a packet identifier) and copied for each receiver with its flags and packet identifier.
///
/// Meant to be reused: encoding again keeps the buffer.
#[derive(Debug, Clone, Default)]
pub struct PublishHead {
    bytes: Vec<u8>,
    /// Offset of the packet identifier; 0 means none, since it never stands in the first byte.
    packet_id_at: usize,
    payload_len: usize,
}

impl PublishHead {
    /// An empty head; encode it before use.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), packet_id_at: 0, payload_len: 0 }
    }

    /// Encodes the head of `publish`. Its QoS decides whether the layout has a packet identifier;
    /// its own identifier, DUP, RETAIN and the choice between QoS 1 and 2 are ignored.
    ///
    /// # Errors
    /// A field or the whole packet is too long; the head is then empty.
    pub fn encode(&mut self, publish: &Publish<'_>, version: Version) -> Result<(), EncodeError> {
        self.bytes.clear();
        self.packet_id_at = 0;
        self.payload_len = publish.payload.len();
        let has_packet_id = publish.qos != QoS::AtMostOnce;
        let packet_id = has_packet_id.then_some(PacketId::FIRST);
        Publish { packet_id, ..*publish }.encode_head(version, &mut self.bytes)?;
        if has_packet_id {
            let varint_len =
                self.bytes[1..].iter().take_while(|&&byte| byte & 0x80 != 0).count() + 1;
            self.packet_id_at = 1 + varint_len + 2 + publish.topic.len();
        }
        Ok(())
    }

    /// Appends the head for one receiver; the caller sends the payload after it.
    ///
    /// # Panics
    /// If QoS 0 has a packet identifier, QoS 1 or 2 has none, or the QoS does not match the layout:
    /// such bytes would corrupt the receiver's stream.
    #[inline]
    pub fn append(
        &self,
        out: &mut Vec<u8>,
        dup: bool,
        retain: bool,
        qos: QoS,
        packet_id: Option<PacketId>,
    ) {
        assert!(
            (qos != QoS::AtMostOnce) == self.has_packet_id()
                && packet_id.is_some() == self.has_packet_id(),
            "the QoS and the packet identifier must match the layout of the head"
        );
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let head = &mut out[start..];
        head[0] = first_byte(dup, retain, qos);
        if let Some(packet_id) = packet_id {
            head[self.packet_id_at..self.packet_id_at + 2]
                .copy_from_slice(&packet_id.get().to_be_bytes());
        }
    }

    /// True if the layout is the one of QoS 1 and 2.
    #[inline]
    #[must_use]
    pub const fn has_packet_id(&self) -> bool {
        self.packet_id_at != 0
    }

    /// Length of the head in bytes.
    #[inline]
    #[must_use]
    pub const fn head_len(&self) -> usize {
        self.bytes.len()
    }

    /// Length of the whole packet in bytes, payload included, as a maximum packet size counts it.
    #[inline]
    #[must_use]
    pub const fn frame_len(&self) -> usize {
        self.bytes.len() + self.payload_len
    }
}
