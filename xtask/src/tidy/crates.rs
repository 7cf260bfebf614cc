//! Rules about the manifests: the layers of crates, and where versions are declared.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;

/// Each room and the rooms below it that it may use. ARCHITECTURE.md has the picture.
const ROOMS: [(&str, &[&str]); 22] = [
    ("codec", &[]),
    ("topic", &[]),
    ("access", &["topic"]),
    ("session", &["codec"]),
    ("net", &[]),
    ("journal", &[]),
    ("http", &[]),
    ("bus", &[]),
    ("broker", &["access", "codec", "topic", "session", "net", "journal", "http", "output"]),
    ("load", &["access", "codec", "topic", "session", "net"]),
    ("client", &["codec", "net", "session"]),
    ("monitor", &[]),
    ("output", &["net"]),
    ("scenario", &["load"]),
    ("record", &["load", "monitor", "scenario"]),
    ("report", &["monitor", "record", "scenario"]),
    ("rig", &["net"]),
    ("lab", &["bus", "load", "monitor", "output", "record", "rig", "scenario"]),
    ("console", &["net", "http", "monitor", "record", "report", "scenario"]),
    (
        "tacho",
        &[
            "access", "bus", "client", "codec", "topic", "session", "net", "journal", "broker",
            "load", "monitor", "scenario", "record", "report", "lab", "rig", "console", "output",
        ],
    ),
    // Behind the feature `results`.
    ("xtask", &["lab", "record", "report", "scenario"]),
    (
        TESTKIT,
        &["access", "codec", "topic", "session", "net", "journal", "broker", "load", "scenario"],
    ),
];

/// Support for integration tests: only they may use it.
const TESTKIT: &str = "testkit";

/// Checks every manifest of the workspace, and returns them by name.
pub(super) fn check(root: &Path, findings: &mut Vec<Finding>) -> Result<Vec<(String, Table)>> {
    let mut manifests = vec!["xtask/Cargo.toml".to_owned()];
    for entry in fs::read_dir(root.join("crates")).context("cannot list the crates")? {
        let folder = entry.context("cannot list the crates")?.file_name();
        manifests.push(format!("crates/{}/Cargo.toml", folder.to_string_lossy()));
    }
    let mut read_ones = Vec::new();
    for name in manifests {
        let manifest = read(root, &name)?;
        check_manifest(&name, &manifest, findings);
        read_ones.push((name, manifest));
    }
    Ok(read_ones)
}

/// A manifest by its name.
pub(super) fn read(root: &Path, name: &str) -> Result<Table> {
    let text =
        fs::read_to_string(root.join(name)).with_context(|| format!("cannot read {name}"))?;
    text.parse().with_context(|| format!("cannot parse {name}"))
}

pub(super) fn check_manifest(name: &str, manifest: &Table, findings: &mut Vec<Finding>) {
    let room = name.trim_start_matches("crates/").trim_end_matches("/Cargo.toml");
    let allowed = match ROOMS.iter().find(|(known, _)| *known == room) {
        Some((_, allowed)) => *allowed,
        None => {
            findings.push(Finding::new(name, 0, "a room that ARCHITECTURE.md does not know"));
            return;
        }
    };
    if !inherits(manifest.get("lints")) {
        findings.push(Finding::new(name, 0, "does not inherit the workspace's lints"));
    }
    let package = manifest.get("package").and_then(Value::as_table);
    for key in ["version", "edition", "rust-version", "license"] {
        if !inherits(package.and_then(|package| package.get(key))) {
            findings.push(Finding::new(name, 0, format!("`{key}` is not the workspace's")));
        }
    }
    for (section, dependencies) in dependency_tables(manifest) {
        for (dependency, value) in dependencies {
            if !inherits(Some(value)) {
                let message = format!("`{dependency}`: its version belongs in the root manifest");
                findings.push(Finding::new(name, 0, message));
            }
            let Some(used) = dependency.strip_prefix("tacho-") else { continue };
            if used == TESTKIT && section != "dev-dependencies" {
                let message = format!("`{room}` must not use `{used}` outside its tests");
                findings.push(Finding::new(name, 0, message));
            }
            // Tests may look across, the product may not.
            if section == "dependencies" && used != TESTKIT && !allowed.contains(&used) {
                findings.push(Finding::new(name, 0, format!("`{room}` must not use `{used}`")));
            }
        }
    }
}

fn inherits(value: Option<&Value>) -> bool {
    let table = value.and_then(Value::as_table);
    table.and_then(|table| table.get("workspace")).and_then(Value::as_bool) == Some(true)
}

/// The tables of dependencies with the names of their sections, also those for one target.
pub(super) fn dependency_tables(manifest: &Table) -> Vec<(&'static str, &Table)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let per_target = targets.into_iter().flatten().filter_map(|(_, target)| target.as_table());
    let mut tables = Vec::new();
    for table in std::iter::once(manifest).chain(per_target) {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            if let Some(found) = table.get(section).and_then(Value::as_table) {
                tables.push((section, found));
            }
        }
    }
    tables
}
