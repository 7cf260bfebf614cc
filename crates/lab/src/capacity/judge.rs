//! Whether a trial passes.

use tacho_record::{Cause, RunRecord, Step, TrialOutcome, Verdict};
use tacho_scenario::threshold::{Comparison, LatencyKind, Metric, Statistic, Threshold};

/// What a trial is worth, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The outcome.
    pub outcome: TrialOutcome,
    /// Why it is no pass.
    pub causes: Vec<Cause>,
}

/// The objectives that most users have: CPU to spare, low latency, nothing lost, all carried.
pub fn default_objectives() -> Vec<Threshold> {
    let one = |metric, comparison, limit| Threshold { metric, comparison, limit };
    vec![
        one(Metric::Cpu, Comparison::AtMost, 75.0),
        one(Metric::Latency(LatencyKind::EndToEnd, Statistic::P99), Comparison::Less, 10_000.0),
        one(Metric::Loss, Comparison::Equal, 0.0),
        one(Metric::Achieved, Comparison::AtLeast, 99.0),
    ]
}

/// Judges a trial by its record.
///
/// A broken QoS contract, a load that was not sustained, clients that failed and a run that the
/// broker ended are failures whatever the objectives are. Where the generator or the network was
/// the bottleneck, nothing but a broken contract says anything about the broker.
pub fn judge(record: &RunRecord, objectives: &[Threshold]) -> Judgement {
    let fail = |causes| Judgement { outcome: TrialOutcome::Fail, causes };
    let violations: u64 = record.steps.iter().map(|step| step.violations.total()).sum();
    if violations > 0 {
        return fail(vec![Cause::QosBreaches { count: violations }]);
    }
    let causes = || record.causes.clone();
    let verdicts = || record.steps.iter().map(|step| step.verdict).chain([record.verdict]);
    let not_the_brokers = [Verdict::GeneratorBound, Verdict::NetworkBound];
    if verdicts().any(|verdict| verdict == Verdict::Disturbed) {
        return Judgement { outcome: TrialOutcome::Disturbed, causes: causes() };
    }
    if verdicts().any(|verdict| not_the_brokers.contains(&verdict)) {
        return Judgement { outcome: TrialOutcome::GeneratorBound, causes: causes() };
    }
    if record.steps.is_empty() || record.verdict == Verdict::Aborted {
        return fail(match record.causes.is_empty() {
            true => vec![Cause::NothingMeasured],
            false => record.causes.clone(),
        });
    }
    let mut causes: Vec<Cause> = record
        .steps
        .iter()
        .flat_map(|step| objectives.iter().filter_map(|objective| missed(step, objective)))
        .collect();
    for verdict in [Verdict::LoginViolation, Verdict::NotSustained, Verdict::NotSteady] {
        if verdicts().any(|found| found == verdict) {
            causes.extend(record.causes.iter().cloned());
            break;
        }
    }
    match causes.is_empty() {
        true => Judgement { outcome: TrialOutcome::Pass, causes },
        false => fail(causes),
    }
}

/// Why a step misses an objective; `None` when it meets it.
fn missed(step: &Step, objective: &Threshold) -> Option<Cause> {
    let metric = objective.metric;
    let value = step.metric(metric).or_else(|| at_worst(step, metric));
    let holds = value.is_some_and(|value| objective.comparison.holds(value, objective.limit));
    let missed = || Cause::ObjectiveMissed { objective: objective.to_string(), value };
    (!holds).then(missed)
}

/// A percentile that a short trial has too few samples for is at most the maximum.
fn at_worst(step: &Step, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Latency(kind, _) => step.metric(Metric::Latency(kind, Statistic::Max)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_record::{LatencyStats, ViolationCounts};

    fn step() -> Step {
        Step {
            offered_in_per_s: 100.0,
            achieved_in_per_s: 100.0,
            offered_out_per_s: 100.0,
            achieved_out_per_s: 100.0,
            expected: 1000,
            received: 1000,
            cpu_percent: Some(50.0),
            latency_us: LatencyStats {
                count: 1000,
                p99: Some(5000),
                max: Some(9000),
                ..LatencyStats::default()
            },
            ..Step::default()
        }
    }

    fn told(judgement: &Judgement) -> Vec<String> {
        judgement.causes.iter().map(|cause| tacho_report::Lang::En.cause(cause)).collect()
    }

    fn judged(step: Step, verdict: Verdict) -> Judgement {
        let record = RunRecord {
            verdict,
            reasons: vec!["because".to_owned()],
            steps: vec![Step { verdict, ..step }],
            ..RunRecord::default()
        };
        judge(&record, &default_objectives())
    }

    #[test]
    fn objectives_decide() {
        assert_eq!(judged(step(), Verdict::Ok).outcome, TrialOutcome::Pass);
        let busy = judged(Step { cpu_percent: Some(76.0), ..step() }, Verdict::Ok);
        assert_eq!(busy.outcome, TrialOutcome::Fail);
        assert_eq!(told(&busy), ["cpu<=75% does not hold: 76.0 %"]);
        let blind = judged(Step { cpu_percent: None, ..step() }, Verdict::Ok);
        assert_eq!(told(&blind), ["cpu could not be measured"]);
        let lossy = judged(Step { lost: 1, ..step() }, Verdict::Ok);
        assert_eq!(told(&lossy), ["loss==0% does not hold: 0.1 %"]);
        let slow = Step { achieved_out_per_s: 90.0, ..step() };
        assert!(told(&judged(slow, Verdict::NotSustained))[0].starts_with("achieved>=99%"));
    }

    #[test]
    fn a_short_trial_may_pass_by_its_maximum() {
        let few = LatencyStats { count: 20, max: Some(9000), ..LatencyStats::default() };
        assert_eq!(
            judged(Step { latency_us: few, ..step() }, Verdict::Ok).outcome,
            TrialOutcome::Pass
        );
        let slow = LatencyStats { max: Some(11_000), ..few };
        assert_eq!(
            judged(Step { latency_us: slow, ..step() }, Verdict::Ok).outcome,
            TrialOutcome::Fail
        );
        let none = judged(Step { latency_us: LatencyStats::default(), ..step() }, Verdict::Ok);
        assert_eq!(told(&none), ["e2e_p99 could not be measured"]);
    }

    #[test]
    fn the_generators_limit_is_not_the_brokers() {
        let slow = LatencyStats { p99: Some(900_000), ..step().latency_us };
        let judged_slow = judged(Step { latency_us: slow, ..step() }, Verdict::GeneratorBound);
        assert_eq!(judged_slow.outcome, TrialOutcome::GeneratorBound);
        // A broken contract is the broker's all the same.
        let violations = ViolationCounts { lost: 1, ..ViolationCounts::default() };
        let broken = judged(Step { violations, ..step() }, Verdict::GeneratorBound);
        assert_eq!(broken.outcome, TrialOutcome::Fail);
        let nothing = judge(&RunRecord::default(), &default_objectives());
        assert_eq!((nothing.outcome, nothing.causes.len()), (TrialOutcome::Fail, 1));
    }
}
