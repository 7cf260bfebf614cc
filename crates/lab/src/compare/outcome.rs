//! A comparison as its run record tells it.

use tacho_record::{
    Cause, Comparison, ComparisonSide, ConditionOutcome, ConditionResult, Judgement, RunKind,
    RunRecord, SCHEMA_VERSION, Series, Verdict,
};

use super::side::{Run, Side};
use super::statistics::REPEATS_MIN;

/// The name of the A/A repeats of the `first` side.
pub(super) fn again_name(first: &str) -> String {
    format!("{first}-aa")
}

/// The conditions that do not hold.
pub(super) fn failed_conditions(comparison: &Comparison) -> impl Iterator<Item = Cause> + '_ {
    let failed = |result: &&ConditionResult| result.outcome == ConditionOutcome::Failed;
    let cause = |result: &ConditionResult| {
        let (requirement, because) = (result.requirement?, result.causes.clone());
        Some(Cause::ConditionFailed { requirement, because })
    };
    comparison.conditions.iter().filter(failed).filter_map(cause)
}

/// Were enough repeats of each side made, of which too few count?
pub fn lacks_valid_repeats(comparison: &Comparison) -> bool {
    let is_enough = |side: &ComparisonSide| side.repeats.len() >= REPEATS_MIN;
    comparison.verdict == Judgement::Unclear && comparison.sides.iter().all(is_enough)
}

/// The run record of a comparison of recorded runs: all steps, a series per side.
pub fn stored_record(comparison: &Comparison, sides: &[Side]) -> RunRecord {
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
        causes: failed_conditions(comparison).collect(),
        ..RunRecord::default()
    };
    if !record.causes.is_empty() {
        record.verdict = Verdict::ThresholdFailed;
    }
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
