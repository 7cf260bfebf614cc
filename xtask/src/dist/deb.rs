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
    let control = tree.root().join("DEBIAN");
    fs::create_dir_all(&control).context("cannot make DEBIAN")?;
    let libc = libc_version(&tree.root().join("usr/bin/tacho"))?;
    fs::write(control.join("control"), control_text(source.version, arch, &libc))?;
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
    shell::output(dpkg.arg(tree.root()).arg(out.join(&name)))?;
    fs::remove_dir_all(control)?;
    Ok(name)
}

fn control_text(version: &str, arch: &str, libc: &str) -> String {
    format!(
        "Package: tacho\nVersion: {version}\nArchitecture: {arch}\nMaintainer: Tacho\n\
         Section: net\nPriority: optional\nDepends: libc6 (>= {libc}), libgcc-s1, passwd\n\
         Description: load-tests MQTT brokers, and includes a fast one\n \
         Drives thousands of virtual clients on an exact schedule, checks every delivery, and\n \
         writes a report. The broker speaks MQTT 3.1, 3.1.1 and 5.0.\n"
    )
}

/// The newest version of the C library of which the program needs something.
fn libc_version(program: &Path) -> Result<String> {
    let symbols = shell::output(shell::command("objdump").arg("-T").arg(program))?;
    let newest = newest_libc(&symbols);
    let (major, minor) = newest.context("the program needs no version of the C library")?;
    Ok(format!("{major}.{minor}"))
}

fn newest_libc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let text = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut numbers = text.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts_as_a_number() {
        let symbols = "(GLIBC_2.2.5) free\n(GLIBC_2.34) main\n (GLIBC_2.9) pipe2\n";
        assert_eq!(newest_libc(symbols), Some((2, 34)));
        assert_eq!(newest_libc("nothing"), None);
    }
}
