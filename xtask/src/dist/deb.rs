//! A package for Debian and its relatives.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::Source;
use super::tree::Tree;
use crate::shell;

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Files that an administrator changes, and an upgrade leaves alone.
const CONFFILES: &str = "/etc/tacho/broker.toml\n";

/// Makes the package in a directory; its name.
pub(super) fn make(source: &Source, tree: &Tree, out: &Path) -> Result<String> {
    let arch = shell::output(shell::command("dpkg").arg("--print-architecture"))?;
    let arch = arch.trim();
    // A tree of its own, as others pack the same files meanwhile.
    let stage = out.join("deb");
    if stage.exists() {
        fs::remove_dir_all(&stage).context("cannot remove an older directory")?;
    }
    shell::output(shell::command("cp").args(["-a", "--reflink=auto"]).args([tree.root(), &stage]))?;
    let control = stage.join("DEBIAN");
    fs::create_dir_all(&control).context("cannot make DEBIAN")?;
    let installed_kib = installed_kib(tree.root())?;
    fs::write(control.join("control"), control_text(source, arch, installed_kib))?;
    fs::write(control.join("conffiles"), CONFFILES)?;
    for script in SCRIPTS {
        let path = control.join(script);
        fs::copy(shell::root().join("packaging/debian").join(script), &path)
            .with_context(|| format!("cannot copy packaging/debian/{script}"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    let name = format!("tacho_{}_{arch}.deb", source.version);
    let mut dpkg = shell::command("dpkg-deb");
    dpkg.env("SOURCE_DATE_EPOCH", source.epoch_s.to_string());
    dpkg.args(["--root-owner-group", "-Zxz", "--build"]);
    shell::output(dpkg.arg(&stage).arg(out.join(&name)))?;
    fs::remove_dir_all(stage)?;
    Ok(name)
}

/// What it takes on a disk, file by file in whole KiB, as Debian's policy has it (5.6.20).
fn installed_kib(folder: &Path) -> Result<u64> {
    let mut kib = 1;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        kib += match entry.file_type()?.is_dir() {
            true => installed_kib(&entry.path())?,
            false => entry.metadata()?.len().div_ceil(1024),
        };
    }
    Ok(kib)
}

fn control_text(source: &Source, arch: &str, installed_kib: u64) -> String {
    let version = source.version;
    let libc = source.program.libc_min();
    let libc = libc.map(|(major, minor)| format!("libc6 (>= {major}.{minor}), libgcc-s1, "));
    let libc = libc.unwrap_or_default();
    format!(
        "Package: tacho\nVersion: {version}\nArchitecture: {arch}\nMaintainer: Tacho\n\
         Installed-Size: {installed_kib}\nSection: net\nPriority: optional\nDepends: {libc}passwd\n\
         Description: load-tests MQTT brokers, and includes a fast one\n \
         Drives thousands of virtual clients on an exact schedule, checks every delivery, and\n \
         writes a report. The broker speaks MQTT 3.1, 3.1.1 and 5.0.\n"
    )
}
