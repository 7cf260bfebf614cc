//! Quality of service levels.

use std::fmt;

/// The delivery guarantee of a message or the upper bound of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum QoS {
    /// Delivered at most once, never acknowledged.
    #[default]
    AtMostOnce = 0,
    /// Delivered at least once, acknowledged by PUBACK.
    AtLeastOnce = 1,
    /// Delivered exactly once: PUBREC, PUBREL, PUBCOMP.
    ExactlyOnce = 2,
}

impl QoS {
    /// All levels, lowest first.
    pub const ALL: [Self; 3] = [Self::AtMostOnce, Self::AtLeastOnce, Self::ExactlyOnce];

    /// The level for its wire value, `None` for 3 and above.
    #[inline]
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }
}

/// A number that is no QoS level, from `QoS::try_from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidQoS(pub u8);

impl fmt::Display for InvalidQoS {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QoS {} does not exist; use 0, 1 or 2", self.0)
    }
}

impl std::error::Error for InvalidQoS {}

impl TryFrom<u8> for QoS {
    type Error = InvalidQoS;

    #[inline]
    fn try_from(value: u8) -> Result<Self, InvalidQoS> {
        Self::from_u8(value).ok_or(InvalidQoS(value))
    }
}

impl From<QoS> for u8 {
    #[inline]
    fn from(qos: QoS) -> Self {
        qos as Self
    }
}

impl fmt::Display for QoS {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", *self as u8)
    }
}
