//! A comparison as its run record tells it.

use tacho_record::{
    Cause, Comparison, ConditionCause, ConditionOutcome, Judgement, Requirement, RunKind,
    RunRecord, SCHEMA_VERSION, Series, Verdict,
};

use super::side::{Run, Side};
use super::statistics::REPEATS_MIN;

/// The name of the A/A repeats of the `first` side.
pub(super) fn again_name(first: &str) -> String {
    format!("{first}-aa")
}

/// What the comparison is worth: the verdict of its record, of lists, and of the exit code. The
/// causes are empty where it is `ok`.
///
/// A condition that does not hold counts more than one that cannot be decided.
pub fn verdict_of(comparison: &Comparison) -> (Verdict, Vec<Cause>) {
    let of = |wanted: ConditionOutcome, cause: fn(Requirement, Vec<ConditionCause>) -> Cause| {
        let results = comparison.conditions.iter().filter(|result| result.outcome == wanted);
        let causes = results.filter_map(|one| Some(cause(one.requirement?, one.causes.clone())));
        causes.collect::<Vec<_>>()
    };
    let failed = of(ConditionOutcome::Failed, |requirement, because| Cause::ConditionFailed {
        requirement,
        because,
    });
    if !failed.is_empty() {
        return (Verdict::ThresholdFailed, failed);
    }
    let mut unclear = of(ConditionOutcome::Undecided, |requirement, because| {
        Cause::ConditionUndecided { requirement, because }
    });
    if comparison.verdict == Judgement::Unclear {
        unclear.push(Cause::TooFewRepeats { least: REPEATS_MIN as u64 });
    }
    match unclear.is_empty() {
        true => (Verdict::Ok, unclear),
        false => (Verdict::Unclear, unclear),
    }
}

/// The run record of a comparison of recorded runs: all steps, a series per side.
pub fn stored_record(comparison: &Comparison, sides: &[Side]) -> RunRecord {
    let (verdict, causes) = verdict_of(comparison);
    let mut record = RunRecord {
        schema_version: SCHEMA_VERSION,
        tool_version: comparison.tool_version.clone(),
        kind: RunKind::Comparison,
        scenario: comparison.scenario.clone(),
        description: comparison.description.clone(),
        description_zh: comparison.description_zh.clone(),
        name: comparison.name.clone(),
        started_at: comparison.started_at.clone(),
        remarks: comparison.remarks.clone(),
        verdict,
        causes,
        ..RunRecord::default()
    };
    let again = sides.iter().take(1).filter(|side| !side.again.is_empty());
    let groups = sides.iter().map(|side| (side.name.clone(), &side.label, &side.runs));
    let groups = groups.chain(again.map(|side| (again_name(&side.name), &side.label, &side.again)));
    for (name, title, runs) in groups {
        let first = record.steps.len();
        for (index, run) in runs.iter().enumerate() {
            take_run(&mut record, run, &format!("{name}-{}", index + 1), &name);
        }
        record.series.push(Series {
            label: format!("{name}: {title}"),
            name,
            figure: "comparison".to_owned(),
            scenario: comparison.scenario.clone(),
            steps: (first..record.steps.len()).collect(),
            ..Series::default()
        });
    }
    record
}

/// Adds the steps of a run to a series. What all runs share comes from the first.
fn take_run(record: &mut RunRecord, run: &Run, label: &str, series: &str) {
    if record.targets.is_empty() {
        record.target = run.record.target.clone();
        record.targets.clone_from(&run.record.targets);
        record.placement = run.record.placement.clone();
    }
    for step in &run.record.steps {
        let mut step = step.clone();
        step.label = format!("{label} {}", step.label).trim().to_owned();
        series.clone_into(&mut step.series);
        // It is relative to the run that it came from.
        step.directory.clear();
        record.steps.push(step);
    }
}
