//! What becomes of messages that a full queue would have to take.

use tacho_access::QueuePolicy;
use tacho_session::Overflow;

/// What a session itself does with a message that its queue has no room for.
pub(crate) const fn overflow_of(policy: QueuePolicy) -> Overflow {
    match policy {
        QueuePolicy::Refuse => Overflow::Keep,
        QueuePolicy::DropNewest | QueuePolicy::EndSession => Overflow::DropNewest,
        QueuePolicy::DropOldest => Overflow::DropOldest,
    }
}

/// The policies of the sessions of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuePolicies {
    pub(crate) persistent: QueuePolicy,
    pub(crate) clean: QueuePolicy,
}

impl QueuePolicies {
    /// The policy of a session with this expiry interval.
    pub(crate) const fn for_expiry(self, session_expiry_s: u32) -> QueuePolicy {
        if session_expiry_s > 0 { self.persistent } else { self.clean }
    }
}

/// The limits of one session's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    pub(crate) len_max: u32,
    pub(crate) bytes_max: u64,
}
