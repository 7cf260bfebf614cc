//! What a run is worth: the checks behind the verdict.

use tacho_record::{
    ActionKind, ActionRecord, Cause, Check, Direction, Disturbance, Gate, Handling,
    SUSTAINED_PERCENT, SeriesRow, Step, StepAgent, StepGroup, ThresholdResult, Verdict,
    ViolationCounts,
};
use tacho_scenario::threshold::{Comparison, Thresholds};

/// Busy time of a generator thread, in percent, from which on it may be the bottleneck.
pub const GENERATOR_BUSY_PERCENT: f64 = 80.0;

/// 99th percentile of the send delay, in microseconds, from which on the generator is late.
pub const SEND_DELAY_P99_US: f64 = 1000.0;

/// Share of a window, in percent, from which on its CPU is not what the samples say.
pub const LATE_SAMPLES_PERCENT: f64 = 5.0;

/// Samples that are less late are not looked at: windows of a second are for trying things out.
const LATE_SAMPLES_NS_MIN: u64 = 100_000_000;

/// CPU of other programs, one core = 100, from which on a reader must know of them.
pub const OTHERS_PERCENT: f64 = 20.0;

/// CPU of the broker in percent of its cores from which on a closed run is limited by it.
const BROKER_SATURATED_PERCENT: f64 = 90.0;

/// The generator's health, as far as a step shows it. Of agents the worst one counts: its clients
/// are as late, or its threads as busy, as the figure says, whatever the others do.
///
/// In a closed run the generator sends as fast as the broker answers. It has no schedule to be
/// late for, and it may be busy as long as the broker is saturated too: then the broker is the
/// bottleneck.
pub fn gates(step: &Step, closed: bool, broker_cores: usize) -> Vec<Gate> {
    let mut gates = Vec::new();
    let mut gate =
        |check: Check, value: f64, of_agent: fn(&StepAgent) -> Option<f64>, limit: f64| {
            let figures = step.agents.iter().filter_map(|agent| Some((of_agent(agent)?, agent)));
            let worst = figures.max_by(|(a, _), (b, _)| a.total_cmp(b));
            let value = worst.map_or(value, |(of_agent, _)| of_agent.max(value));
            let agent = worst.map(|(_, agent)| agent.name.clone());
            let (name, unit) = (check.into(), check.unit().to_owned());
            gates.push(Gate { name, unit, value, limit, passed: value < limit, agent });
        };
    let saturated = step
        .broker_cpu_percent
        .is_some_and(|cpu| cpu >= BROKER_SATURATED_PERCENT * broker_cores.max(1) as f64);
    if !(closed && saturated) {
        let busiest = step.generator_thread_busy_max_percent;
        let of_agent = |agent: &StepAgent| Some(agent.thread_busy_max_percent);
        gate(Check::ThreadBusy, busiest, of_agent, GENERATOR_BUSY_PERCENT);
    }
    if let (false, Some(p99)) = (closed, step.send_delay_us.p99) {
        let of_agent = |agent: &StepAgent| agent.send_delay_us.p99.map(|us| us as f64);
        gate(Check::SendDelay, p99 as f64, of_agent, SEND_DELAY_P99_US);
    }
    gates
}

/// The check of samples that were taken `from_ns` and `until_ns` for a window that began at
/// `start_ns`; absent where they were taken in time.
///
/// They are taken by a thread of the lowest priority, which other programs may keep from its core
/// for seconds: then CPU is that of another time, perhaps of an idle broker.
pub fn late_samples(
    (from_ns, until_ns): (u64, u64),
    (start_ns, len_ns): (u64, u64),
) -> Option<Gate> {
    let missed_ns = from_ns.abs_diff(start_ns) + until_ns.abs_diff(start_ns + len_ns);
    if missed_ns < LATE_SAMPLES_NS_MIN || len_ns == 0 {
        return None;
    }
    let (check, limit) = (Check::LateSamples, LATE_SAMPLES_PERCENT);
    let value = (missed_ns as f64 * 100.0 / len_ns as f64).min(100.0);
    let value = (value * 100.0).round() / 100.0;
    let (name, unit) = (check.into(), check.unit().to_owned());
    Some(Gate { name, unit, value, limit, passed: value < limit, agent: None })
}

