//! The sets of cases, and what is said of each.

use super::login;

/// Which cases are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseSet {
    Speed,
    /// Those of speed that are about logins.
    Logins,
    Durability,
    Peers,
    Scaling,
    Growth,
}

impl CaseSet {
    /// Last part of the name of its records.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Logins => login::PART,
            Self::Durability => "durability",
            Self::Peers => "peers",
            Self::Scaling => "scaling",
            Self::Growth => "growth",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Speed => "Speed",
            Self::Logins => "Logins",
            Self::Durability => "Durability",
            Self::Peers => "Brokers side by side",
            Self::Scaling => "More shards",
            Self::Growth => "Cost as work grows",
        }
    }

    /// Arguments of `cargo xtask bench` that select it.
    pub(super) fn arguments(self) -> String {
        match self {
            Self::Speed => String::new(),
            Self::Logins => format!(" --only {}", login::PART),
            Self::Durability => " --durable".to_owned(),
            Self::Peers => " --peers".to_owned(),
            Self::Scaling => " --scaling".to_owned(),
            Self::Growth => " --growth".to_owned(),
        }
    }
}
