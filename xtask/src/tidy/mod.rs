//! `cargo xtask tidy`: the repository's style as a test.
//!
//! What rustfmt and clippy cannot say: words that must not stay, lengths, clocks that must not be
//! read, the layers of crates, cycles of modules, types of the same name, unused dependencies,
//! links that lead nowhere, and whether the page on conformance is up to date.

mod allowance;
mod crates;
mod dependencies;
mod links;
mod rust;
mod source;
#[cfg(test)]
mod tests;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{conformance, shell};

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Relative to the root.
    file: String,
    /// 1-based; 0 when the whole file is meant.
    line: usize,
    message: String,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

/// Prints every broken rule; fails when there is one.
pub(crate) fn run() -> Result<()> {
    let findings = check(&shell::root())?;
    print(&findings);
    if findings.is_empty() {
        return Ok(());
    }
    bail!("{} style rules are broken", findings.len());
}

pub(crate) fn print(findings: &[Finding]) {
    for finding in findings {
        eprintln!("{}:{}: {}", finding.file, finding.line, finding.message);
    }
}

/// Checks all files.
fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let names = files(root)?;
    let mut violations = Vec::new();
    let mut documents = Vec::new();
    let mut code = Vec::new();
    for name in &names {
        let Ok(bytes) = fs::read(root.join(name)) else { continue };
        // Binary files (fuzz corpora, pictures) have no style.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        source::check(name, &text, &mut findings);
        words::check(name, &text, &mut violations);
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
    dependencies::check(&crates::read(root, "Cargo.toml")?, &manifests, &code, &mut violations)?;
    violations.extend(rust::check(root, &code, &mut findings)?);
    allowance::add(root, violations, &mut findings)?;
    conformance::check(root, &mut findings)?;
    Ok(findings)
}

/// The files of the working tree that git knows or would add.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let mut git = shell::command("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    match shell::output(&mut git) {
        Ok(list) => Ok(list.split('\0').filter(|name| !name.is_empty()).map(Into::into).collect()),
        // An unpacked archive has no git.
        Err(_) => walk(root),
    }
}

fn walk(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {folder:?}"))?;
        for entry in entries {
            let path = entry.context("cannot read a folder's entry")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | "node_modules" | ".git" | "runs") {
                    folders.push(path);
                }
            } else if let Ok(relative) = path.strip_prefix(root) {
                names.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    Ok(names)
}
