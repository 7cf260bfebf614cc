//! What a fixed header says about a packet that has not come yet.

use super::kind::PacketType;
use crate::varint;

/// The packet that a fixed header announces; its body may not have come yet, or never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// `None` for the reserved type 0.
    pub packet_type: Option<PacketType>,
    /// Length of the whole packet in bytes, fixed header included.
    pub total_len: u32,
}

impl Announced {
    /// The packet that `buf` begins with; `None` while its fixed header is incomplete, or when its
    /// remaining length is malformed.
    #[must_use]
    pub fn read(buf: &[u8]) -> Option<Self> {
        let (&first_byte, rest) = buf.split_first()?;
        let (remaining_len, varint_len) = varint::read(rest).ok().flatten()?;
        // Invariant: a remaining length has at most 28 bits, its length at most four bytes.
        let total_len = 1 + varint_len as u32 + remaining_len;
        Some(Self { packet_type: PacketType::from_first_byte(first_byte), total_len })
    }

    /// The name of the type in the specification.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.packet_type.map_or("reserved type 0", PacketType::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_header_announces_type_and_size_before_the_body() {
        let announced = |packet_type, total_len| Some(Announced { packet_type, total_len });
        let publish = Some(PacketType::Publish);
        assert_eq!(
            Announced::read(&[0x30, 0xff, 0xff, 0xff, 0x7f]),
            announced(publish, 268_435_460)
        );
        assert_eq!(Announced::read(&[0x20, 0x03, 0x00]), announced(Some(PacketType::ConnAck), 5));
        assert_eq!(Announced::read(&[0x00, 0x00]), announced(None, 2));
        for incomplete in [&[][..], &[0x30], &[0x30, 0x80], &[0x30, 0x80, 0x80, 0x80, 0x80]] {
            assert_eq!(Announced::read(incomplete), None, "{incomplete:?}");
        }
    }
}
