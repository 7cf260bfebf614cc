//! Patterns in latencies that have known causes outside of the broker's work.

use super::machine::is_disturbed;
use super::{Evidence, Found};
use tacho_record::{CurvePoint, Observation, Severity, TargetKind, TargetRecord};

/// Share of the samples that makes a plateau.
const PLATEAU_SHARE: f64 = 0.005;
/// How many times denser than its surroundings a plateau is.
const PLATEAU_DENSITY: f64 = 4.0;
/// Error of a host's clock in microseconds from which on its rows stand in the wrong second.
const CLOCK_ERROR_US: f64 = 100_000.0;

/// Linux delays an acknowledgement by 40 ms when it has nothing to send with it; a sender that
/// waits for it (Nagle's algorithm) delays its next packet as long. Tacho's own broker sets
/// `TCP_NODELAY`, and a machine that was taken away makes plateaus of its own.
pub(super) fn delayed_acknowledgements(evidence: &Evidence<'_>) -> Found {
    let own = |target: &TargetRecord| target.kind == TargetKind::BuiltIn;
    let is_own = !evidence.targets.is_empty() && evidence.targets.iter().all(own);
    if is_own || is_disturbed(evidence) {
        return None;
    }
    let share = plateau(evidence, 39_000, 45_000)?;
    let is_mosquitto = evidence.targets.iter().any(runs_mosquitto);
    let observation = Observation::DelayedAcknowledgements { percent: share * 100.0, is_mosquitto };
    Some(("delayed_ack", Severity::Warning, observation))
}

/// Whether the run started mosquitto.
fn runs_mosquitto(target: &TargetRecord) -> bool {
    let mut words = target.command.iter().flat_map(|command| command.split_whitespace());
    words.any(|word| word.rsplit('/').next() == Some("mosquitto"))
}

/// TCP waits at least 200 ms before it retransmits an unacknowledged segment. On one machine no
/// network loses segments.
pub(super) fn retransmission_timeouts(evidence: &Evidence<'_>) -> Found {
    if evidence.one_machine || is_disturbed(evidence) {
        return None;
    }
    let share = plateau(evidence, 196_000, 220_000)?;
    let observation = Observation::RetransmissionTimeouts { percent: share * 100.0 };
    Some(("retransmission_timeout", Severity::Warning, observation))
}

/// The share of samples between `from` and `to` microseconds, when it is a plateau: dense there,
/// sparse around, and not simply where most latencies are.
fn plateau(evidence: &Evidence<'_>, from: u64, to: u64) -> Option<f64> {
    let curve = evidence.curve;
    let median = curve.iter().rfind(|point| point.quantile <= 0.5)?.value_us;
    if median * 2 > from {
        return None;
    }
    let width = to - from;
    let inside = share(curve, from, to);
    let around = share(curve, from - width, from).max(share(curve, to, to + width));
    (inside >= PLATEAU_SHARE && inside >= PLATEAU_DENSITY * around).then_some(inside)
}

/// The share of samples from `from` to below `to` microseconds.
fn share(curve: &[CurvePoint], from: u64, to: u64) -> f64 {
    let below = |limit: u64| {
        let point = curve.iter().rfind(|point| point.value_us < limit);
        point.map_or(0.0, |point| point.quantile)
    };
    below(to) - below(from)
}

/// The first second is much slower than the others: caches, allocations, code that is compiled
/// while it runs. A disturbed second is no sign of these.
pub(super) fn first_interval(evidence: &Evidence<'_>) -> Found {
    const TIMES: u64 = 5;
    const SLACK_US: u64 = 5000;
    if is_disturbed(evidence) || evidence.step.disturbance.is_some() {
        return None;
    }
    let (first, rest) = evidence.rows.split_first()?;
    let mut others: Vec<u64> = rest.iter().filter_map(|row| row.e2e_p99_us).collect();
    if others.len() < 3 {
        return None;
    }
    others.sort_unstable();
    let usual = others[others.len() / 2];
    let first = first.e2e_p99_us?;
    if first < TIMES * usual || first - usual < SLACK_US {
        return None;
    }
    let observation = Observation::ColdStart { first_us: first, others_us: usual };
    Some(("first_interval", Severity::Warning, observation))
}

/// A SYN that is not answered is repeated after 1, 3 and 7 seconds.
pub(super) fn connection_retries(evidence: &Evidence<'_>) -> Found {
    let connect = &evidence.step.connect_us;
    let usual = connect.p50.unwrap_or(0);
    let retried = |us: &u64| {
        [1_000_000_u64, 3_000_000, 7_000_000]
            .iter()
            .any(|delay| (*delay..*delay + 300_000).contains(us))
    };
    let slow = [connect.p99, connect.p999, connect.max].into_iter().flatten().find(retried)?;
    if usual > 300_000 {
        return None;
    }
    let observation = Observation::ConnectionRetries { took_us: slow };
    Some(("syn_retry", Severity::Warning, observation))
}

/// A host's clock is known too badly for the seconds that it is shown in.
pub(super) fn clock_error(evidence: &Evidence<'_>) -> Found {
    let (source, error) = evidence.monitors.iter().find_map(|monitor| {
        let error = monitor.clock_error_us_max.filter(|error| *error >= CLOCK_ERROR_US)?;
        Some((&monitor.source, error))
    })?;
    let observation = Observation::ClockError { source: source.clone(), error_us: error };
    Some(("clock_error", Severity::Warning, observation))
}
