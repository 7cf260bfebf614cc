//! How shared subscriptions choose the member that gets a message.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Who of a shared subscription gets a message. Only connected members do, while there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedStrategy {
    /// The one with the fewest messages waiting or unacknowledged; equals take turns.
    #[default]
    LeastInflight,
    /// Each in turn.
    RoundRobin,
    /// Anyone.
    Random,
    /// The one that got this publisher's last message, until it disconnects.
    Sticky,
    /// The same one for a publisher's client identifier.
    HashClientId,
    /// The same one for a topic.
    HashTopic,
}

impl SharedStrategy {
    /// All of them, the default first.
    pub const ALL: [Self; 6] = [
        Self::LeastInflight,
        Self::RoundRobin,
        Self::Random,
        Self::Sticky,
        Self::HashClientId,
        Self::HashTopic,
    ];

    /// Its name in the configuration.
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

    /// Whether messages belong to one member, so that they wait for it, instead of going to
    /// whoever has room.
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
            format!("`{text}` is none of {names}")
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
