//! Writing packets: each body is described once and run twice, first to count, then to write.
//!
//! The counting pass finds all errors, so the writing pass cannot fail half-way.

use crate::{EncodeError, VARINT_MAX, Version, varint};

/// Receives the bytes of a packet in order.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]);

    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    #[inline]
    fn put_varint(&mut self, value: u32) {
        match varint::bytes(value) {
            // Copies of a length known at compile time become plain stores.
            ([a, ..], 1) => self.put_u8(a),
            ([a, b, ..], 2) => self.put(&[a, b]),
            ([a, b, c, _], 3) => self.put(&[a, b, c]),
            (bytes, _) => self.put(&bytes),
        }
    }

    /// True if the next `len` bytes need not be put, because they were counted by this call.
    #[inline]
    fn skip_counted(&mut self, _len: u32) -> bool {
        false
    }

    /// Binary data or a string, behind its length of two bytes.
    #[inline]
    fn put_binary(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let len = u16::try_from(bytes.len()).map_err(|_| EncodeError::FieldTooLong)?;
        self.put_u16(len);
        self.put(bytes);
        Ok(())
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }
}

/// A sink that counts bytes instead of writing them.
#[derive(Default)]
pub(crate) struct Counter {
    len: usize,
}

impl Sink for Counter {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
    }

    #[inline]
    fn put_varint(&mut self, value: u32) {
        self.len += varint::varint_len(value);
    }

    #[inline]
    fn skip_counted(&mut self, len: u32) -> bool {
        self.len += len as usize;
        true
    }
}

impl Counter {
    /// The counted bytes, if a remaining length or a property length can express them.
    #[inline]
    pub(crate) fn into_len(self) -> Result<u32, EncodeError> {
        u32::try_from(self.len)
            .ok()
            .filter(|&len| len <= VARINT_MAX)
            .ok_or(EncodeError::PacketTooLarge)
    }
}

/// The part of a packet behind the remaining length.
pub(crate) trait Body {
    fn write<S: Sink>(&self, version: Version, sink: &mut S) -> Result<(), EncodeError>;
}

/// The properties of a block, without the length in front.
pub(crate) trait Properties {
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError>;
}

/// The remaining length of a packet.
#[inline]
pub(crate) fn body_len(body: &impl Body, version: Version) -> Result<u32, EncodeError> {
    let mut counter = Counter::default();
    body.write(version, &mut counter)?;
    counter.into_len()
}

/// The length of a whole packet in bytes, fixed header included.
pub(crate) fn frame_len(body: &impl Body, version: Version) -> Result<usize, EncodeError> {
    let len = body_len(body, version)?;
    Ok(1 + varint::varint_len(len) + len as usize)
}

/// Appends a whole packet.
#[inline]
pub(crate) fn encode_frame(
    first_byte: u8,
    body: &impl Body,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let len = body_len(body, version)?;
    out.reserve(5 + len as usize);
    out.push(first_byte);
    out.put_varint(len);
    body.write(version, out)
}

/// Writes a property block: length, then properties.
#[inline]
pub(crate) fn put_properties<S: Sink>(
    sink: &mut S,
    properties: &impl Properties,
) -> Result<(), EncodeError> {
    let len = properties_len(properties)?;
    sink.put_varint(len);
    if sink.skip_counted(len) { Ok(()) } else { properties.write(sink) }
}

/// The length of the properties in bytes, without their length field.
#[inline]
pub(crate) fn properties_len(properties: &impl Properties) -> Result<u32, EncodeError> {
    let mut counter = Counter::default();
    properties.write(&mut counter)?;
    counter.into_len()
}
