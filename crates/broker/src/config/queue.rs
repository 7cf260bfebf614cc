//! What becomes of messages that a full queue would have to take.

use serde::{Deserialize, Serialize};
use tacho_session::Overflow;

/// What becomes of a message of QoS 1 or 2 for a session whose queue is full. One of QoS 0 is
/// dropped with any policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueuePolicy {
    /// It is refused before it is acknowledged (5.0: 0x97), or its publisher held back (3.x). What
    /// was acknowledged before the publisher's shard knew of the full queue is queued: the limit is
    /// exceeded by as much.
    Refuse,
    /// It is acknowledged and dropped.
    DropNewest,
    /// The oldest messages in the queue are dropped to make room for it.
    DropOldest,
    /// The session ends, with all its messages, and so does its connection (5.0: 0x97).
    EndSession,
}

impl QueuePolicy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Refuse, Self::DropNewest, Self::DropOldest, Self::EndSession];

    /// Name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::DropNewest => "drop_newest",
            Self::DropOldest => "drop_oldest",
            Self::EndSession => "end_session",
        }
    }

    /// What the session itself does with such a message.
    pub(crate) const fn overflow(self) -> Overflow {
        match self {
            Self::Refuse => Overflow::Keep,
            Self::DropNewest | Self::EndSession => Overflow::DropNewest,
            Self::DropOldest => Overflow::DropOldest,
        }
    }
}

impl std::fmt::Display for QueuePolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_file() {
        for policy in QueuePolicy::ALL {
            let value = toml::Value::try_from(policy).unwrap();
            assert_eq!(value.as_str(), Some(policy.name()));
        }
    }
}
