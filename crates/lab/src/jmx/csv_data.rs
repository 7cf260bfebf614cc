//! CSV Data Set Config: a row of a file for each client.
//!
//! A scenario takes client ids, user names and passwords from a file whose first line names its
//! columns; that much of the element is understood.

use std::path::Path;

use super::values::Values;
use super::xml::Element;

/// What a file may say about a client, as scenarios call it.
pub(super) const COLUMNS: [&str; 3] = ["client_id", "username", "password"];

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
    let name = values.fixed(element.text("filename"))?;
    let delimiter = values.fixed(element.text("delimiter"))?;
    if !matches!(delimiter.as_str(), "" | ",") {
        return Err(format!("its delimiter is '{delimiter}'; only ',' is supported"));
    }
    let path = directory.map_or_else(|| Path::new(&name).to_owned(), |at| at.join(&name));
    let bytes = std::fs::read(&path)
        .map_err(|error| format!("cannot read its file '{}': {error}", path.display()))?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(&line[..line.len().min(LINE_BYTES_MAX)])
        .map_err(|_| format!("the first line of '{name}' is not text"))?;
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    let variables = values.fixed(element.text("variableNames"))?;
    let variables: Vec<&str> = match variables.trim() {
        "" => columns.clone(),
        names => names.split(',').map(str::trim).collect(),
    };
    if variables != columns || !columns.iter().any(|column| COLUMNS.contains(column)) {
        return Err(format!(
            "the first line of '{name}' must name its columns, the variables of the element being \
             the same, and client ids, user names and passwords are those of the columns {}",
            COLUMNS.join(", ")
        ));
    }
    for column in columns {
        values.define_column(column, &name);
    }
    values.note(format!(
        "Each client takes its row of '{name}', which is looked for beside the scenario's file, and \
         keeps it."
    ));
    Ok(())
}
