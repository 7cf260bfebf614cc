//! `cargo xtask conformance`: which test covers which rule, as `docs/conformance.md`.
//!
//! The rules are listed in `xtask/conformance`: common broker defects, and the normative
//! statements of MQTT 5.0 and 3.1.1 by identifier. A test names what it covers in comment lines
//! above `#[test]`: `// 25, 26` for lines of the first list, `// [MQTT-3.3.1-5]` and
//! `// [MQTT-3.1.1: 3.8.3-2]` for statements. `cargo xtask tidy` fails when the page is not what
//! this makes of the sources, or when a source cites a statement that does not exist.

mod cited;
mod page;
mod rules;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::findings::{self, Finding};
use crate::shell;
use cited::{TestCase, citations, cited_by_tests};
use rules::Rules;

/// The page, relative to the root.
const PAGE: &str = "docs/conformance.md";

/// Writes the page.
pub(crate) fn run() -> Result<()> {
    let root = shell::root();
    let mut findings = Vec::new();
    let page = make(&root, &mut findings)?;
    findings::print(&findings);
    if !findings.is_empty() {
        bail!("{} citations are wrong", findings.len());
    }
    fs::write(root.join(PAGE), &page).with_context(|| format!("cannot write {PAGE}"))?;
    println!("wrote {PAGE}");
    for line in page.lines().filter(|line| line.starts_with("| ")).take(4) {
        println!("{line}");
    }
    Ok(())
}

/// Finds wrong citations, and a page that is not up to date.
pub(crate) fn check(root: &Path, findings: &mut Vec<Finding>) -> Result<()> {
    let page = make(root, findings)?;
    if fs::read_to_string(root.join(PAGE)).unwrap_or_default() != page {
        findings.push(Finding::new(PAGE, 0, "not up to date: run `cargo xtask conformance`"));
    }
    Ok(())
}

fn make(root: &Path, findings: &mut Vec<Finding>) -> Result<String> {
    let rules = Rules::read(&root.join("xtask/conformance"))?;
    let mut names = shell::files(root)?;
    names.retain(|name| name.starts_with("crates/") && name.ends_with(".rs"));
    names.sort();
    let mut tests: Vec<TestCase> = Vec::new();
    for name in names {
        let Ok(text) = fs::read_to_string(root.join(&name)) else { continue };
        check_citations(&name, &text, &rules, findings);
        tests.extend(cited_by_tests(&name, &text));
    }
    for test in &tests {
        for number in test.behaviours.iter().filter(|number| !rules.has_behaviour(**number)) {
            let message = format!("`{}` covers line {number}, which is not listed", test.name);
            findings.push(Finding::new(&test.file, test.line, message));
        }
    }
    Ok(page::render(&rules, &tests))
}

fn check_citations(name: &str, text: &str, rules: &Rules, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        for citation in citations(line) {
            if !rules.has_statement(&citation) {
                let message = format!("{citation} is no statement of the specifications");
                findings.push(Finding::new(name, index + 1, message));
            }
        }
    }
}
