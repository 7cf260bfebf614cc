//! `cargo xtask documents`: writes the documents about a measurement with several brokers.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use super::{Documents, Results, ResultsError};
use crate::markers::with_part;

#[derive(Args, Debug)]
pub(crate) struct Options {
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

pub(crate) fn run(options: &Options) -> Result<()> {
    let results = Results::load(&options.record)?;
    let documents = Documents::of(&results);
    documents.write(&options.out)?;
    let Some(path) = &options.readme else { return Ok(()) };
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path:?}"))?;
    let name = results.suite.clone();
    let text = with_part(&text, &name, &documents.summary);
    let text = text.ok_or_else(|| ResultsError::NoPlace { path: path.clone(), name })?;
    fs::write(path, text).with_context(|| format!("cannot write {path:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_without_a_record_are_an_error_that_names_the_file() {
        let nowhere = PathBuf::from("nowhere");
        let options = Options { record: nowhere.clone(), out: nowhere, readme: None };
        let error = run(&options).expect_err("there is no record");
        assert!(format!("{error:#}").contains("record.json"), "{error:#}");
    }
}
