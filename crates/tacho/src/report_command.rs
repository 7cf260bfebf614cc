//! `tacho report`: renders the report of a run that was made again.

use std::path::{Path, PathBuf};

use clap::Args;
use tacho_lab::past::{Past, PastError};
use tacho_lab::report::Lang;

use crate::exit::{self, Failure};

/// Render the report of a run that was made again, from the files in its directory.
///
/// Replaces report.html, and that of each step of a ladder, a search or a suite; nothing else is
/// touched. The charts are those of the recorded figures: percentiles come from e2e.hgrm and its
/// kin.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes:
    0  the report was written
    1  it could not be written
  104  something that it shows is missing or damaged, or of a newer version")]
pub(crate) struct ReportArguments {
    /// Run directories
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,

    /// Language of the report: en or zh
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = Lang::parse)]
    lang: Lang,
}

/// Runs the command; its exit code.
pub(crate) fn report(arguments: &ReportArguments) -> Result<u8, Failure> {
    for directory in &arguments.directories {
        render(directory, arguments.lang).map_err(|error| {
            let code = match error {
                PastError::Output(_) => exit::UNEXPECTED,
                _ => exit::INVALID_CONFIG,
            };
            Failure::new(code, error)
        })?;
    }
    Ok(exit::OK)
}

/// Renders a run, and before it what its page leads to.
fn render(directory: &Path, lang: Lang) -> Result<(), PastError> {
    let past = Past::read(directory)?;
    for step in past.steps() {
        Past::read(&step)?.render(lang)?;
    }
    println!("{}", past.render(lang)?.display());
    Ok(())
}
