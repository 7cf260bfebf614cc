//! Checks of the generator's health.

use serde::{Deserialize, Serialize};

/// The checked figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Busy time of the busiest generator thread, in percent.
    ThreadBusy,
    /// 99th percentile of the send delay, in microseconds.
    SendDelay,
    /// Time that the hypervisor gave to others, in percent.
    Steal,
    /// What other programs used of the broker's cores, in percent of these.
    OtherPrograms,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::ThreadBusy, Self::SendDelay, Self::Steal, Self::OtherPrograms];

    /// The name that the record has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThreadBusy => "the busiest generator thread",
            Self::SendDelay => "the send delay p99",
            Self::Steal => "the time stolen by the hypervisor",
            Self::OtherPrograms => "other programs on the broker's cores",
        }
    }

    /// The unit of its figures, as the record has it.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ThreadBusy | Self::Steal | Self::OtherPrograms => "percent",
            Self::SendDelay => "microseconds",
        }
    }

    /// Does it show that the machine was disturbed, rather than that the generator was at its
    /// limit?
    pub const fn is_disturbance(self) -> bool {
        match self {
            Self::Steal | Self::OtherPrograms => true,
            Self::ThreadBusy | Self::SendDelay => false,
        }
    }

    /// The check of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.name() == name)
    }
}
