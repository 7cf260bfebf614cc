//! Findings: what a reader should know about the figures, and what to do about it.
//!
//! Each detector is a pure function of a step and what was seen beside it; it returns what was
//! seen; the report says what to do. Codes are stable names.

mod latency;
mod logins;
mod machine;
mod network;

use tacho_record::{
    CurvePoint, Finding, MonitorRecord, Observation, SeriesRow, Severity, Step, TargetRecord,
};

/// What the detectors look at.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The step.
    pub step: &'a Step,
    /// The full seconds of its window.
    pub rows: &'a [&'a SeriesRow],
    /// Percentile curve of its end-to-end latency.
    pub curve: &'a [CurvePoint],
    /// Broker and generator share a machine.
    pub one_machine: bool,
    /// Sources of host figures.
    pub monitors: &'a [MonitorRecord],
    /// The brokers.
    pub targets: &'a [TargetRecord],
}

/// A detector's result before it has a place.
type Found = Option<(&'static str, Severity, Observation)>;

const DETECTORS: [fn(&Evidence<'_>) -> Found; 15] = [
    network::bound,
    network::drops,
    network::retransmits,
    network::listen_overflows,
    network::round_trip,
    latency::delayed_acknowledgements,
    latency::retransmission_timeouts,
    latency::first_interval,
    latency::connection_retries,
    latency::clock_error,
    machine::disturbed,
    machine::other_programs,
    machine::unfair_groups,
    logins::misjudged,
    logins::banned,
];

/// All findings about the step at `position`.
pub fn of_step(evidence: &Evidence<'_>, position: usize) -> Vec<Finding> {
    DETECTORS
        .iter()
        .filter_map(|detector| detector(evidence))
        .map(|(code, severity, observation)| finding(code, severity, observation, Some(position)))
        .collect()
}

/// A finding whose sentence is not yet written.
pub fn finding(
    code: &str,
    severity: Severity,
    observation: Observation,
    step: Option<usize>,
) -> Finding {
    Finding {
        code: code.to_owned(),
        severity,
        sentence: String::new(),
        step,
        observation: Some(observation),
        place: String::new(),
    }
}

/// Code of the finding that the network was the bottleneck.
pub const NETWORK_BOUND: &str = "network_bound";

#[cfg(test)]
mod tests;
