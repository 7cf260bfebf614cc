//! Dependencies that no code uses.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;
use super::crates::dependency_tables;
use super::rust::identifiers;

/// Checks the workspace's table and the manifest of each crate. `files` are Rust files by name.
pub(super) fn check(
    root: &Table,
    manifests: &[(String, Table)],
    files: &[(&str, &str)],
    findings: &mut Vec<Finding>,
) -> Result<()> {
    workspace(root, manifests, findings);
    for (name, manifest) in manifests {
        let folder = name.trim_end_matches("Cargo.toml");
        let of_crate = files.iter().filter(|(file, _)| file.starts_with(folder));
        let mut used = Used::default();
        for (file, text) in of_crate {
            let parsed = syn::parse_file(text).with_context(|| format!("cannot parse {file}"))?;
            let is_product = file.starts_with(&format!("{folder}src/"))
                || file.strip_prefix(folder) == Some("build.rs");
            if is_product {
                used.product.extend(identifiers(&parsed, false));
            }
            used.any.extend(identifiers(&parsed, true));
        }
        crate_manifest(name, manifest, &used, findings);
    }
    Ok(())
}

/// Identifiers in a crate's code.
#[derive(Default)]
pub(super) struct Used {
    /// Where tests are left out.
    pub(super) product: BTreeSet<String>,
    pub(super) any: BTreeSet<String>,
}

fn workspace(root: &Table, manifests: &[(String, Table)], findings: &mut Vec<Finding>) {
    let table = root.get("workspace").and_then(Value::as_table);
    let declared = table.and_then(|table| table.get("dependencies")).and_then(Value::as_table);
    for name in declared.into_iter().flat_map(Table::keys) {
        let mut tables = manifests.iter().flat_map(|(_, manifest)| dependency_tables(manifest));
        if !tables.any(|(_, dependencies)| dependencies.contains_key(name)) {
            let message = format!("no crate depends on `{name}`");
            findings.push(Finding::new("Cargo.toml", 0, message));
        }
    }
}

pub(super) fn crate_manifest(
    file: &str,
    manifest: &Table,
    used: &Used,
    findings: &mut Vec<Finding>,
) {
    let tables = dependency_tables(manifest);
    for (section, dependencies) in &tables {
        for (name, value) in *dependencies {
            let identifier = name.replace('-', "_");
            let is_dev = *section == "dev-dependencies";
            let (code, identifiers) = match is_dev {
                true => ("code", &used.any),
                false => ("code outside tests", &used.product),
            };
            // With more features, or where the other one is optional, it says something.
            let is_plain = |value: &Value| value.as_table().is_none_or(|table| table.len() == 1);
            let is_repeated = is_dev
                && is_plain(value)
                && tables.iter().any(|(section, others)| {
                    *section == "dependencies" && others.get(name).is_some_and(is_plain)
                });
            let message = if !identifiers.contains(&identifier) {
                format!("no {code} of the crate uses `{name}`, one of its {section}")
            } else if is_repeated {
                format!("`{name}` is among the dependencies already")
            } else {
                continue;
            };
            findings.push(Finding::new(file, 0, message));
        }
    }
}
