//! What a run is worth: the checks behind the verdict.

use tacho_record::{
    ActionRecord, Gate, SUSTAINED_PERCENT, SeriesRow, Step, ThresholdResult, Verdict,
};
use tacho_scenario::format;
use tacho_scenario::threshold::{Comparison, Thresholds};

/// Busy time of a generator thread, in percent, from which on it may be the bottleneck.
pub const GENERATOR_BUSY_PERCENT: f64 = 80.0;

/// 99th percentile of the send delay, in microseconds, from which on the generator is late.
pub const SEND_DELAY_P99_US: f64 = 1000.0;

/// Name of the check of the send delay.
pub const SEND_DELAY: &str = "the send delay p99";

/// Time stolen by the hypervisor, in percent, from which on figures are not the machine's own.
pub const STEAL_PERCENT: f64 = 1.0;

/// Name of the check of the time that the hypervisor took.
pub const STEAL: &str = "the time stolen by the hypervisor";

/// CPU of other programs, one core = 100, from which on a reader must know of them.
pub const OTHERS_PERCENT: f64 = 20.0;

/// CPU of the broker in percent of its cores from which on a closed run is limited by it.
const BROKER_SATURATED_PERCENT: f64 = 90.0;

/// The generator's health, as far as a step shows it.
///
/// In a closed run the generator sends as fast as the broker answers. It has no schedule to be
/// late for, and it may be busy as long as the broker is saturated too: then the broker is the
/// bottleneck.
pub fn gates(step: &Step, closed: bool, broker_cores: usize) -> Vec<Gate> {
    let mut gates = Vec::new();
    let mut gate = |name: &str, unit: &str, value: f64, limit: f64| {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        gates.push(Gate { name, unit, value, limit, passed: value < limit });
    };
    let saturated = step
        .broker_cpu_percent
        .is_some_and(|cpu| cpu >= BROKER_SATURATED_PERCENT * broker_cores.max(1) as f64);
    if !(closed && saturated) {
        let busiest = step.generator_thread_busy_max_percent;
        gate("the busiest generator thread", "percent", busiest, GENERATOR_BUSY_PERCENT);
    }
    if let (false, Some(p99)) = (closed, step.send_delay_us.p99) {
        gate(SEND_DELAY, "microseconds", p99 as f64, SEND_DELAY_P99_US);
    }
    if let Some(steal) = step.host_steal_percent {
        gate(STEAL, "percent", steal, STEAL_PERCENT);
    }
    gates
}

/// Judges one step; `rows` are the full seconds of its window.
pub fn judge_step(step: &Step, rows: &[&SeriesRow]) -> (Verdict, Vec<String>) {
    let mut findings = Vec::new();
    let violations = step.violations;
    if violations.total() > 0 {
        findings.push((
            Verdict::QosViolation,
            format!(
                "the QoS contract was broken: {} lost, {} duplicated, {} out of order, {} damaged",
                violations.lost,
                violations.duplicates,
                violations.out_of_order,
                violations.corrupted
            ),
        ));
    }
    if step.acknowledged_lost > 0 {
        findings.push((
            Verdict::QosViolation,
            format!(
                "{} deliveries never came of messages that the broker had acknowledged",
                step.acknowledged_lost
            ),
        ));
    }
    if step.acknowledged_pending > 0 {
        findings.push((
            Verdict::NotSustained,
            format!(
                "{} deliveries of acknowledged messages had not come when the drain ended",
                step.acknowledged_pending
            ),
        ));
    }
    for gate in step.gates.iter().filter(|gate| !gate.passed) {
        let shown = |value: f64| match gate.unit.as_str() {
            "percent" => format::percent(value),
            _ => format::latency(value),
        };
        findings.push((
            Verdict::GeneratorBound,
            format!(
                "the generator may be the bottleneck: {} is {}, it must stay below {}",
                gate.name,
                shown(gate.value),
                shown(gate.limit)
            ),
        ));
    }
    // A broker that is killed carries nothing for a while, and clients to which things happen
    // neither send nor receive all.
    if step.actions > 0 {
        findings.extend(bystanders(step));
    } else if step.kills == 0 {
        findings.extend(sustained(step));
        if let Some(sentence) = unsteady(rows) {
            findings.push((Verdict::NotSteady, sentence));
        }
    }
    let verdict = worst(findings.iter().map(|(verdict, _)| *verdict));
    (verdict, findings.into_iter().map(|(_, sentence)| sentence).collect())
}

/// Whether in and out reached what was offered.
fn sustained(step: &Step) -> Vec<(Verdict, String)> {
    let directions = [
        ("in", step.achieved_in_per_s, step.offered_in_per_s),
        ("out", step.achieved_out_per_s, step.offered_out_per_s),
    ];
    let below = directions.iter().filter(|(_, achieved, offered)| {
        *offered > 0.0 && achieved * 100.0 / offered < SUSTAINED_PERCENT
    });
    below
        .map(|(direction, achieved, offered)| {
            let percent = achieved * 100.0 / offered;
            let sentence = format!(
                "the offered load was not carried: {achieved:.0} of {offered:.0} messages per \
                 second {direction} ({percent:.2} %)"
            );
            (Verdict::NotSustained, sentence)
        })
        .collect()
}

