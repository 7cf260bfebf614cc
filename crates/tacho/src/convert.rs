//! `tacho convert`: a JMeter plan as a scenario file.

use std::path::{Path, PathBuf};

use clap::Args;
use tacho_scenario::jmx;
use tacho_scenario::{Adjustment, Limits, Scenario, SourceText};

use crate::exit::{self, Failure};
use crate::plan_arguments::PlanArguments;
use crate::scenario::{failure, parse_var};

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// The plan (.jmx)
    plan: PathBuf,

    /// Write the scenario here, instead of to standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Set a variable of the plan; may be given several times
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_var)]
    vars: Vec<(String, String)>,

    #[command(flatten)]
    how: PlanArguments,
}

pub(crate) fn convert(arguments: &ConvertArguments) -> Result<u8, Failure> {
    let name = arguments.plan.display().to_string();
    if !jmx::is_plan(&name) {
        let sentence = format!("'{name}' is not a JMeter plan: their names end in .jmx");
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    let source = SourceText::load(&name).map_err(|error| failure(&error))?;
    let adjustment = arguments.how.adjustment();
    let translation =
        jmx::translate(&source, &arguments.vars, &adjustment).map_err(|error| failure(&error))?;
    // The written scenario is valid: here, or on a machine with higher limits.
    Scenario::parse_adjusted(&translation.source, &[], &Adjustment::NONE, Limits::NONE)
        .map_err(|error| failure(&error))?;
    match &arguments.output {
        None => print!("{}", translation.source.text),
        Some(path) => {
            write(path, &translation.source.text)?;
            translation.notes.iter().for_each(|note| eprintln!("note: {note}"));
        }
    }
    Ok(exit::OK)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        Failure::new(exit::UNEXPECTED, format!("cannot write {}: {error}", path.display()))
    })
}
