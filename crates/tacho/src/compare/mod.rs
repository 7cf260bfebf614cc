//! `tacho compare`: the same scenario under two or more conditions, or recorded runs.

mod arguments;
mod before;
mod session;
mod sides;
mod stored;
mod turns;

use tacho_lab::compare::Condition;
use tacho_record::RunDirectory;
use tacho_record::{Comparison, ConditionOutcome, ConditionResult, Judgement, SideCurve};
use tacho_report::{comparison_junit, comparison_markdown, comparison_text, write_comparison};

use crate::exit::{self, Failure};
use crate::run::OutputArguments;

pub(crate) use arguments::CompareArguments;

/// Compares; the exit code is that of the conditions.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<u8, Failure> {
    match &arguments.what[..] {
        [scenario] => session::session(arguments, scenario),
        runs => stored::stored(arguments, runs),
    }
}

/// The conditions that the arguments set.
fn conditions(arguments: &CompareArguments) -> Vec<Condition> {
    let fail_if = arguments.fail_if.iter().map(|when| Condition::FailIf(*when));
    let regressions = arguments.regressions.iter().cloned().map(Condition::Regression);
    fail_if.chain(regressions).collect()
}

/// Writes the files of the comparison, and shows it.
fn publish(
    comparison: &Comparison,
    curves: &[SideCurve],
    directory: &RunDirectory,
    output: &OutputArguments,
) -> Result<(), Failure> {
    let unexpected = |error: String| Failure::new(exit::UNEXPECTED, error);
    write_comparison(directory, comparison, curves, output.lang)
        .map_err(|error| unexpected(error.to_string()))?;
    output.write_texts(|| comparison_junit(comparison), || comparison_markdown(comparison))?;
    if output.json {
        let json = serde_json::to_string_pretty(comparison);
        println!("{}", json.map_err(|error| unexpected(error.to_string()))?);
    } else if !output.quiet {
        println!("{}", comparison_text(comparison));
        println!("report: {}", crate::run::shown(&directory.file("report.html")));
    }
    Ok(())
}

/// The name of the A/A repeats of the `first` side.
fn again_name(first: &str) -> String {
    format!("{first}-aa")
}

/// 99 when a condition does not hold, 111 when one cannot be decided.
fn code_of_conditions(comparison: &Comparison) -> u8 {
    let any = |wanted| comparison.conditions.iter().any(|result| result.outcome == wanted);
    match (any(ConditionOutcome::Failed), any(ConditionOutcome::Undecided)) {
        (true, _) => exit::THRESHOLD,
        (false, true) => exit::INVALID_RUN,
        (false, false) => exit::OK,
    }
}

/// Sentences of the conditions that do not hold.
fn failed_conditions(comparison: &Comparison) -> impl Iterator<Item = String> + '_ {
    let failed = |result: &&ConditionResult| result.outcome == ConditionOutcome::Failed;
    comparison
        .conditions
        .iter()
        .filter(failed)
        .map(|result| format!("{}: {}", result.condition, result.reasons.join("; ")))
}

/// Whether repeats enough were made and too few count.
fn is_lost(comparison: &Comparison) -> bool {
    let enough =
        |side: &tacho_record::ComparisonSide| side.repeats.len() >= tacho_lab::compare::REPEATS_MIN;
    comparison.verdict == Judgement::Unclear && comparison.sides.iter().all(enough)
}
