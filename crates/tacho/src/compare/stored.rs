//! Runs that were made before.

use std::path::PathBuf;

use tacho_lab::compare::{About, CompareError, Side, compare, read_side, side_curves};
use tacho_record::RunDirectory;
use tacho_record::Timestamp;
use tacho_record::{Comparison, RunKind, RunRecord, SCHEMA_VERSION, Series, Verdict};

use tacho_report::tell_comparison;

use super::arguments::CompareArguments;
use super::{again_name, code_of_conditions, conditions, failed_conditions, publish};
use crate::exit::{self, Failure};
use crate::run::create;

/// Compares the runs in the directories that `runs` name.
pub(super) fn stored(arguments: &CompareArguments, runs: &[String]) -> Result<u8, Failure> {
    if arguments.is_about_new_runs() {
        let sentence = "arguments about brokers, load and repeats cannot be used here: the runs \
                        are made already";
        return Err(Failure::new(exit::UNEXPECTED, sentence));
    }
    let unusable = |error: CompareError| Failure::new(exit::INVALID_CONFIG, error);
    let letters = ('a'..='z').map(String::from);
    if runs.len() > 26 {
        return Err(Failure::new(exit::INVALID_CONFIG, "at most 26 sides can be compared"));
    }
    let sides = letters.zip(runs).map(|(name, run)| read_side(&name, run));
    let sides: Vec<Side> = sides.collect::<Result<_, _>>().map_err(unusable)?;
    let started = Timestamp::now();
    let scenario = &sides[0].runs.first().map_or("", |run| run.record.scenario.as_str());
    let name = RunDirectory::run_name(started, &format!("compare-{scenario}"));
    let about = About {
        name: name.clone(),
        started_at: started.rfc3339(),
        elapsed_s: 0.0,
        interleaved: false,
        seed: 1,
    };
    let mut comparison = compare(&sides, &about, &conditions(arguments)).map_err(unusable)?;
    tell_comparison(&mut comparison);
    let path = arguments.output.dir.clone().unwrap_or_else(|| PathBuf::from("runs").join(&name));
    let directory = create(&path)?;
    let record = record(&comparison, &sides);
    let written = tacho_report::write_record(&directory, &record);
    written.map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    publish(&comparison, &side_curves(&sides), &directory, &arguments.output)?;
    Ok(code_of_conditions(&comparison))
}

/// The run record: all steps, a series per side.
fn record(comparison: &Comparison, sides: &[Side]) -> RunRecord {
    let mut record = RunRecord {
        schema_version: SCHEMA_VERSION,
        tool_version: comparison.tool_version.clone(),
        kind: RunKind::Comparison,
        scenario: comparison.scenario.clone(),
        description: comparison.description.clone(),
        name: comparison.name.clone(),
        started_at: comparison.started_at.clone(),
        notes: comparison.notes.clone(),
        remarks: comparison.remarks.clone(),
        reasons: failed_conditions(comparison).collect(),
        ..RunRecord::default()
    };
    if !record.reasons.is_empty() {
        record.verdict = Verdict::ThresholdFailed;
    }
    let again = sides.iter().take(1).filter(|side| !side.again.is_empty());
    let groups = sides.iter().map(|side| (side.name.clone(), &side.label, &side.runs));
    let groups = groups.chain(again.map(|side| (again_name(&side.name), &side.label, &side.again)));
    for (name, title, runs) in groups {
        let first = record.steps.len();
        for (number, run) in runs.iter().enumerate() {
            if record.targets.is_empty() {
                record.target = run.record.target.clone();
                record.targets.clone_from(&run.record.targets);
                record.placement = run.record.placement.clone();
            }
            for step in &run.record.steps {
                let mut step = step.clone();
                let label = format!("{name}-{} {}", number + 1, step.label);
                step.label = label.trim().to_owned();
                step.series.clone_from(&name);
                // It is relative to the run that it came from.
                step.directory.clear();
                record.steps.push(step);
            }
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
