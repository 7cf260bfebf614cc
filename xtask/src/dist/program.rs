//! The program that is packed, and what it needs of a system.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::shell;

/// The C library that a program is built with.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Libc {
    Musl,
    Gnu,
}

impl fmt::Display for Libc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Musl => "musl",
            Self::Gnu => "gnu",
        })
    }
}

/// A release program.
pub(super) struct Program {
    path: PathBuf,
    /// The oldest version of the C library that it runs with; none for a static program.
    libc_min: Option<(u32, u32)>,
}

impl Program {
    /// One that is there.
    pub(super) fn given(path: &Path) -> Result<Self> {
        let path =
            fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?;
        let needs = shell::output(shell::command("objdump").arg("-p").arg(&path))?;
        Ok(Self { path, libc_min: newest_libc(&needs) })
    }

    pub(super) fn build(libc: Option<Libc>) -> Result<Self> {
        let mut cargo = shell::cargo();
        cargo.args(["build", "--release", "--locked", "--package", "tacho"]);
        let missing = missing_for_musl()?;
        let libc = match (libc, missing) {
            (Some(Libc::Musl), Some(missing)) => bail!("a static program needs `{missing}`"),
            (None, Some(missing)) => {
                eprintln!("The program will need a C library; a static one needs `{missing}`.");
                Libc::Gnu
            }
            (None, None) => Libc::Musl,
            (Some(libc), _) => libc,
        };
        let mut folder = shell::target_dir();
        if libc == Libc::Musl {
            let target = musl_target();
            cargo.args(["--target", &target]);
            folder.push(target);
        }
        shell::run(&mut cargo)?;
        Self::given(&folder.join("release").join("tacho"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn libc(&self) -> Libc {
        if self.libc_min.is_some() { Libc::Gnu } else { Libc::Musl }
    }

    pub(super) const fn libc_min(&self) -> Option<(u32, u32)> {
        self.libc_min
    }

    /// The libraries that are loaded with it, and what loads them; none for a static program.
    pub(super) fn libraries(&self) -> Result<Vec<PathBuf>> {
        if self.libc_min.is_none() {
            return Ok(Vec::new());
        }
        let list = shell::output(shell::command("ldd").arg(&self.path))?;
        Ok(paths(&list))
    }
}

fn musl_target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// What installs the first thing that is missing for a static program.
fn missing_for_musl() -> Result<Option<String>> {
    let target = musl_target();
    let mut rustc = shell::command("rustc");
    let libraries = shell::output(rustc.args(["--print", "target-libdir", "--target", &target]))?;
    Ok(if !Path::new(libraries.trim()).is_dir() {
        Some(format!("rustup target add {target}"))
    } else if shell::find("musl-gcc").is_none() {
        Some("apt-get install musl-tools".to_owned())
    } else {
        None
    })
}

/// The newest version of the C library of which a program needs something.
fn newest_libc(needs: &str) -> Option<(u32, u32)> {
    let versions = needs.split("GLIBC_").skip(1).filter_map(|rest| {
        let text = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut numbers = text.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

/// The paths in a list by `ldd`.
fn paths(list: &str) -> Vec<PathBuf> {
    let words =
        list.lines().filter_map(|line| line.split_whitespace().find(|w| w.starts_with('/')));
    words.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts_as_a_number() {
        let needs = "0x1 0x00 05 GLIBC_2.2.5\n0x2 0x00 03 GLIBC_2.34\n0x3 0x00 02 GLIBC_2.9\n";
        assert_eq!(newest_libc(needs), Some((2, 34)));
        assert_eq!(newest_libc("nothing"), None);
    }

    #[test]
    fn libraries_are_those_with_a_path() {
        let list =
            "\tlinux-vdso.so.1 (0x0)\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n\t/lib64/ld.so (0x0)";
        assert_eq!(paths(list), ["/lib/libc.so.6", "/lib64/ld.so"].map(PathBuf::from));
    }
}
