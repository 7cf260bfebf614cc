//! Types of one crate that have the same name.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Finding;
use super::tree::Crate;

/// Where a type is defined.
struct Place<'a> {
    /// Of its module.
    path: &'a [String],
    file: &'a str,
    line: usize,
}

/// Checks every crate. `reasons` are lines `crate Name: why`, from the file `table`.
pub(super) fn check(crates: &[Crate], table: &str, reasons: &str, findings: &mut Vec<Finding>) {
    let mut known = table_rows(table, reasons, findings);
    for found in crates {
        let mut types: BTreeMap<&str, Vec<Place<'_>>> = BTreeMap::new();
        for module in &found.modules {
            for (name, line) in &module.types {
                let places = types.entry(name).or_default();
                // At the same path, conditions (`cfg`) choose one of them.
                if places.iter().all(|place| place.path != module.path) {
                    places.push(Place { path: &module.path, file: &module.file, line: *line });
                }
            }
        }
        types.retain(|_, places| places.len() > 1);
        for (name, places) in types {
            if known.remove(&(found.name.as_str(), name)).is_some() {
                continue;
            }
            let [first, others @ ..] = places.as_slice() else { continue };
            let others: Vec<String> =
                others.iter().map(|place| format!("{}:{}", place.file, place.line)).collect();
            let message = format!(
                "type `{name}` is also at {}: rename, or give a reason in {table}",
                others.join(", ")
            );
            findings.push(Finding::new(first.file, first.line, message));
        }
    }
    for ((package, name), line) in known {
        let message = format!("`{package}` has no two types called `{name}`: remove the line");
        findings.push(Finding::new(table, line, message));
    }
}

/// The rows of the table with their lines; a row without a reason is found.
fn table_rows<'a>(
    table: &str,
    reasons: &'a str,
    findings: &mut Vec<Finding>,
) -> BTreeMap<(&'a str, &'a str), usize> {
    let mut rows = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (number, line) in (1..).zip(reasons.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let row = line.split_once(": ").filter(|(_, reason)| !reason.trim().is_empty());
        let key = row.and_then(|(key, _)| key.split_once(' '));
        match key {
            Some(key) if seen.insert(key) => {
                rows.insert(key, number);
            }
            Some(_) => findings.push(Finding::new(table, number, "the line is duplicated")),
            None => findings.push(Finding::new(table, number, "must be `crate Name: reason`")),
        }
    }
    rows
}
