//! The files of a run directory that are made for people and for CI.

use tacho_record::{Comparison, OutputError, RunData, RunDirectory, RunRecord, SideCurve};

use crate::comparison::comparison_html;
use crate::comparison_junit::comparison_junit;
use crate::comparison_text::comparison_markdown;
use crate::data::ReportData;
use crate::document::with_files;
use crate::html::html;
use crate::junit::junit;
use crate::lang::Lang;
use crate::markdown::markdown;
use crate::tell::tell;

/// Writes all files of a run that has ended: its record, with the sentences that belong to its
/// data, and `report.html` in `lang`.
///
/// # Errors
/// When a file cannot be written.
pub fn write_run(
    directory: &RunDirectory,
    data: &mut RunData,
    lang: Lang,
) -> Result<(), OutputError> {
    tell(&mut data.record);
    write_record(directory, &data.record)?;
    write_page(directory, data, lang)
}

/// Writes the record: `summary.md`, `junit.xml`, `steps.csv` and, last, `summary.json`.
///
/// # Errors
/// When a file cannot be written.
pub fn write_record(directory: &RunDirectory, record: &RunRecord) -> Result<(), OutputError> {
    directory.write_rendering("summary.md", &markdown(record))?;
    directory.write_rendering("junit.xml", &junit(record))?;
    directory.write_summary(record)
}

/// Writes `report.html`, with links to the files that are there; nothing where nothing ran.
///
/// # Errors
/// When the file cannot be written.
pub fn write_page(directory: &RunDirectory, data: &RunData, lang: Lang) -> Result<(), OutputError> {
    match ReportData::new(data, lang) {
        Some(data) => write_html(directory, &html(&data)),
        None => Ok(()),
    }
}

/// Writes the files of a comparison: `junit.xml`, `summary.md`, `comparison.json` and, in `lang`,
/// `report.html`.
///
/// # Errors
/// When a file cannot be written.
pub fn write_comparison(
    directory: &RunDirectory,
    comparison: &Comparison,
    curves: &[SideCurve],
    lang: Lang,
) -> Result<(), OutputError> {
    directory.write_rendering("junit.xml", &comparison_junit(comparison))?;
    directory.write_rendering("summary.md", &comparison_markdown(comparison))?;
    directory.write_comparison(comparison)?;
    write_html(directory, &comparison_html(comparison, curves, lang))
}

fn write_html(directory: &RunDirectory, html: &str) -> Result<(), OutputError> {
    directory.write_rendering("report.html", &with_files(html, &directory.names()?))
}
