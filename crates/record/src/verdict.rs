//! Verdicts of runs.

use serde::{Deserialize, Serialize};

/// The verdict of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything offered was carried, in order, and all thresholds hold.
    #[default]
    Ok,
    /// The generator may have been the bottleneck: the figures say nothing about the broker.
    GeneratorBound,
    /// The hypervisor or other programs took so much of the machine that the figures say nothing
    /// about the broker.
    Disturbed,
    /// The network was the bottleneck: the figures say nothing about the broker.
    NetworkBound,
    /// Less than 99 % of the offered load was carried, or clients failed.
    NotSustained,
    /// The figures still changed during the window: they describe a transient.
    NotSteady,
    /// A message was lost, duplicated, reordered or damaged against its QoS.
    QosViolation,
    /// Wrong credentials were accepted, or right ones refused.
    LoginViolation,
    /// A threshold does not hold.
    ThresholdFailed,
    /// A comparison with too few repeats that count: it says nothing either way.
    Unclear,
    /// The run did not come to its end.
    Aborted,
}

impl Verdict {
    /// As `summary.json` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::GeneratorBound => "generator_bound",
            Self::Disturbed => "disturbed",
            Self::NetworkBound => "network_bound",
            Self::NotSustained => "not_sustained",
            Self::NotSteady => "not_steady",
            Self::QosViolation => "qos_violation",
            Self::LoginViolation => "login_violation",
            Self::ThresholdFailed => "threshold_failed",
            Self::Unclear => "unclear",
            Self::Aborted => "aborted",
        }
    }

    /// Whether figures with this verdict say something about the broker.
    pub const fn counts(self) -> bool {
        let is_void = matches!(
            self,
            Self::GeneratorBound
                | Self::Disturbed
                | Self::NetworkBound
                | Self::Unclear
                | Self::Aborted
        );
        !is_void
    }
}
