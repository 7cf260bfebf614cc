//! Running other programs, with what is run shown first.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo says it at run time too, which is right even where worktrees share a target folder.
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let manifest = manifest.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    manifest.parent().unwrap_or(&manifest).to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The release program: the one that is given, else that of this tree, which is built.
pub(crate) fn tacho(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return fs::canonicalize(path).with_context(|| format!("there is no program {path:?}"));
    }
    run(cargo().args(["build", "--release", "-p", "tacho"]))?;
    Ok(target_dir().join("release").join("tacho"))
}

/// The cargo that runs this chore, as if a person had called it: with what cargo says to the
/// programs that it runs, some build scripts would run again, and everything above them.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let of_package = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_CRATE_"];
    for (name, _) in env::vars_os() {
        if of_package.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// A command that runs in the root of the workspace.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// The command as a person would type it.
pub(crate) fn display(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let mut line = name.into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Shows and runs a command; an exit status other than zero is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = display(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs a command quietly and returns what it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = display(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}: {}", output.status, said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` wrote non-UTF-8 output"))
}

/// Finds a program on the search path, or where Debian keeps daemons.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// True where an automatic run wants everything to be there.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// The files of the working tree that git knows or would add.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let mut git = command("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    match output(&mut git) {
        Ok(list) => Ok(list.split('\0').filter(|name| !name.is_empty()).map(Into::into).collect()),
        // An unpacked archive has no git.
        Err(_) => walk(root),
    }
}

fn walk(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {folder:?}"))?;
        for entry in entries {
            let path = entry.context("cannot read a folder's entry")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | "node_modules" | ".git" | "runs") {
                    folders.push(path);
                }
            } else if let Ok(relative) = path.strip_prefix(root) {
                names.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    Ok(names)
}
