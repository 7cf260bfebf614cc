//! What outlives a connection, for an owner who keeps it elsewhere.

use super::Session;
use crate::{Payload, WillState};

impl<M: Payload> Session<M> {
    /// The session expiry interval in force.
    #[must_use]
    pub const fn expiry_s(&self) -> u32 {
        self.lifetime.expiry_s()
    }

    /// When the session ends if nobody connects; `u64::MAX` with a connection, and for never.
    #[must_use]
    pub const fn ends_at_ns(&self) -> u64 {
        self.lifetime.ends_at_ns()
    }

    /// The will that was not published, and when it is due; `u64::MAX` with a connection.
    #[must_use]
    pub const fn will(&self) -> Option<(&WillState<M>, u64)> {
        self.lifetime.will()
    }
}
