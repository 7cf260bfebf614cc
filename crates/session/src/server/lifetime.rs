//! Expiry and will of a session, for an owner that stores them.

use super::Session;
use crate::{Payload, WillState};

impl<M: Payload> Session<M> {
    /// The session expiry interval in force.
    #[must_use]
    pub const fn expiry_s(&self) -> u32 {
        self.lifetime.expiry_s()
    }

    /// When the session ends unless a client connects; `u64::MAX` with a connection, and for never.
    #[must_use]
    pub const fn ends_at_ns(&self) -> u64 {
        self.lifetime.ends_at_ns()
    }

    /// The unpublished will, and when it is due; `u64::MAX` with a connection.
    #[must_use]
    pub fn will(&self) -> Option<(&WillState<M>, u64)> {
        self.lifetime.will()
    }
}
