//! `tacho report`: renders the report of a recorded run again.

use std::path::{Path, PathBuf};

use clap::Args;
use tacho_record::past::{Past, PastError};
use tacho_report::Lang;

use crate::exit::{self, Failure};

/// Regenerate the report of a recorded run from the files in its directory.
///
/// Replaces report.html, also in the steps of a ladder, search or suite; other files stay
/// as they are. The charts show the recorded figures: percentiles come from e2e.hgrm and the other
/// .hgrm files.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes:
    0  the report was written
    1  it could not be written
  104  a file that the report shows is missing, damaged, or of a newer version")]
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
        let page = render(directory, arguments.lang)?;
        println!("{}", page.display());
    }
    Ok(exit::OK)
}

/// Renders a run, and before it the steps that its page links to; returns where its page is.
fn render(directory: &Path, lang: Lang) -> Result<PathBuf, Failure> {
    let unreadable = |error: PastError| Failure::new(exit::INVALID_CONFIG, error);
    let past = Past::read(directory).map_err(unreadable)?;
    for step in past.steps() {
        write(&Past::read(&step).map_err(unreadable)?, lang)?;
    }
    write(&past, lang)
}

fn write(past: &Past, lang: Lang) -> Result<PathBuf, Failure> {
    let directory = past.directory();
    tacho_report::write_page(directory, &past.data, lang)
        .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    Ok(directory.file("report.html"))
}
