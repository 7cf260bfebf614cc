//! A cursor over the body of a packet.

use crate::{DecodeError, PacketId, text, varint};

const CUT_OFF: DecodeError = DecodeError::malformed("the packet ends inside a field");

/// Reads fields from the front; the unread rest is always a suffix of the body.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes that are not read yet.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Refuses bytes behind the last field.
    pub(crate) const fn finish(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::malformed("bytes follow the last field of the packet"))
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(*array)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// A variable byte integer in its shortest form [MQTT-1.5.5-1].
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u32, DecodeError> {
        let (value, len) = varint::read(self.rest)?.ok_or(CUT_OFF)?;
        if len != varint::varint_len(value) {
            return Err(DecodeError::malformed(
                "a variable byte integer is longer than needed [MQTT-1.5.5-1]",
            ));
        }
        self.rest = &self.rest[len..];
        Ok(value)
    }

    #[inline]
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Binary data: a length of two bytes, then the data.
    #[inline]
    pub(crate) fn binary(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.u16()?;
        self.bytes(usize::from(len))
    }

    /// A checked string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<&'a str, DecodeError> {
        text::decode(self.binary()?)
    }

    /// A checked topic name, possibly empty.
    #[inline]
    pub(crate) fn topic_name(&mut self) -> Result<&'a str, DecodeError> {
        text::decode_topic_name(self.binary()?)
    }

    #[inline]
    pub(crate) fn packet_id(&mut self) -> Result<PacketId, DecodeError> {
        PacketId::new(self.u16()?)
            .ok_or(const { DecodeError::protocol("a packet identifier is zero [MQTT-2.2.1-3]") })
    }
}
