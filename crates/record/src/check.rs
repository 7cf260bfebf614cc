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
    /// Share of the window that is not between the samples from which CPU follows, in percent: the
    /// thread that takes them was kept from its core. Only where that is much.
    LateSamples,
    /// Time that the hypervisor gave to others, in percent: in records of earlier versions only.
    Steal,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ThreadBusy, Self::SendDelay, Self::LateSamples, Self::Steal];

    /// The name that the record has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThreadBusy => "the busiest generator thread",
            Self::SendDelay => "the send delay p99",
            Self::LateSamples => "the share of the window that the samples of CPU missed",
            Self::Steal => "the time stolen by the hypervisor",
        }
    }

    /// The unit of its figures, as the record has it.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ThreadBusy | Self::LateSamples | Self::Steal => "percent",
            Self::SendDelay => "microseconds",
        }
    }

    /// The check of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.name() == name)
    }
}

/// A check by the name that a record has for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum CheckName {
    /// A check that this version knows.
    Known(Check),
    /// The name of a check of another version, as it is.
    Other(String),
}

impl CheckName {
    /// The check, if this version knows it.
    pub const fn known(&self) -> Option<Check> {
        match self {
            Self::Known(check) => Some(*check),
            Self::Other(_) => None,
        }
    }
}

impl From<Check> for CheckName {
    fn from(check: Check) -> Self {
        Self::Known(check)
    }
}

impl From<String> for CheckName {
    fn from(name: String) -> Self {
        Check::parse(&name).map_or(Self::Other(name), Self::Known)
    }
}

impl From<CheckName> for String {
    fn from(name: CheckName) -> Self {
        match name {
            CheckName::Known(check) => check.name().to_owned(),
            CheckName::Other(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_read_as_it_is_written_and_another_name_is_kept() {
        for check in Check::ALL {
            let json = serde_json::to_string(&CheckName::from(check)).expect("is JSON");
            assert_eq!(json, format!("\"{}\"", check.name()));
            let read: CheckName = serde_json::from_str(&json).expect("reads");
            assert_eq!(read.known(), Some(check));
        }
        let other: CheckName = serde_json::from_str("\"the fan\"").expect("reads");
        assert_eq!((other.known(), String::from(other)), (None, "the fan".to_owned()));
    }
}
