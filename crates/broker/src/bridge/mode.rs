//! What operators want of bridges.

use serde::{Deserialize, Serialize};

/// What an operator wants of a bridge, until the broker ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum BridgeMode {
    /// It forwards messages.
    #[default]
    Running,
    /// It has no connection, and messages wait for it.
    Paused,
    /// It takes no new messages, and rests once those that wait are delivered.
    Draining,
    /// It takes no new messages and has no connection.
    Stopped,
}

impl BridgeMode {
    const ALL: [Self; 4] = [Self::Running, Self::Paused, Self::Draining, Self::Stopped];

    /// The name, as in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }

    /// Whether messages that are published here leave by it.
    pub(crate) const fn takes(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }

    pub(super) const fn at_start(is_enabled: bool) -> Self {
        if is_enabled { Self::Running } else { Self::Stopped }
    }

    pub(super) fn of_number(number: u8) -> Self {
        Self::ALL.into_iter().find(|mode| *mode as u8 == number).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_round_trip_by_number_and_name() {
        for mode in BridgeMode::ALL {
            assert_eq!(BridgeMode::of_number(mode as u8), mode);
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
    }
}
