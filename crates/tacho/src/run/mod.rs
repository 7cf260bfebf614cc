//! Running scenarios against brokers: arguments about brokers, load and output, and the stage that
//! they are run on.

mod broker;
mod credentials;
mod crew;
mod crew_arguments;
mod fitting;
mod follow;
mod given_arguments;
mod keeping;
mod live_feed;
mod load_arguments;
mod local_agents;
mod login_arguments;
mod named;
mod progress;
mod progress_news;
mod sources;
mod stage;
mod target;
mod target_arguments;
mod tolerate;
mod transport;

use std::path::Path;

use tacho_lab::agents::{Fleet, RunTicket};
use tacho_record::{RunDirectory, RunRecord};

use crate::exit::{self, Failure};

pub(crate) use fitting::Fitting;
pub(crate) use given_arguments::GivenArguments;
pub(crate) use keeping::Keeping;
pub(crate) use load_arguments::{LoadArguments, OutputArguments};
pub(crate) use progress_news::planned;
pub(crate) use stage::{Setting, Stage, create};
pub(crate) use target_arguments::{SideBroker, TargetArguments};
pub(crate) use transport::transport;

/// The agents of a run whose controller is gone, and the right to take it up.
pub(crate) fn agents_of(targets: &TargetArguments, ticket: &RunTicket) -> Result<Fleet, Failure> {
    crew::of_run(&targets.crew, ticket)
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