/// Judges one step; `rows` are the full seconds of its window.
pub fn judge_step(step: &Step, rows: &[&SeriesRow]) -> (Verdict, Vec<Cause>) {
    let mut found = Vec::new();
    let violations = step.violations;
    if violations.total() > 0 {
        let ViolationCounts { lost, duplicates, out_of_order, corrupted } = violations;
        let (duplicated, damaged) = (duplicates, corrupted);
        let broken = Cause::QosBroken { lost, duplicated, out_of_order, damaged };
        found.push((Verdict::QosViolation, broken));
    }
    if step.acknowledged_lost > 0 {
        let deliveries = step.acknowledged_lost;
        found.push((Verdict::QosViolation, Cause::AcknowledgedLost { deliveries }));
    }
    if step.acknowledged_pending > 0 {
        let deliveries = step.acknowledged_pending;
        found.push((Verdict::NotSustained, Cause::AcknowledgedPending { deliveries }));
    }
    for gate in step.gates.iter().filter(|gate| !gate.passed) {
        let Some(check) = gate.name.known() else { continue };
        let (value, limit) = (gate.value, gate.limit);
        let agent = gate.agent.clone();
        let cause = Cause::GeneratorCheck { check, value, limit, agent };
        found.push((Verdict::GeneratorBound, cause));
    }
    let invalid = |found: &&Disturbance| found.handling == Handling::Invalid;
    if let Some(disturbance) = step.disturbance.as_ref().filter(invalid) {
        found.push((Verdict::Disturbed, Cause::Disturbed { disturbance: disturbance.clone() }));
    }
    if let Some(logins) = step.logins.as_deref().filter(|logins| logins.misjudged > 0) {
        let observation = logins.misjudged_observation();
        found.push((Verdict::LoginViolation, Cause::Observed { observation }));
    }
    // A broker that is killed carries nothing for a while, and clients that an action concerns
    // neither send nor receive all.
    if step.actions > 0 {
        found.extend(bystanders(step));
    } else if step.kills == 0 {
        found.extend(sustained(step));
        if let Some(cause) = unsteady(rows) {
            found.push((Verdict::NotSteady, cause));
        }
    }
    let verdict = worst(found.iter().map(|(verdict, _)| *verdict));
    (verdict, found.into_iter().map(|(_, cause)| cause).collect())
}

/// Whether in and out reached the offered rates.
fn sustained(step: &Step) -> Vec<(Verdict, Cause)> {
    let directions = [
        (Direction::In, step.achieved_in_per_s, step.offered_in_per_s),
        (Direction::Out, step.achieved_out_per_s, step.offered_out_per_s),
    ];
    let below = directions.into_iter().filter(|(_, achieved, offered)| {
        *offered > 0.0 && achieved * 100.0 / offered < SUSTAINED_PERCENT
    });
    let cause = |(direction, achieved_per_s, offered_per_s)| {
        (Verdict::NotSustained, Cause::NotCarried { direction, achieved_per_s, offered_per_s })
    };
    let undecided = step.logins.as_deref().and_then(|logins| {
        let (decided, due) = (logins.decided(), logins.due());
        let first = Some(logins.first_undecided.clone()).filter(|first| !first.is_empty());
        let is_short = (decided as f64) * 100.0 < SUSTAINED_PERCENT * due as f64;
        let cause = Cause::LoginsUndecided { decided, due, first };
        is_short.then_some((Verdict::NotSustained, cause))
    });
    below.map(cause).chain(undecided).collect()
}

/// What actions should have brought and did not.
pub fn judge_actions(actions: &[ActionRecord]) -> Vec<(Verdict, Cause)> {
    let missing = |of: fn(&ActionRecord) -> u64| actions.iter().map(of).sum::<u64>();
    let outlived = |action: &ActionRecord| match action.kind {
        ActionKind::Takeover => action.connected.saturating_sub(action.displaced),
        _ => 0,
    };
    let retained = missing(|action| action.retained_expected.saturating_sub(action.retained));
    let wills = missing(|action| action.wills_expected.saturating_sub(action.wills));
    let causes = [
        (retained, Cause::RetainedMissing { count: retained }),
        (wills, Cause::WillsMissing { count: wills }),
        (missing(outlived), Cause::NotTakenOver { count: missing(outlived) }),
    ];
    let found = causes.into_iter().filter(|(count, _)| *count > 0);
    found.map(|(_, cause)| (Verdict::NotSustained, cause)).collect()
}

/// Whether groups that no action concerned sent and got what they should.
fn bystanders(step: &Step) -> Vec<(Verdict, Cause)> {
    if step.kills > 0 {
        return Vec::new();
    }
    let below = |part: u64, all: u64| (part as f64) * 100.0 < SUSTAINED_PERCENT * all as f64;
    let mut found = Vec::new();
    for group in step.groups.iter().filter(|group| !group.concerned) {
        let name = || group.name.clone();
        let StepGroup { sent, offered, received, expected, .. } = *group;
        if below(sent, offered) {
            found.push(Cause::BystanderSent { group: name(), sent, offered });
        }
        if below(received, expected) {
            found.push(Cause::BystanderReceived { group: name(), received, expected });
        }
    }
    found.into_iter().map(|cause| (Verdict::NotSustained, cause)).collect()
}