/// What actions should have brought and did not.
pub fn judge_actions(actions: &[ActionRecord]) -> Vec<(Verdict, String)> {
    let missing = |of: fn(&ActionRecord) -> u64| actions.iter().map(of).sum::<u64>();
    let lasting = |action: &ActionRecord| match action.kind.as_str() {
        "takeover" => action.connected.saturating_sub(action.displaced),
        _ => 0,
    };
    let sentences = [
        (
            missing(|action| action.retained_expected.saturating_sub(action.retained)),
            "retained messages that were due to new subscribers did not come",
        ),
        (
            missing(|action| action.wills_expected.saturating_sub(action.wills)),
            "wills that were due did not come",
        ),
        (
            missing(lasting),
            "first connections were still up after a second one with the same client id",
        ),
    ];
    let found = sentences.into_iter().filter(|(count, _)| *count > 0);
    found.map(|(count, words)| (Verdict::NotSustained, format!("{count} {words}"))).collect()
}

/// Whether groups that nothing happened to sent and got what they should.
fn bystanders(step: &Step) -> Vec<(Verdict, String)> {
    if step.kills > 0 {
        return Vec::new();
    }
    let below = |part: u64, all: u64| (part as f64) * 100.0 < SUSTAINED_PERCENT * all as f64;
    let mut findings = Vec::new();
    for group in step.groups.iter().filter(|group| !group.concerned) {
        for (what, part, all) in
            [("sent", group.sent, group.offered), ("received", group.received, group.expected)]
        {
            if below(part, all) {
                let sentence = format!(
                    "group {}, to which nothing happened, {what} {part} of {all} messages",
                    group.name
                );
                findings.push((Verdict::NotSustained, sentence));
            }
        }
    }
    findings
}

/// A sentence when the first and the last third of the window differ too much.
fn unsteady(rows: &[&SeriesRow]) -> Option<String> {
    /// Fewer seconds show no trend.
    const SECONDS_MIN: usize = 6;
    /// Median latencies that differ less than this, in microseconds, are the same.
    const LATENCY_SLACK_US: u64 = 1000;
    /// Rates may differ by this share.
    const RATE_SLACK: f64 = 0.05;
    if rows.len() < SECONDS_MIN {
        return None;
    }
    let third = rows.len() / 3;
    let (first, last) = (&rows[..third], &rows[rows.len() - third..]);
    let rate = |part: &[&SeriesRow]| {
        part.iter().map(|row| row.received_per_s).sum::<f64>() / part.len() as f64
    };
    let (rate_first, rate_last) = (rate(first), rate(last));
    if (rate_first - rate_last).abs() > RATE_SLACK * rate_first.max(rate_last) {
        return Some(format!(
            "the rate still changed: {rate_first:.0} messages per second out in the first third \
             of the window, {rate_last:.0} in the last"
        ));
    }
    let latency = |part: &[&SeriesRow]| {
        let mut medians: Vec<u64> = part.iter().filter_map(|row| row.e2e_p50_us).collect();
        medians.sort_unstable();
        medians.get(medians.len() / 2).copied()
    };
    let (Some(from), Some(to)) = (latency(first), latency(last)) else { return None };
    let (low, high) = (from.min(to), from.max(to));
    (high > 2 * low && high - low > LATENCY_SLACK_US).then(|| {
        format!(
            "the latency still changed: median {} in the first third of the window, {} in the last",
            format::latency(from as f64),
            format::latency(to as f64)
        )
    })
}

/// Compares all steps with the thresholds; the worst step counts.
pub fn judge_thresholds(thresholds: &Thresholds, steps: &[Step]) -> Vec<ThresholdResult> {
    let worst_figure = |comparison: Comparison, values: Vec<f64>| {
        values.into_iter().reduce(|left, right| match comparison {
            Comparison::Less | Comparison::AtMost | Comparison::Equal => left.max(right),
            Comparison::Greater | Comparison::AtLeast => left.min(right),
        })
    };
    let results = thresholds.0.iter().map(|threshold| {
        let figures: Option<Vec<f64>> =
            steps.iter().map(|step| step.metric(threshold.metric)).collect();
        let value = figures.and_then(|figures| worst_figure(threshold.comparison, figures));
        ThresholdResult {
            condition: threshold.to_string(),
            value,
            passed: value.is_some_and(|value| threshold.comparison.holds(value, threshold.limit)),
        }
    });
    results.collect()
}

/// A sentence for a threshold that does not hold.
pub fn threshold_sentence(result: &ThresholdResult) -> String {
    format!("the threshold {} does not hold: {}", result.condition, result.shown())
}

/// The verdict that counts when several apply. A run cut short says little; a broken contract is
/// real whatever the generator did; the generator's health comes before all figures.
pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    const ORDER: [Verdict; 8] = [
        Verdict::Aborted,
        Verdict::QosViolation,
        Verdict::GeneratorBound,
        Verdict::NetworkBound,
        Verdict::NotSustained,
        Verdict::NotSteady,
        Verdict::ThresholdFailed,
        Verdict::Ok,
    ];
    let rank = |verdict: &Verdict| ORDER.iter().position(|known| known == verdict);
    verdicts.into_iter().min_by_key(rank).unwrap_or(Verdict::Ok)
}
