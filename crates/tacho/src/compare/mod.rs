//! `tacho compare`: the same scenario under two or more conditions, or recorded runs.

mod arguments;
mod session;
mod sides;
mod stored;

use tacho_lab::compare::Condition;
use tacho_record::RunDirectory;
use tacho_record::{Comparison, SideCurve};
use tacho_report::{
    comparison_badge, comparison_junit, comparison_markdown, comparison_text, write_comparison,
};
use tacho_scenario::Scenario;

use crate::exit::{self, Failure};
use crate::run::{OutputArguments, TargetArguments};

pub(crate) use arguments::CompareArguments;

/// Compares; the exit code is that of the verdict in the record.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<u8, Failure> {
    match &arguments.what[..] {
        [scenario] => session::session(arguments, scenario),
        runs => stored::stored(arguments, runs),
    }
}

impl CompareArguments {
    /// The scenario of the first side.
    pub(crate) fn first_scenario(&self) -> Result<Scenario, Failure> {
        let scenario = self.what.first().map(String::as_str).unwrap_or_default();
        let sides = sides::plan(self, scenario)?;
        let first = sides.into_iter().next();
        first
            .map(|side| side.plan.scenario)
            .ok_or_else(|| Failure::new(exit::UNEXPECTED, "there is nothing to compare"))
    }

    /// Brokers and results.
    pub(crate) fn parts(&self) -> (&TargetArguments, &OutputArguments) {
        (&self.targets, &self.output)
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
    output.write_texts(
        || comparison_junit(comparison),
        || comparison_markdown(comparison),
        || comparison_badge(comparison),
    )?;
    if output.json {
        let json = serde_json::to_string_pretty(comparison);
        println!("{}", json.map_err(|error| unexpected(error.to_string()))?);
    } else if !output.quiet {
        println!("{}", comparison_text(comparison));
        println!("report: {}", crate::run::shown(&directory.file("report.html")));
    }
    Ok(())
}
