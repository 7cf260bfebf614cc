//! A package for Fedora, Red Hat, SUSE and their relatives.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Source;
use super::tree::Tree;
use crate::shell;

/// Without what rpmbuild does to programs that it has built itself.
const MACROS: [&str; 7] = [
    "_build_id_links none",
    "__os_install_post %{nil}",
    "debug_package %{nil}",
    "_buildhost localhost",
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "_binary_payload w6.gzdio",
];

/// Makes the package in a directory; its name.
pub(super) fn make(source: &Source, tree: &Tree, out: &Path) -> Result<String> {
    let work = out.join("rpm");
    let spec = fs::read_to_string(shell::root().join("packaging/rpm/tacho.spec"))
        .context("cannot read packaging/rpm/tacho.spec")?;
    fs::create_dir_all(&work).context("cannot make a directory for rpmbuild")?;
    let spec = spec
        .replace("@VERSION@", source.version)
        .replace("@TREE@", &tree.root().display().to_string());
    let path = work.join("tacho.spec");
    fs::write(&path, spec)?;
    let mut rpmbuild = shell::command("rpmbuild");
    rpmbuild.env("SOURCE_DATE_EPOCH", source.epoch_s.to_string());
    rpmbuild.args(["-bb", "--target", &source.arch]);
    rpmbuild.arg("--define").arg(format!("_topdir {}", work.display()));
    rpmbuild.arg("--define").arg(format!("_rpmdir {}", out.display()));
    rpmbuild.args(["--define", "_build_name_fmt %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"]);
    for definition in MACROS {
        rpmbuild.args(["--define", definition]);
    }
    shell::output(rpmbuild.arg(&path))?;
    fs::remove_dir_all(work)?;
    Ok(format!("tacho-{}-1.{}.rpm", source.version, source.arch))
}
