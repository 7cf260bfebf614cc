//! Names the commit that a release program was built from, with its date.
//!
//! A development build names none: it would be linked anew after every commit. Nor does one from
//! sources without a repository.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = is_release.then(commit).flatten().unwrap_or_default();
    println!("cargo::rustc-env=TACHO_COMMIT={commit}");
}

/// ` (ID DATE)` of the commit that is checked out. Both depend on the commit alone, so that it is
/// built twice to the same bytes.
fn commit() -> Option<String> {
    for file in ["HEAD", "logs/HEAD"] {
        println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", file])?);
    }
    Some(format!(" ({})", git(&["show", "-s", "--abbrev=10", "--format=%h %cs", "HEAD"])?))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
