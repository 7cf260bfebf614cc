//! Positions of clients and streams in a plan.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Position of a client in the plan, counted through all groups in order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ClientIndex(u32);

impl ClientIndex {
    /// The one at this position.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// All of them, from the first one on.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u32::MAX).map(Self)
    }

    /// The position.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The position as an index into a list of all.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ClientIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Position of a publish stream in the plan, counted through all clients in order. Payload headers
/// carry it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct StreamIndex(u32);

impl StreamIndex {
    /// The one at this position.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// All of them, from the first one on.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u32::MAX).map(Self)
    }

    /// The position.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The position as an index into a list of all.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for StreamIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
