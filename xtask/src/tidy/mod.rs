//! `cargo xtask tidy`: the repository's style as a test.
//!
//! What rustfmt and clippy cannot say: words that must not stay, lengths, clocks that must not be
//! read, the layers of crates, cycles of modules, types of the same name, unused dependencies,
//! links that lead nowhere, and whether the page on conformance is up to date.

mod crates;
mod dependencies;
mod links;
mod rust;
mod source;
#[cfg(test)]
mod tests;
mod words;

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::findings::{self, Finding};
use crate::{conformance, shell};

/// Prints every broken rule; fails when there is one.
pub(crate) fn run() -> Result<()> {
    let findings = check(&shell::root())?;
    findings::print(&findings);
    if findings.is_empty() {
        return Ok(());
    }
    bail!("{} style rules are broken", findings.len());
}

/// Checks all files.
fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let names = shell::files(root)?;
    let mut documents = Vec::new();
    let mut code = Vec::new();
    for name in &names {
        let Ok(bytes) = fs::read(root.join(name)) else { continue };
        // Binary files (fuzz corpora, pictures) have no style.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        source::check(name, &text, &mut findings);
        words::check(name, &text, &mut findings);
        if name.ends_with(".md") {
            documents.push((name.as_str(), text));
        } else if name.ends_with(".rs") {
            code.push((name.as_str(), text));
        }
    }
    let texts = documents.iter().map(|(name, text)| (*name, text.as_str()));
    let links = links::Links::new(names.iter().map(String::as_str), texts.clone());
    texts.for_each(|(name, text)| links.check(name, text, &mut findings));
    let manifests = crates::check(root, &mut findings)?;
    let code: Vec<(&str, &str)> = code.iter().map(|(name, text)| (*name, text.as_str())).collect();
    dependencies::check(&crates::read(root, "Cargo.toml")?, &manifests, &code, &mut findings)?;
    rust::check(root, &code, &mut findings)?;
    conformance::check(root, &mut findings)?;
    Ok(findings)
}
