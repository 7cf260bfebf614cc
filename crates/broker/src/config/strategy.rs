//! How shared subscriptions choose the member for a message.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The member of a shared subscription that gets a message. Disconnected members get messages only
/// while no member is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedStrategy {
    /// The member with the fewest queued and unacknowledged messages; ties take turns.
    #[default]
    LeastInflight,
    /// The members in turn.
    RoundRobin,
    /// A random member.
    Random,
    /// The member that got the last message of this publisher, until it disconnects.
    Sticky,
    /// The same member for the same client identifier of the publisher.
    HashClientId,
    /// The same member for the same topic.
    HashTopic,
}

impl SharedStrategy {
    /// All strategies, the default first.
    pub const ALL: [Self; 6] = [
        Self::LeastInflight,
        Self::RoundRobin,
        Self::Random,
        Self::Sticky,
        Self::HashClientId,
        Self::HashTopic,
    ];

    /// Name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeastInflight => "least_inflight",
            Self::RoundRobin => "round_robin",
            Self::Random => "random",
            Self::Sticky => "sticky",
            Self::HashClientId => "hash_client_id",
            Self::HashTopic => "hash_topic",
        }
    }

    /// Whether messages are bound to one member and wait for it, instead of going to a member with
    /// credit.
    pub(crate) const fn is_bound(self) -> bool {
        matches!(self, Self::Sticky | Self::HashClientId | Self::HashTopic)
    }
}

impl FromStr for SharedStrategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not one of {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_file() {
        for strategy in SharedStrategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
            let value = toml::Value::try_from(strategy).unwrap();
            assert_eq!(value.as_str(), Some(strategy.name()));
        }
        let error = "fair".parse::<SharedStrategy>().unwrap_err();
        assert!(error.contains("fair") && error.contains("least_inflight"), "{error}");
    }
}
