//! Archives that are the same bytes each time, and their sums.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::shell;

/// How a folder is archived.
pub(super) struct Tar<'a> {
    /// The time that all files have, in seconds since 1970.
    pub(super) epoch_s: u64,
    /// Number of the user and group that own all files.
    pub(super) owner: u32,
    /// The folder in which the archive has everything; none: at its root.
    pub(super) inside: Option<&'a str>,
}

impl Tar<'_> {
    pub(super) fn archive(&self, folder: &Path, path: &Path) -> Result<()> {
        let mut tar = shell::command("tar");
        tar.args(["--create", "--sort=name", "--format=gnu", "--numeric-owner"]);
        tar.arg(format!("--owner={}", self.owner)).arg(format!("--group={}", self.owner));
        tar.arg(format!("--mtime=@{}", self.epoch_s));
        if let Some(inside) = self.inside {
            tar.arg(format!("--transform=s,^\\.,{inside},"));
        }
        tar.arg("--file").arg(path).arg("--directory").arg(folder);
        shell::output(tar.arg(".")).map(drop)
    }
}

/// Compresses a file, whose name then ends with `.gz`: without a name and a time in it.
pub(super) fn gzip(path: &Path) -> Result<()> {
    shell::output(shell::command("gzip").args(["-n", "-9", "-f"]).arg(path)).map(drop)
}

/// The SHA-256 of a file in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> Result<String> {
    let line = shell::output(shell::command("sha256sum").arg("--").arg(path))?;
    // A line with a name that has unusual characters begins with a backslash.
    let sum = line.trim_start_matches('\\').split_whitespace().next();
    sum.map(str::to_owned).context("sha256sum says no sum")
}

/// Modes that do not depend on this machine's: programs stay programs.
pub(super) fn set_modes(folder: &Path) -> Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            set_modes(&path)?;
            continue;
        }
        let is_program = fs::metadata(&path)?.permissions().mode() & 0o100 != 0;
        let mode = if is_program { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}
