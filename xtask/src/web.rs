//! `web/`: the scripts of reports, of the live page and of the console, made from TypeScript.
//!
//! What they are made into is committed, so that building the program needs no node. Here it
//! is made again and compared.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::failures::Failures;
use crate::shell;

/// Makes `web/dist` again from `web/src`.
pub(crate) fn build() -> Result<()> {
    prepare()?;
    node("build.mjs", &[])
}

/// Checks types, runs the unit tests, and compares `web/dist` with what `web/src` makes.
/// Returns why it was left out where there is no npm.
pub(crate) fn check(failures: &mut Failures) -> Result<Option<String>> {
    if shell::find("npm").is_none() {
        if shell::in_ci() {
            bail!("no npm on this machine");
        }
        return Ok(Some("no npm on this machine: web/dist was not compared with web/src".into()));
    }
    prepare()?;
    shell::run(npm().args(["run", "--silent", "check"]))?;
    failures.watch(npm().args(["run", "--silent", "test"]))?;
    let fresh = shell::target_dir().join("web-dist");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).context("cannot remove an older build")?;
    }
    node("build.mjs", &["--out", &fresh.to_string_lossy()])?;
    compare(&folder().join("dist"), &fresh)?;
    Ok(None)
}

/// Opens the console's screens in a browser. Returns why that was left out where there is no npm.
pub(crate) fn browse(failures: &mut Failures) -> Result<Option<String>> {
    if shell::find("npm").is_none() {
        return Ok(Some("no npm on this machine: the console was not opened in a browser".into()));
    }
    prepare()?;
    shell::run(shell::cargo().args(["build", "--package", "tacho", "--bin", "tacho"]))?;
    let program = shell::target_dir().join("debug").join("tacho");
    let mut tests = npm();
    tests.args(["run", "--silent", "test:browser"]).env("TACHO", program);
    failures.watch(&mut tests).map(|()| None)
}

fn folder() -> PathBuf {
    shell::root().join("web")
}

/// Installs what the lock file names, when it has changed since.
fn prepare() -> Result<()> {
    let lock = fs::read_to_string(folder().join("package-lock.json"))
        .context("cannot read web/package-lock.json")?;
    let stamp = folder().join("node_modules").join(".lock-installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    shell::run(npm().args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    fs::write(&stamp, lock).context("cannot record the installed programs")
}

fn npm() -> std::process::Command {
    let mut npm = shell::command("npm");
    npm.current_dir(folder());
    npm
}

fn node(script: &str, arguments: &[&str]) -> Result<()> {
    let mut node = shell::command("node");
    shell::run(node.current_dir(folder()).arg(script).args(arguments))
}

fn compare(committed: &Path, fresh: &Path) -> Result<()> {
    let names = |folder: &Path| -> Result<Vec<String>> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot read {folder:?}"))?;
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    };
    let (old, new) = (names(committed)?, names(fresh)?);
    let differs =
        |name: &&String| fs::read(committed.join(name)).ok() != fs::read(fresh.join(name)).ok();
    let stale: Vec<&String> =
        old.iter().chain(new.iter().filter(|name| !old.contains(name))).filter(differs).collect();
    if stale.is_empty() {
        return Ok(());
    }
    bail!("web/dist is out of date ({stale:?}): run `cargo xtask web` and commit it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_and_missing_files_are_named() {
        let place = tempfile::tempdir().expect("a folder");
        let (old, new) = (place.path().join("old"), place.path().join("new"));
        for (folder, name, text) in
            [(&old, "a.js", "1"), (&new, "a.js", "1"), (&old, "b.js", "1"), (&new, "b.js", "2")]
        {
            fs::create_dir_all(folder).expect("creates");
            fs::write(folder.join(name), text).expect("writes");
        }
        fs::write(new.join("c.js"), "3").expect("writes");
        let error = compare(&old, &new).expect_err("differs").to_string();
        assert!(error.contains("b.js") && error.contains("c.js"), "{error}");
        assert!(!error.contains("a.js"), "{error}");
        assert!(compare(&new, &new).is_ok());
    }
}
