//! Rules about the structure of crates, read from their syntax trees.

mod collect;
mod cycles;
mod functions;
mod names;
mod same_names;
#[cfg(test)]
mod tests;
mod tree;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Finding;
pub(super) use collect::identifiers;
use tree::{Crate, Sources};

/// The table of types that share a name, with the reason for each.
const SAME_NAMES: &str = "xtask/tidy-same-names.txt";

/// Checks the crates of the repository. `files` are its Rust files, by name relative to the root.
pub(super) fn check(
    root: &Path,
    files: &[(&str, &str)],
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let sources = Sources::new(files);
    let mut crates = Vec::new();
    for root in sources.crate_roots() {
        let context = || format!("cannot read the crate of {root}");
        crates.push(Crate::read(root, &sources).with_context(context)?);
    }
    for found in &crates {
        cycles::check(found, findings);
    }
    let reasons = fs::read_to_string(root.join(SAME_NAMES))
        .with_context(|| format!("cannot read {SAME_NAMES}"))?;
    same_names::check(&crates, SAME_NAMES, &reasons, findings);
    functions::check(&sources, &crates, findings)
}
