//! CSV Data Set Config: a row of a file for each client.
//!
//! Of a file, client ids, user names and passwords are taken: what differs from client to client
//! for its whole life.

use std::path::Path;

use super::data_set::{DataSet, Share};
use super::values::Values;
use super::xml::Element;

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
) -> Result<(), String> {
    let file = values.fixed(element.text("filename"))?;
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
        per_machine: rows(values, element, "rowsForDockers")?,
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

fn first_line(file: &str, directory: Option<&Path>) -> Result<String, String> {
    let path = directory.map_or_else(|| Path::new(file).to_owned(), |at| at.join(file));
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

fn delimiter(text: &str) -> Result<char, String> {
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
