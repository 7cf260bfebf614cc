//! JMeter plans with the samplers of mqtt-jmeter, as scenarios.
//!
//! A plan is translated into the text of a scenario file, which then goes the way of every other
//! scenario: what `tacho convert` writes is what `tacho run` runs.
//!
//! ```text
//! plan.jmx -> xml (elements) -> walk (thread groups, samplers, timers; values resolves texts)
//!     -> write (scenario file)
//! ```
//!
//! How elements are mapped, and where a run differs from JMeter's, is in `docs/jmeter.md`.

mod bridge;
mod condition;
mod credentials;
mod csv_data;
mod data_set;
mod error;
mod expression;
mod group;
mod number;
mod quoted;
mod survey;
mod timer;
mod value;
mod values;
mod walk;
mod write;
mod xml;

use crate::adjust::Adjustment;
use crate::error::{ScenarioError, SourceText};
use error::PlanError;

pub use survey::{PlanFile, PlanSurvey};

/// A plan as a scenario.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The scenario file.
    pub source: SourceText,
    /// Notes about the translation.
    pub notes: Vec<String>,
}

/// Is this the name of a plan file?
pub fn is_plan(name: &str) -> bool {
    std::path::Path::new(name)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("jmx"))
}

/// Translates a plan. `overrides` are the names and values of `--var`. Of the adjustment, machines,
/// ramp-up and the options for plans are taken; the rest is for the scenario.
///
/// # Errors
/// When the file is not a plan, or has enabled elements or values that are not understood: one
/// error that lists them all.
pub fn translate(
    plan: &SourceText,
    overrides: &[(String, String)],
    adjustment: &Adjustment,
) -> Result<Translation, ScenarioError> {
    let complain = |error: PlanError| complaint(plan, error);
    let root = xml::parse(&plan.text).map_err(complain)?;
    let walked = walk::walk(&root, overrides, adjustment.jmx, plan.directory.as_deref())
        .map_err(complain)?;
    if !walked.problems.is_empty() && !adjustment.jmx.ignore_unknown {
        let count = walked.problems.len();
        let what = if count == 1 { "unsupported element" } else { "unsupported elements" };
        let title = format!("{}: the plan has {count} {what}", plan.name);
        let error = ScenarioError::new(title);
        let error = walked.problems.iter().fold(error, |error, problem| error.help(problem));
        return Err(error.help("--ignore-unknown skips these elements"));
    }
    let (text, notes) = write::write(walked, plan, adjustment).map_err(complain)?;
    let name = format!("{} (as a scenario)", plan.name);
    let mut source = SourceText::new(&name, &text);
    source.directory.clone_from(&plan.directory);
    Ok(Translation { source, notes })
}

/// Looks at a plan: which files it reads, and which variables a run may set. Needs none of the
/// files.
///
/// # Errors
/// When the file is not a plan.
pub fn survey(plan: &SourceText) -> Result<PlanSurvey, ScenarioError> {
    survey::survey(plan).map_err(|error| complaint(plan, error))
}

fn complaint(plan: &SourceText, error: PlanError) -> ScenarioError {
    match error.line {
        None => ScenarioError::new(format!("{}: {}", plan.name, error.title)),
        Some(line) => ScenarioError::new(format!("{}:{line}: {}", plan.name, error.title)),
    }
}

#[cfg(test)]
mod tests;
