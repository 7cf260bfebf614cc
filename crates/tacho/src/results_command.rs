//! `tacho results`: writes the documents about a measurement with several brokers.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use tacho_lab::results::{Documents, Results, ResultsError, with_summary};

use crate::exit::{self, Failure};

/// Write the documents about a suite that was measured with several brokers.
///
/// `cargo xtask results` collects the record and calls this.
#[derive(Args, Debug)]
pub(crate) struct ResultsArguments {
    /// Folder with record.json and rows.jsonl
    record: PathBuf,

    /// Folder for the document and its graphs
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Put the summary into this file too, between the lines <!-- SUITE: begin --> and
    /// <!-- SUITE: end -->
    #[arg(long, value_name = "FILE")]
    readme: Option<PathBuf>,
}

/// Runs the command; its exit code.
pub(crate) fn results(arguments: &ResultsArguments) -> Result<u8, Failure> {
    let failed = |error: ResultsError| Failure::new(exit::INVALID_CONFIG, error);
    let results = Results::load(&arguments.record).map_err(failed)?;
    let documents = Documents::of(&results);
    documents.write(&arguments.out).map_err(failed)?;
    if let Some(path) = &arguments.readme {
        let file = |error| failed(ResultsError::File { path: path.clone(), error });
        let text = fs::read_to_string(path).map_err(file)?;
        let name = results.suite.clone();
        let text = with_summary(&text, &name, &documents.summary);
        let text =
            text.ok_or_else(|| failed(ResultsError::NoPlace { path: path.clone(), name }))?;
        fs::write(path, text).map_err(file)?;
    }
    Ok(exit::OK)
}
