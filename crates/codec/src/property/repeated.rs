//! The two properties that may repeat, as views of a property block instead of lists.

use std::fmt;

use super::decode::{skip, user_property};
use super::id;
use crate::read::Reader;
use crate::varint::{self, VARINT_MAX};
use crate::{EncodeError, text};

/// The part of a property block from the first to the last property of one kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Span<'a> {
    from: &'a [u8],
    len: u32,
    /// Whether properties of other kinds lie between them.
    is_mixed: bool,
}

impl<'a> Span<'a> {
    const EMPTY: Self = Self { from: &[], len: 0, is_mixed: false };

    /// A span of properties of the kind only, at most [`VARINT_MAX`] bytes.
    const fn pure(bytes: &'a [u8]) -> Self {
        Self { from: bytes, len: bytes.len() as u32, is_mixed: false }
    }

    /// Extends the span by the property between `before` and `after`, both suffixes of the same
    /// block.
    #[inline]
    pub(crate) fn extend(&mut self, before: &'a [u8], after: &'a [u8]) {
        if self.len == 0 {
            self.from = before;
        }
        self.is_mixed |= before.len() != self.from.len() - self.len as usize;
        // Never truncates: a property block is shorter than 2^28 bytes.
        self.len = (self.from.len() - after.len()) as u32;
    }

    #[inline]
    fn bytes(&self) -> &'a [u8] {
        &self.from[..self.len as usize]
    }

    /// The properties in wire format, if no others lie between them.
    #[inline]
    fn as_properties(&self) -> Option<&'a [u8]> {
        (!self.is_mixed).then(|| self.bytes())
    }
}

/// Refuses lists that are too long for a property block.
fn check_len(len: usize) -> Result<(), EncodeError> {
    if len > VARINT_MAX as usize { Err(EncodeError::PacketTooLarge) } else { Ok(()) }
}

/// User properties in their order, borrowed from the packet that they arrived in or from a
/// [`UserPropertiesBuf`]. Names may repeat.
#[derive(Clone, Copy, Default)]
pub struct UserProperties<'a> {
    /// Checked properties; the first and the last, if any, are user properties.
    span: Span<'a>,
}

impl<'a> UserProperties<'a> {
    /// No user properties.
    pub const EMPTY: Self = Self { span: Span::EMPTY };

    pub(crate) const fn from_span(span: Span<'a>) -> Self {
        Self { span }
    }

    /// The properties in wire format, if no others lie between them.
    #[inline]
    pub(crate) fn as_properties(&self) -> Option<&'a [u8]> {
        self.span.as_properties()
    }

    /// True if there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.span.len == 0
    }

    /// The name and value of each property, in order.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> UserPropertiesIter<'a> {
        UserPropertiesIter { reader: Reader::new(self.span.bytes()) }
    }
}

impl<'a> IntoIterator for UserProperties<'a> {
    type Item = (&'a str, &'a str);
    type IntoIter = UserPropertiesIter<'a>;

    #[inline]
    fn into_iter(self) -> UserPropertiesIter<'a> {
        self.iter()
    }
}

impl PartialEq for UserProperties<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for UserProperties<'_> {}

impl fmt::Debug for UserProperties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The iterator of [`UserProperties::iter`].
#[derive(Clone)]
pub struct UserPropertiesIter<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for UserPropertiesIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let identifier = self.reader.u8().ok()?;
            if identifier == id::USER_PROPERTY {
                return user_property(&mut self.reader).ok();
            }
            skip(identifier, &mut self.reader).ok()?;
        }
    }
}

/// Builds user properties; a packet borrows them with [`UserPropertiesBuf::view`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserPropertiesBuf {
    bytes: Vec<u8>,
}

impl UserPropertiesBuf {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Appends a property.
    ///
    /// # Errors
    /// [`EncodeError::FieldTooLong`] or [`EncodeError::InvalidText`] if a string may not be sent,
    /// [`EncodeError::PacketTooLarge`] if the list no longer fits into a packet.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), EncodeError> {
        for text in [name, value] {
            if text.len() > usize::from(u16::MAX) {
                return Err(EncodeError::FieldTooLong);
            }
            if !text::is_valid_text(text) {
                return Err(EncodeError::InvalidText);
            }
        }
        check_len(self.bytes.len() + 5 + name.len() + value.len())?;
        self.bytes.push(id::USER_PROPERTY);
        for text in [name, value] {
            // Never truncates: the lengths are checked above.
            self.bytes.extend_from_slice(&(text.len() as u16).to_be_bytes());
            self.bytes.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }

