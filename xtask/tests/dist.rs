//! `cargo xtask dist`: the packages of a development build, installed, upgraded, removed and purged
//! in a directory that stands for a system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;

const TOOLS: [&str; 6] = ["objcopy", "objdump", "dpkg", "dpkg-deb", "tar", "gzip"];

fn has_tools() -> bool {
    let missing = TOOLS.iter().find(|tool| {
        let output = Command::new(tool).arg("--version").output();
        !output.is_ok_and(|output| output.status.success())
    });
    if let Some(tool) = missing {
        assert!(std::env::var_os("TACHO_REQUIRE_PEERS").is_none(), "no {tool} on this machine");
        println!("ignored: no {tool} on this machine");
    }
    missing.is_none()
}

/// The program of a development build.
fn tacho() -> PathBuf {
    let xtask = Path::new(env!("CARGO_BIN_EXE_xtask"));
    let program = xtask.with_file_name("tacho");
    if !program.is_file() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package", "tacho"]);
        assert!(cargo.status().expect("cargo runs").success());
    }
    program
}

/// The packages, made once for the tests that look at them.
fn made() -> &'static TempDir {
    static MADE: LazyLock<TempDir> = LazyLock::new(|| {
        let out = TempDir::new().expect("a folder");
        let made = dist(out.path());
        assert!(made.status.success(), "{made:?}");
        out
    });
    &MADE
}

fn dist(out: &Path) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.arg("dist").arg("--tacho").arg(tacho()).arg("--out").arg(out);
    xtask.env("SOURCE_DATE_EPOCH", "1700000000").output().expect("runs")
}

fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found
}

/// A directory with a package database of its own.
struct System(TempDir);

impl System {
    fn new() -> Self {
        let root = TempDir::new().expect("a folder");
        for folder in ["info", "updates", "triggers"] {
            fs::create_dir_all(root.path().join("var/lib/dpkg").join(folder)).expect("makes");
        }
        fs::write(root.path().join("var/lib/dpkg/status"), "").expect("writes");
        Self(root)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn dpkg(&self, arguments: &[&str]) {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", self.0.path().display()));
        dpkg.args(["--force-not-root", "--force-depends", "--force-script-chrootless"]);
        let output = dpkg.args(arguments).output().expect("runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn a_package_is_installed_upgraded_removed_and_purged() {
    if !has_tools() {
        return;
    }
    let deb = files(made().path(), ".deb").pop().expect("a package");
    let deb = deb.to_str().expect("a plain name");
    let system = System::new();
    system.dpkg(&["--install", deb]);
    let program = system.path("usr/bin/tacho");
    let version = Command::new(&program).arg("--version").output().expect("runs");
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("tacho "));
    for name in [
        "lib/systemd/system/tacho.service",
        "usr/share/man/man1/tacho.1.gz",
        "usr/share/man/man1/tacho-run.1.gz",
        "usr/share/bash-completion/completions/tacho",
        "usr/share/doc/tacho/copyright",
    ] {
        assert!(system.path(name).is_file(), "{name}");
    }
    let config = system.path("etc/tacho/broker.toml");
    let mut check = Command::new(&program);
    let check = check.args(["broker", "--check-config", "--config"]).arg(&config).output();
    let check = check.expect("runs");
    assert!(check.status.success(), "{check:?}");
    // What an administrator has changed stays.
    fs::write(&config, "listen = [\"127.0.0.1:1884\"]\n").expect("writes");
    system.dpkg(&["--force-confold", "--install", deb]);
    assert!(fs::read_to_string(&config).expect("is there").contains("1884"));
    fs::create_dir_all(system.path("var/lib/tacho")).expect("makes");
    system.dpkg(&["--remove", "tacho"]);
    assert!(!program.exists() && config.exists() && system.path("var/lib/tacho").exists());
    system.dpkg(&["--purge", "tacho"]);
    assert!(!config.exists() && !system.path("var/lib/tacho").exists());
}

/// The same bytes from the same program and commit, and sums that fit.
#[test]
fn packages_are_reproducible() {
    if !has_tools() {
        return;
    }
    let (one, two) = (made(), TempDir::new().expect("a folder"));
    assert!(dist(two.path()).status.success());
    let sums = |out: &TempDir| fs::read_to_string(out.path().join("SHA256SUMS")).expect("sums");
    assert_eq!(sums(one), sums(&two));
    assert_eq!(sums(one).lines().count(), 3);
    let mut check = Command::new("sha256sum");
    let check = check.args(["--check", "SHA256SUMS"]).current_dir(one.path()).output();
    assert!(check.expect("runs").status.success());
    let archive = files(one.path(), ".tar.gz").pop().expect("an archive");
    let list = Command::new("tar").arg("-tf").arg(&archive).output().expect("runs");
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.lines().any(|name| name.ends_with("-linux-gnu/usr/bin/tacho")), "{list}");
}

#[test]
fn a_program_that_is_missing_is_named() {
    if !has_tools() {
        return;
    }
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = xtask.args(["dist", "--tacho", "no-such-program"]).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no-such-program"), "{said}");
}
