//! `cargo xtask dist`: a stripped program with its manual pages, as an archive and as a package of
//! Debian.
//!
//! What is made depends on the commit and the compiler alone: times are those of the commit, and
//! files have an order.

mod deb;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::shell;
use tree::Tree;

#[derive(Args)]
pub(crate) struct Options {
    /// Package this release program instead of building one
    #[arg(long, value_name = "PROGRAM")]
    tacho: Option<PathBuf>,
    /// Where to
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// What all packages are made of.
struct Source {
    /// The program as it was built.
    program: PathBuf,
    version: &'static str,
    /// The time that all files have, in seconds since 1970.
    epoch_s: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    for (tool, package) in [("objcopy", "binutils"), ("dpkg-deb", "dpkg"), ("tar", "tar")] {
        if shell::find(tool).is_none() {
            bail!("no {tool} on this machine: install {package}");
        }
    }
    let program = match &options.tacho {
        Some(program) => fs::canonicalize(program)
            .with_context(|| format!("cannot find {}", program.display()))?,
        None => build()?,
    };
    let source = Source { program, version: env!("CARGO_PKG_VERSION"), epoch_s: epoch()? };
    let out = options.out.clone().unwrap_or_else(|| shell::target_dir().join("dist"));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    // Other programs run in the root of the workspace.
    let out = fs::canonicalize(&out)?;
    let made = package(&source, &out)?;
    checksums(&out, &made)?;
    for name in &made {
        let bytes = fs::metadata(out.join(name))?.len();
        println!("{:>9} bytes  {}", bytes, out.join(name).display());
    }
    Ok(())
}

fn build() -> Result<PathBuf> {
    shell::run(shell::cargo().args(["build", "--release", "--locked", "--package", "tacho"]))?;
    Ok(shell::target_dir().join("release").join("tacho"))
}

/// Of the commit, unless the environment says another time.
fn epoch() -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = shell::command("git");
            shell::output(git.args(["show", "--no-patch", "--format=%ct", "HEAD"]))
                .context("the sources have no commit: set SOURCE_DATE_EPOCH")?
        }
    };
    text.trim().parse().with_context(|| format!("{text:?} is no time in seconds since 1970"))
}

/// The names of what was made.
fn package(source: &Source, out: &Path) -> Result<Vec<String>> {
    let debug = "tacho.debug".to_owned();
    let tree = Tree::make(source, &out.join("stage"), &out.join(&debug))?;
    let arch = shell::output(shell::command("uname").arg("-m"))?;
    let name = format!("tacho-{}-{}-linux-gnu", source.version, arch.trim());
    let archive = format!("{name}.tar.gz");
    tree.archive(source, &name, &out.join(&archive))?;
    let deb = deb::make(source, &tree, out)?;
    Ok(vec![archive, deb, debug])
}

fn checksums(out: &Path, names: &[String]) -> Result<()> {
    let mut sums = shell::command("sha256sum");
    let sums = shell::output(sums.current_dir(out).args(names))?;
    fs::write(out.join("SHA256SUMS"), sums).context("cannot write SHA256SUMS")
}
