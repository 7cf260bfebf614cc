//! `tacho report`: renders the report of a recorded run again, or sends its figures to outputs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tacho_lab::points::{PastPointsError, send_again};
use tacho_output::{OutputAccount, Outputs};
use tacho_record::RunKind;
use tacho_record::past::{Past, PastError};
use tacho_report::Lang;

use crate::exit::{self, Failure};
use crate::out_arguments::OutArguments;

/// How long an output may take for a minute of a run.
const PATIENCE: Duration = Duration::from_secs(30);

/// Regenerate the report of a recorded run from the files in its directory.
///
/// Replaces report.html, also in the steps of a ladder, search or suite; other files stay
/// as they are. The charts show the recorded figures: percentiles come from e2e.hgrm and the other
/// .hgrm files.
///
/// With --out the figures are sent to outputs instead, with the names, tags and time stamps that
/// 'tacho run --out' gives them; those of groups of clients are not recorded per second.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes:
    0  the report was written; with --out: the outputs took all figures
    1  it could not be written; with --out: an output did not take some of them
  104  a file that the report shows is missing, damaged, or of a newer version")]
pub(crate) struct ReportArguments {
    /// Run directories
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,

    /// Language of the report: en or zh
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = Lang::parse)]
    lang: Lang,

    #[command(flatten)]
    out: OutArguments,
}

/// Runs the command; its exit code.
pub(crate) fn report(arguments: &ReportArguments) -> Result<u8, Failure> {
    if !arguments.out.is_empty() {
        return send(arguments);
    }
    for directory in &arguments.directories {
        let page = render(directory, arguments.lang)?;
        println!("{}", page.display());
    }
    Ok(exit::OK)
}

/// Sends the figures of runs to outputs.
fn send(arguments: &ReportArguments) -> Result<u8, Failure> {
    let outputs = arguments.out.open(Vec::new())?;
    let mut code = exit::OK;
    for directory in &arguments.directories {
        let unreadable = |error: PastError| Failure::new(exit::INVALID_CONFIG, error);
        let past = Past::read(directory).map_err(unreadable)?;
        let runs = match past.data.record.kind {
            RunKind::Run => vec![past],
            _ => past
                .steps()
                .iter()
                .map(|step| Past::read(step))
                .collect::<Result<_, _>>()
                .map_err(unreadable)?,
        };
        for run in runs {
            let is_whole = send_run(&run, &outputs)?;
            code = if is_whole { code } else { exit::UNEXPECTED };
        }
    }
    Ok(code)
}

/// Sends the figures of a run, and tells what became of them. Did all arrive?
fn send_run(run: &Past, outputs: &Outputs) -> Result<bool, Failure> {
    let invalid = |error: PastPointsError| Failure::new(exit::INVALID_CONFIG, error);
    let accounts = send_again(run, outputs, PATIENCE).map_err(invalid)?;
    for account in &accounts {
        println!("{}: {}", run.directory().path().display(), told(account));
    }
    Ok(accounts.iter().all(OutputAccount::is_clean))
}

fn told(account: &OutputAccount) -> String {
    let OutputAccount { target, taken, refused, unsent, last_error, .. } = account;
    let mut text = format!("{target} took {taken} records");
    if !account.is_clean() {
        text.push_str(&format!(", refused {refused}, and {unsent} could not be sent"));
    }
    if let Some(error) = last_error {
        text.push_str(&format!("; the last error: {error}"));
    }
    text
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
