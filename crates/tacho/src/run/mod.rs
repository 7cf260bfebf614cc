//! `tacho run`: finds or starts the broker, runs the scenario, shows what comes of it.

mod arguments;
mod broker;
mod follow;
mod live_feed;
mod load_arguments;
mod progress;
mod stage;
mod target;
mod target_arguments;
mod transport;

use std::path::{Path, PathBuf};

use tacho_lab::run::Ending;
use tacho_record::RunDirectory;
use tacho_record::Timestamp;
use tacho_record::{RunKind, RunRecord};
use tacho_report::summary_text;
use tacho_scenario::suite::Suite;

use crate::campaign;
use crate::exit::{self, Failure};

pub(crate) use arguments::RunArguments;
pub(crate) use load_arguments::{LoadArguments, OutputArguments};
pub(crate) use stage::{Performance, Setting, Stage, create};
pub(crate) use target_arguments::{SideBroker, TargetArguments};

/// Runs one scenario; the exit code tells the verdict.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    let RunArguments { scenario, only, targets, load, output } = arguments;
    if let Some(suite) = Suite::find(scenario) {
        return campaign::suite(&suite, only, load, targets, output);
    }
    if !only.is_empty() {
        return Err(Failure::new(
            exit::UNEXPECTED,
            format!("--only is for suites, and '{scenario}' is none"),
        ));
    }
    let scenario = load.scenario(scenario, &[], targets)?;
    if !output.quiet {
        scenario.notes.iter().for_each(|note| eprintln!("note: {note}"));
    }
    let mut setting = Setting::new(targets, output.quiet)?;
    setting.report_in(output.lang);

    let name = RunDirectory::run_name(Timestamp::now(), &scenario.name);
    let path = output.dir.clone().unwrap_or_else(|| PathBuf::from("runs").join(&name));
    let brokers = setting.targets(&scenario)?;
    setting.serve(&output.ui, (&name, RunKind::Run), &path)?;
    let directory = create(&path)?;
    setting.announce(&directory, (&scenario.name, RunKind::Run))?;
    let stage = setting.stage(brokers, &directory)?;
    let outcome = stage.perform(Performance { scenario, name, title: None }, &directory);
    let (broker_failure, stayed_away) = (stage.broker_failure(), stage.lost_a_broker());
    drop(stage);
    let outcome = outcome?;

    show(output, &outcome.data.record, &directory, summary_text)?;
    if let Ending::TargetFailed(sentence) | Ending::GeneratorFailed(sentence) = &outcome.ending {
        eprintln!("error: {sentence}");
    }
    if let Some(sentence) = broker_failure {
        eprintln!("error: {sentence}");
    }
    setting.conclude(Some(&outcome.data.record));
    if stayed_away {
        return Ok(exit::TARGET_UNREACHABLE);
    }
    Ok(exit::code_of(outcome.data.record.verdict, &outcome.ending))
}

/// Shows a record in the forms and at the places that the arguments ask for.
pub(crate) fn show(
    output: &OutputArguments,
    record: &RunRecord,
    directory: &RunDirectory,
    text: impl Fn(&RunRecord) -> String,
) -> Result<(), Failure> {
    output.write_elsewhere(record)?;
    if output.json {
        let json = serde_json::to_string_pretty(record)
            .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
        println!("{json}");
    } else if !output.quiet {
        println!("{}", text(record));
        println!("report: {}", shown(&directory.file("report.html")));
    }
    Ok(())
}

/// A path without a `./` in front.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}
