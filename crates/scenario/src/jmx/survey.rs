//! A look at a plan before it is translated: the files that it reads, and the variables that a run
//! may set. None of the files needs to be there.

use std::path::Path;

use serde::Serialize;

use super::csv_data::{self, is_data_set};
use super::error::PlanError;
use super::values::{Values, scenario_name};
use super::write::variable_section;
use super::xml::{self, Element};
use crate::error::SourceText;
use crate::variables::ScenarioVariable;

/// The element whose variables load services show: those of a run, and no others.
const RUNTIME: &str = "xmeter_runtime_vars";
/// A larger file is not counted.
const COUNTED_BYTES_MAX: u64 = 64 << 20;

/// What a plan reads, and what a run may set.
#[derive(Clone, Debug, Default)]
pub struct PlanSurvey {
    /// Files with rows for its threads, in the order of the plan.
    pub files: Vec<PlanFile>,
    /// Its runtime variables, where it declares them; otherwise all that have a fixed value.
    pub variables: Vec<ScenarioVariable>,
}

/// A file that a plan reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanFile {
    /// Its name, without folders.
    pub name: String,
    /// The line of the element that reads it.
    pub line: u32,
    /// The name of that element.
    pub element: String,
    /// Names of its columns: the plan's, or those of the file's first line.
    pub columns: Vec<String>,
    /// Rows without a line of names; absent while the file is not there.
    pub rows: Option<u64>,
    /// Rows of each load machine, where the plan says that.
    pub rows_per_machine: Option<u32>,
    /// Whether it is there.
    pub is_there: bool,
}

/// Looks at a plan.
pub(super) fn survey(plan: &SourceText) -> Result<PlanSurvey, PlanError> {
    let root = xml::parse(&plan.text)?;
    let mut found = Found {
        directory: plan.directory.as_deref(),
        values: Values::new(&[]),
        runtime: None,
        files: Vec::new(),
    };
    found.visit(&root.children);
    let (runtime, files) = (found.runtime, found.files);
    let (_, mut variables) = found.values.finish();
    if let Some(names) = runtime {
        variables.retain(|variable| names.contains(&variable.name));
    }
    let source = SourceText::new(&plan.name, &variable_section(&variables));
    Ok(PlanSurvey { files, variables: ScenarioVariable::of(&source) })
}

struct Found<'d> {
    /// Where the plan is.
    directory: Option<&'d Path>,
    values: Values,
    runtime: Option<Vec<String>>,
    files: Vec<PlanFile>,
}

impl Found<'_> {
    /// The elements of one level and all below; a plan is not nested without bound.
    fn visit(&mut self, elements: &[Element]) {
        for element in elements {
            if element.class == "Arguments" && element.name == RUNTIME {
                let names = element.arguments.iter().map(|one| scenario_name(one.name.trim()));
                self.runtime.get_or_insert_default().extend(names);
            }
            for argument in &element.arguments {
                // What cannot be understood is a problem of the translation.
                let _ = self.values.define(argument);
            }
            if is_data_set(&element.class) {
                let file = self.file(element);
                if self.files.iter().all(|known| known.name != file.name) {
                    self.files.push(file);
                }
            }
            self.visit(&element.children);
        }
    }

    fn file(&mut self, element: &Element) -> PlanFile {
        let mut text = |name: &str| {
            let written = element.text(name);
            self.values.fixed(written).unwrap_or_else(|_| written.to_owned())
        };
        let (written, names) = (text("filename"), text("variableNames"));
        let (delimiter, per_machine) = (text("delimiter"), text("rowsForDockers"));
        let delimiter = csv_data::delimiter(&delimiter).unwrap_or(',');
        let split = |line: &str, at: char| -> Vec<String> {
            line.trim().split(at).map(|cell| cell.trim().to_owned()).collect()
        };
        let file = csv_data::beside(&written, self.directory);
        // Of a file elsewhere on this machine nothing is told but whether it is there.
        let is_beside = file == csv_data::file_name(&file);
        let head = csv_data::first_line(&file, self.directory).ok().filter(|_| is_beside);
        let head = head.map(|line| split(&line, delimiter));
        let columns = match (names.trim(), &head) {
            ("", head) => head.clone().unwrap_or_default(),
            (names, _) => split(names, ','),
        };
        let has_head = head.as_ref() == Some(&columns) || element.flag("ignoreFirstLine");
        let path = csv_data::path_of(&file, self.directory);
        let lines = lines(&path, delimiter).filter(|_| is_beside);
        let rows = lines.map(|lines| lines.saturating_sub(u64::from(has_head)));
        PlanFile {
            name: csv_data::file_name(&written).to_owned(),
            line: element.line,
            element: element.name.clone(),
            columns,
            rows,
            rows_per_machine: per_machine.trim().parse().ok().filter(|rows| *rows > 0),
            is_there: path.is_file(),
        }
    }
}

/// The lines of a file of moderate size, as CSV has them.
fn lines(path: &Path, delimiter: char) -> Option<u64> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > COUNTED_BYTES_MAX {
        return None;
    }
    let mut reader = csv::ReaderBuilder::new();
    reader.has_headers(false).flexible(true).delimiter(u8::try_from(delimiter).ok()?);
    let mut reader = reader.from_path(path).ok()?;
    let (mut record, mut lines) = (csv::ByteRecord::new(), 0);
    while reader.read_byte_record(&mut record).ok()? {
        lines += 1;
    }
    Some(lines)
}