/// The cause when the first and the last third of the window differ too much.
fn unsteady(rows: &[&SeriesRow]) -> Option<Cause> {
    /// Fewer seconds show no trend.
    const SECONDS_MIN: usize = 6;
    /// Median latencies that differ less than this, in microseconds, are the same.
    const LATENCY_SLACK_US: u64 = 1000;
    /// Rates may differ by this share.
    const RATE_SLACK: f64 = 0.05;
    let rows: Vec<&SeriesRow> = rows.iter().copied().filter(|row| !row.disturbed).collect();
    if rows.len() < SECONDS_MIN {
        return None;
    }
    let third = rows.len() / 3;
    let (first, last) = (&rows[..third], &rows[rows.len() - third..]);
    let rate = |part: &[&SeriesRow]| {
        part.iter().map(|row| row.received_per_s).sum::<f64>() / part.len() as f64
    };
    let (first_per_s, last_per_s) = (rate(first), rate(last));
    if (first_per_s - last_per_s).abs() > RATE_SLACK * first_per_s.max(last_per_s) {
        return Some(Cause::RateChanged { first_per_s, last_per_s });
    }
    let latency = |part: &[&SeriesRow]| {
        let mut medians: Vec<u64> = part.iter().filter_map(|row| row.e2e_p50_us).collect();
        medians.sort_unstable();
        medians.get(medians.len() / 2).copied()
    };
    let (Some(first_us), Some(last_us)) = (latency(first), latency(last)) else { return None };
    let (low, high) = (first_us.min(last_us), first_us.max(last_us));
    let differs = high > 2 * low && high - low > LATENCY_SLACK_US;
    differs.then_some(Cause::LatencyChanged { first_us, last_us })
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

/// The cause of a threshold that does not hold.
pub fn threshold_cause(result: &ThresholdResult) -> Cause {
    Cause::ThresholdFailed { condition: result.condition.clone(), value: result.value }
}

/// The verdict that counts when several apply. A run cut short says little; a broken contract is
/// real whatever the generator did; the generator's health comes before all figures.
pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    const ORDER: [Verdict; 11] = [
        Verdict::Aborted,
        Verdict::QosViolation,
        Verdict::LoginViolation,
        // A disturbance may be why the generator was late: it is named first, and passes.
        Verdict::Disturbed,
        Verdict::GeneratorBound,
        Verdict::NetworkBound,
        Verdict::NotSustained,
        Verdict::NotSteady,
        Verdict::ThresholdFailed,
        Verdict::Unclear,
        Verdict::Ok,
    ];
    let rank = |verdict: &Verdict| ORDER.iter().position(|known| known == verdict);
    verdicts.into_iter().min_by_key(rank).unwrap_or(Verdict::Ok)
}

#[cfg(test)]
mod tests {
    use tacho_record::LatencyStats;

    use super::*;

    #[test]
    fn samples_are_late_from_a_twentieth_of_the_window_on() {
        let late = |from_ms: u64, until_ms: u64, len_ms: u64| {
            let ms = |ms: u64| 1_000_000_000 + ms * 1_000_000;
            let window = (1_000_000_000, len_ms * 1_000_000);
            let gate = late_samples((ms(from_ms), ms(until_ms)), window);
            gate.map(|gate| (gate.value, gate.passed))
        };
        assert_eq!(late(0, 10_000, 10_000), None);
        assert_eq!(late(49, 10_050, 10_000), None, "less than 100 ms");
        assert_eq!(late(200, 10_200, 10_000), Some((4.0, true)));
        assert_eq!(late(300, 10_200, 10_000), Some((5.0, false)));
        assert_eq!(late(60_000, 70_000, 10_000), Some((100.0, false)));
        assert_eq!(late(0, 0, 0), None);
    }

    #[test]
    fn the_worst_agent_is_named() {
        let agent = |name: &str, busy: f64, p99: Option<u64>| StepAgent {
            name: name.to_owned(),
            thread_busy_max_percent: busy,
            send_delay_us: LatencyStats { p99, ..LatencyStats::default() },
            ..StepAgent::default()
        };
        // The late one sends so little that all messages together are in time.
        let step = Step {
            generator_thread_busy_max_percent: 90.0,
            send_delay_us: LatencyStats { p99: Some(50), ..LatencyStats::default() },
            agents: vec![
                agent("busy", 90.0, Some(40)),
                agent("late", 10.0, Some(5_000)),
                agent("idle", 1.0, None),
            ],
            ..Step::default()
        };
        let of = |step: &Step| -> Vec<_> {
            let gates = gates(step, false, 1).into_iter();
            gates.map(|gate| (gate.value, gate.passed, gate.agent)).collect()
        };
        let named = |name: &str| Some(name.to_owned());
        let expected = [(90.0, false, named("busy")), (5_000.0, false, named("late"))];
        assert_eq!(of(&step), expected);
        let (_, causes) = judge_step(&Step { gates: gates(&step, false, 1), ..step.clone() }, &[]);
        let late = Cause::GeneratorCheck {
            check: Check::SendDelay,
            value: 5_000.0,
            limit: SEND_DELAY_P99_US,
            agent: named("late"),
        };
        assert!(causes.contains(&late), "{causes:?}");
        let alone = Step { agents: Vec::new(), ..step };
        assert_eq!(of(&alone), [(90.0, false, None), (50.0, true, None)]);
    }
}
