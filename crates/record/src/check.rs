//! Checks of the generator's health.

use serde::{Deserialize, Serialize};

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Busy time of the busiest generator thread, in percent.
    ThreadBusy,
    /// 99th percentile of the send delay, in microseconds.
    SendDelay,
    /// Time that the hypervisor gave to others, in percent.
    Steal,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ThreadBusy, Self::SendDelay, Self::Steal];

    /// The name that the record has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThreadBusy => "the busiest generator thread",
            Self::SendDelay => "the send delay p99",
            Self::Steal => "the time stolen by the hypervisor",
        }
    }

    /// The unit of its figures, as the record has it.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ThreadBusy | Self::Steal => "percent",
            Self::SendDelay => "microseconds",
        }
    }

    /// The check of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.name() == name)
    }
}
