//! Packet identifiers.

use std::fmt;
use std::num::NonZeroU16;

/// The identifier that links an acknowledgement to its packet; never zero [MQTT-2.2.1-3].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PacketId(NonZeroU16);

impl PacketId {
    /// The smallest identifier, 1.
    pub const FIRST: Self = Self(NonZeroU16::MIN);

    /// The identifier with this value, `None` for zero.
    #[inline]
    #[must_use]
    pub const fn new(value: u16) -> Option<Self> {
        match NonZeroU16::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// The value, 1 to 65535.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    /// The identifier after this one; 1 follows 65535.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        match self.0.checked_add(1) {
            Some(value) => Self(value),
            None => Self::FIRST,
        }
    }
}

impl From<NonZeroU16> for PacketId {
    fn from(value: NonZeroU16) -> Self {
        Self(value)
    }
}

impl From<PacketId> for u16 {
    fn from(id: PacketId) -> Self {
        id.get()
    }
}

impl fmt::Display for PacketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
