//! Violations that were there when their rule came, while they are removed. Temporary: to end it,
//! delete this file with `xtask/tidy-allowed.txt`, and let `check` take each `finding`.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use anyhow::{Context, Result};

use super::Finding;

/// One line for each violation: `crate: item`.
const ALLOWED: &str = "xtask/tidy-allowed.txt";

/// A broken rule that may be known.
#[derive(Debug)]
pub(super) struct Violation {
    /// The crate.
    pub(super) package: String,
    /// What breaks the rule, in words that do not change with line numbers.
    pub(super) item: String,
    pub(super) finding: Finding,
}

impl Violation {
    fn key(&self) -> String {
        format!("{}: {}", self.package, self.item)
    }
}

/// Adds the violations that are not known. With `TACHO_TIDY=all` none is known; with
/// `TACHO_TIDY=record` those of today become the known ones.
pub(super) fn add(
    root: &Path,
    mut violations: Vec<Violation>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let asked = env::var("TACHO_TIDY").unwrap_or_default();
    if asked != "all" {
        // Prose is rewritten last.
        violations.retain(|violation| !violation.item.starts_with("words "));
    }
    let path = root.join(ALLOWED);
    if asked == "record" {
        let keys: BTreeSet<String> = violations.iter().map(Violation::key).collect();
        let text: String = keys.iter().map(|key| format!("{key}\n")).collect();
        fs::write(&path, text).with_context(|| format!("cannot write {ALLOWED}"))?;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let known: BTreeSet<&str> = text.lines().filter(|_| asked != "all").collect();
    for mut violation in violations {
        let key = violation.key();
        if !known.contains(key.as_str()) {
            violation.finding.message.push_str(&format!(" [{key}]"));
            findings.push(violation.finding);
        }
    }
    Ok(())
}
