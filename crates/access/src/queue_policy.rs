//! What becomes of messages that a full queue would have to take.

use std::fmt;

use serde::{Deserialize, Serialize};

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

    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::DropNewest => "drop_newest",
            Self::DropOldest => "drop_oldest",
            Self::EndSession => "end_session",
        }
    }
}

impl fmt::Display for QueuePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