    /// Removes all properties and keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The properties, borrowed for a packet.
    #[must_use]
    pub fn view(&self) -> UserProperties<'_> {
        UserProperties { span: Span::pure(&self.bytes) }
    }
}

impl From<UserProperties<'_>> for UserPropertiesBuf {
    fn from(properties: UserProperties<'_>) -> Self {
        let mut buf = Self::new();
        for (name, value) in properties {
            // Invariant: a view contains checked strings only, so push cannot refuse them.
            let _ = buf.push(name, value);
        }
        buf
    }
}

/// The subscription identifiers of a PUBLISH in their order, borrowed from the packet that they
/// arrived in or from a [`SubscriptionIdsBuf`].
#[derive(Clone, Copy, Default)]
pub struct SubscriptionIds<'a> {
    /// Checked properties; the first and the last, if any, are subscription identifiers.
    span: Span<'a>,
}

impl<'a> SubscriptionIds<'a> {
    /// No subscription identifiers.
    pub const EMPTY: Self = Self { span: Span::EMPTY };

    pub(crate) const fn from_span(span: Span<'a>) -> Self {
        Self { span }
    }

    /// The properties in wire format, if no others lie between them.
    #[inline]
    pub(crate) fn as_properties(&self) -> Option<&'a [u8]> {
        self.span.as_properties()
    }

    /// True if there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.span.len == 0
    }

    /// The identifiers, each 1 to 268,435,455.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> SubscriptionIdsIter<'a> {
        SubscriptionIdsIter { reader: Reader::new(self.span.bytes()) }
    }
}

impl<'a> IntoIterator for SubscriptionIds<'a> {
    type Item = u32;
    type IntoIter = SubscriptionIdsIter<'a>;

    #[inline]
    fn into_iter(self) -> SubscriptionIdsIter<'a> {
        self.iter()
    }
}

impl PartialEq for SubscriptionIds<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for SubscriptionIds<'_> {}

impl fmt::Debug for SubscriptionIds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The iterator of [`SubscriptionIds::iter`].
#[derive(Clone)]
pub struct SubscriptionIdsIter<'a> {
    reader: Reader<'a>,
}

impl Iterator for SubscriptionIdsIter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        loop {
            let identifier = self.reader.u8().ok()?;
            if identifier == id::SUBSCRIPTION_IDENTIFIER {
                return self.reader.varint().ok();
            }
            skip(identifier, &mut self.reader).ok()?;
        }
    }
}

/// Builds subscription identifiers; a PUBLISH borrows them with [`SubscriptionIdsBuf::view`].
/// Meant to be reused: [`SubscriptionIdsBuf::clear`] keeps the buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionIdsBuf {
    bytes: Vec<u8>,
}

impl SubscriptionIdsBuf {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Appends an identifier.
    ///
    /// # Errors
    /// [`EncodeError::SubscriptionIdOutOfRange`] for zero and above 268,435,455,
    /// [`EncodeError::PacketTooLarge`] if the list no longer fits into a packet.
    pub fn push(&mut self, subscription_id: u32) -> Result<(), EncodeError> {
        if !(1..=VARINT_MAX).contains(&subscription_id) {
            return Err(EncodeError::SubscriptionIdOutOfRange);
        }
        let (bytes, len) = varint::bytes(subscription_id);
        check_len(self.bytes.len() + 1 + len)?;
        self.bytes.push(id::SUBSCRIPTION_IDENTIFIER);
        self.bytes.extend_from_slice(&bytes[..len]);
        Ok(())
    }

    /// Removes all identifiers and keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The identifiers, borrowed for a PUBLISH.
    #[must_use]
    pub fn view(&self) -> SubscriptionIds<'_> {
        SubscriptionIds { span: Span::pure(&self.bytes) }
    }
}
