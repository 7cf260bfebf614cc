//! The bill of materials (CycloneDX 1.6): all that is in the program, with versions and licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Source;
use crate::shell;

const NAME: &str = "tacho.cdx.json";

/// What cargo says about the workspace.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// None for a package of the workspace.
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `dev` or `build`; none for what is in the program.
    kind: Option<String>,
}

/// The lock file of the pages' bundle.
#[derive(Deserialize)]
struct NpmLock {
    packages: BTreeMap<String, NpmPackage>,
}

#[derive(Deserialize)]
struct NpmPackage {
    version: String,
    license: Option<String>,
    #[serde(default)]
    dev: bool,
}

/// Makes the document in a directory; its name.
pub(super) fn make(source: &Source, out: &Path) -> Result<String> {
    let mut cargo = shell::cargo();
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform"]);
    cargo.arg(format!("{}-unknown-linux-{}", source.arch, source.program.libc()));
    let metadata: Metadata = serde_json::from_str(&shell::output(&mut cargo)?)
        .context("cannot read what cargo says about the packages")?;
    let lock = fs::read(shell::root().join("web/package-lock.json"))
        .context("cannot read web/package-lock.json")?;
    let lock: NpmLock = serde_json::from_slice(&lock).context("web/package-lock.json")?;
    let document = document(source.version, &metadata, &lock)?;
    fs::write(out.join(NAME), format!("{document:#}\n")).context("cannot write the document")?;
    Ok(NAME.to_owned())
}

fn document(version: &str, metadata: &Metadata, lock: &NpmLock) -> Result<Value> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let root = metadata.packages.iter().find(|p| p.source.is_none() && p.name == "tacho");
    let root = root.context("cargo knows no package tacho")?;
    let needed = |id: &str| -> Vec<&str> {
        let all = nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default();
        let linked = |one: &&Dependency| one.dep_kinds.iter().any(|kind| kind.kind.is_none());
        all.iter().filter(linked).map(|one| one.pkg.as_str()).collect()
    };
    let mut found = BTreeSet::from([root.id.as_str()]);
    let mut ahead = vec![root.id.as_str()];
    while let Some(id) = ahead.pop() {
        ahead.extend(needed(id).into_iter().filter(|id| found.insert(id)));
    }
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for id in &found {
        // Invariant: cargo describes every package that it resolves.
        let package = packages[id];
        let own = purl(package);
        let mut needs: Vec<String> = needed(id).into_iter().map(|id| purl(packages[id])).collect();
        if *id == root.id {
            needs.extend(web(lock).map(|(name, npm)| npm_purl(name, npm)));
        } else {
            components.push(component(&own, &package.name, &package.version, &package.license));
        }
        dependencies.push(json!({"ref": own, "dependsOn": needs}));
    }
    for (name, package) in web(lock) {
        let own = npm_purl(name, package);
        components.push(component(&own, name, &package.version, &package.license));
        dependencies.push(json!({"ref": own, "dependsOn": []}));
    }
    let mut whole = component(&purl(root), "tacho", version, &root.license);
    whole["type"] = json!("application");
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": whole},
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The packages that are in the bundle of the pages.
fn web(lock: &NpmLock) -> impl Iterator<Item = (&str, &NpmPackage)> {
    let named = lock.packages.iter().filter(|(_, package)| !package.dev);
    named.filter_map(|(path, package)| Some((path.strip_prefix("node_modules/")?, package)))
}

fn component(purl: &str, name: &str, version: &str, license: &Option<String>) -> Value {
    let mut component = json!({
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
    });
    if let Some(license) = license {
        // Before SPDX had expressions, a slash stood between alternatives.
        let expression = license.replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    component
}

fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

fn npm_purl(name: &str, package: &NpmPackage) -> String {
    format!("pkg:npm/{name}@{}", package.version)
}
