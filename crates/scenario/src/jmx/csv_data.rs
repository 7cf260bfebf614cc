//! CSV Data Set Config: a row of a file for each client.
//!
//! Of a file, client ids, user names and passwords are taken: what differs from client to client
//! for its whole life.

use std::path::{Path, PathBuf};

use super::data_set::{DataSet, Share};
use super::values::Values;
use super::xml::Element;
use crate::jmx_options::RowDivision;

/// Longest first line that is read.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Classes of the element: JMeter's, and that of XMeter.
pub(super) fn is_data_set(class: &str) -> bool {
    class == "CSVDataSet" || class.rsplit('.').next() == Some("XmCSVDataSet")
}

/// Defines the variables of a data set; `directory` is where the plan is.
///
/// # Errors
/// A sentence, when the file cannot be read or the element asks for more than is understood.
pub(super) fn define(
    element: &Element,
    values: &mut Values,
    directory: Option<&Path>,
    division: Option<RowDivision>,
) -> Result<(), String> {
    let written = values.fixed(element.text("filename"))?;
    let file = beside(&written, directory);
    if file != written {
        values.note(format!("'{written}' is not there: '{file}' beside the plan is read."));
    }
    let delimiter = delimiter(&values.fixed(element.text("delimiter"))?)?;
    let encoding = values.fixed(element.text("fileEncoding"))?;
    if !["", "utf-8", "utf8", "us-ascii"].contains(&&*encoding.trim().to_ascii_lowercase()) {
        return Err(format!("the encoding of '{file}' is '{encoding}'; only UTF-8 is read"));
    }
    let head = first_line(&file, directory)?;
    let head: Vec<&str> = head.split(delimiter).map(str::trim).collect();
    let names = values.fixed(element.text("variableNames"))?;
    let names: Vec<&str> = match names.trim() {
        "" => head.clone(),
        names => names.split(',').map(str::trim).collect(),
    };
    if names.iter().any(|name| name.is_empty()) {
        return Err(format!("'{file}' has a column without a name"));
    }
    let set = DataSet {
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        delimiter,
        has_head: names == head || element.flag("ignoreFirstLine"),
        share: share(&values.fixed(element.text("shareMode"))?)?,
        every: rows(values, element, "rowsPerThread")?.unwrap_or(1),
        per_machine: match division {
            None => rows(values, element, "rowsForDockers")?,
            Some(RowDivision::Split) => None,
            Some(RowDivision::Copy) => Some(0),
        },
        // JMeter's default.
        recycle: element.get("recycle").is_none() || element.flag("recycle"),
        file,
    };
    if !set.recycle && !element.flag("stopThread") {
        values.note(format!(
            "'{}' must have a row for each client; without one JMeter continues with <EOF>.",
            set.file
        ));
    }
    if !matches!(element.text("byRow").trim(), "" | "true") {
        values.note(format!("'byRow' of '{}' has no effect: a client takes a row.", set.file));
    }
    values.note(format!(
        "Each client takes its row of '{}', which is looked for beside the scenario's file, and \
         keeps it.",
        set.file
    ));
    values.define_data_set(set);
    Ok(())
}

/// The file that a plan means: where it says, or else, as load services keep it, the one of that
/// name beside the plan.
pub(super) fn beside(written: &str, directory: Option<&Path>) -> String {
    let name = file_name(written);
    let is_there = |file: &str| path_of(file, directory).is_file();
    let file = if !is_there(written) && is_there(name) { name } else { written };
    file.to_owned()
}

/// The name of a file behind folders of any system.
pub(super) fn file_name(written: &str) -> &str {
    written.rsplit(['/', '\\']).next().unwrap_or(written)
}

/// Where a file of a plan in `directory` is.
pub(super) fn path_of(file: &str, directory: Option<&Path>) -> PathBuf {
    directory.map_or_else(|| Path::new(file).to_owned(), |at| at.join(file))
}

/// The first line of a file of a plan in `directory`.
///
/// # Errors
/// A sentence, when it cannot be read or is empty.
pub(super) fn first_line(file: &str, directory: Option<&Path>) -> Result<String, String> {
    let path = path_of(file, directory);
    let bytes = std::fs::read(&path)
        .map_err(|error| format!("cannot read its file '{}': {error}", path.display()))?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(&line[..line.len().min(LINE_BYTES_MAX)])
        .map_err(|_| format!("the first line of '{file}' is not text"))?;
    match line.trim() {
        "" => Err(format!("the first line of '{file}' is empty")),
        _ => Ok(line.to_owned()),
    }
}

/// The character between two cells.
///
/// # Errors
/// A sentence, when it is none that is supported.
pub(super) fn delimiter(text: &str) -> Result<char, String> {
    let mut characters = text.chars();
    match (characters.next(), characters.next(), text) {
        (None, ..) => Ok(','),
        (_, _, "\\t") => Ok('\t'),
        (Some(one), None, _) if one.is_ascii() && one != '"' => Ok(one),
        _ => Err(format!("its delimiter is '{text}'; one ASCII character or \\t is supported")),
    }
}

fn share(text: &str) -> Result<Share, String> {
    match text.trim() {
        "" | "shareMode.all" => Ok(Share::All),
        "shareMode.group" => Ok(Share::Group),
        "shareMode.thread" => Ok(Share::Thread),
        other => Err(format!("its sharing mode '{other}' is not supported")),
    }
}

/// A number of rows; absent, empty and 0 are none.
fn rows(values: &mut Values, element: &Element, name: &str) -> Result<Option<u32>, String> {
    let text = values.fixed(element.text(name))?;
    match text.trim() {
        "" | "0" => Ok(None),
        text => match text.parse() {
            Ok(rows) => Ok(Some(rows)),
            Err(_) => Err(format!("'{name}' is '{text}', not a number of rows")),
        },
    }
}
