//! `cargo xtask dist`: a stripped program with its manual pages, as an archive, as packages of
//! Debian and of Fedora's relatives, as a wheel for Python, and as an image of a container.
//!
//! What is made depends on the commit, the compiler and the tools that pack: times are those of the
//! commit, and files have an order.

mod archive;
mod deb;
mod image;
mod program;
mod rpm;
mod sbom;
mod tree;
mod wheel;

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::shell;
use program::{Libc, Program};
use tree::Tree;

/// Programs that pack, and the packages of Debian that they are in.
const TOOLS: [(&str, &str); 6] = [
    ("objcopy", "binutils"),
    ("objdump", "binutils"),
    ("dpkg-deb", "dpkg"),
    ("rpmbuild", "rpm"),
    ("tar", "tar"),
    ("gzip", "gzip"),
];

#[derive(Args)]
pub(crate) struct Options {
    /// Package this release program instead of building one
    #[arg(long, value_name = "PROGRAM", conflicts_with = "libc")]
    tacho: Option<PathBuf>,
    /// musl: a static program, which runs on every Linux; gnu: one that needs this machine's C
    /// library or a newer one. Default: musl where the toolchain has it
    #[arg(long, value_name = "LIBC", value_enum)]
    libc: Option<Libc>,
    /// Where to. Default: dist in the target folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// What all packages are made of.
struct Source {
    program: Program,
    version: &'static str,
    /// The processor's architecture as the kernel names it.
    arch: String,
    /// The time that all files have, in seconds since 1970.
    epoch_s: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    for (tool, package) in TOOLS {
        if shell::find(tool).is_none() {
            bail!("no {tool} on this machine: install {package}");
        }
    }
    let program = match &options.tacho {
        Some(path) => Program::given(path)?,
        None => Program::build(options.libc)?,
    };
    let arch = shell::output(shell::command("uname").arg("-m"))?.trim().to_owned();
    let source = Source { program, version: env!("CARGO_PKG_VERSION"), arch, epoch_s: epoch()? };
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

/// Makes one package in a directory; its name.
type Make = fn(&Source, &Tree, &Path) -> Result<String>;

/// The names of what was made. Compressing takes most of the time, so packages are made at once.
fn package(source: &Source, out: &Path) -> Result<Vec<String>> {
    let debug = "tacho.debug".to_owned();
    let stage = out.join("stage");
    let tree = Tree::make(source, &stage, &out.join(&debug))?;
    let makes: [Make; 6] =
        [archive, deb::make, rpm::make, wheel::make, image::make, |source, _, out| {
            sbom::make(source, out)
        }];
    let made: Vec<Result<String>> = thread::scope(|scope| {
        let started = makes.map(|make| {
            let tree = &tree;
            scope.spawn(move || make(source, tree, out))
        });
        let ended = started.into_iter().map(|thread| match thread.join() {
            Ok(made) => made,
            Err(panic) => resume_unwind(panic),
        });
        ended.collect()
    });
    let mut names = made.into_iter().collect::<Result<Vec<_>>>()?;
    names.push(debug);
    fs::remove_dir_all(stage).context("cannot remove the directory that was packed")?;
    Ok(names)
}

/// For systems without one of the packages.
fn archive(source: &Source, tree: &Tree, out: &Path) -> Result<String> {
    let name = format!("tacho-{}-{}-linux-{}", source.version, source.arch, source.program.libc());
    let archive = format!("{name}.tar.gz");
    tree.archive(source, &name, &out.join(&archive))?;
    Ok(archive)
}

fn checksums(out: &Path, names: &[String]) -> Result<()> {
    let mut sums = shell::command("sha256sum");
    let sums = shell::output(sums.current_dir(out).args(names))?;
    fs::write(out.join("SHA256SUMS"), sums).context("cannot write SHA256SUMS")
}
