//! systemd reads the unit that the repository has, and says how exposed it is.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;

use crate::process::{Peer, Running};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let peers = [Peer::SystemdAnalyze];
    trials.push(trial("systemd_finds_no_fault_in_the_unit".to_owned(), &peers, is_valid));
    trials.push(trial("systemd_says_what_the_document_says".to_owned(), &peers, is_closed));
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn unit() -> PathBuf {
    repository().join("packaging/systemd/tacho.service")
}

/// With the program of this test, which there is.
fn is_valid() -> Verdict {
    let folder = tempfile::tempdir()?;
    let text = fs::read_to_string(unit())?.replace("/usr/bin/tacho", env!("CARGO_BIN_EXE_tacho"));
    let path = folder.path().join("tacho.service");
    fs::write(&path, text)?;
    let mut analyze = Peer::SystemdAnalyze.command()?;
    let output = analyze.args(["verify", "--man=no"]).arg(&path).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // Faults of other units on this machine are not ours.
    match said.lines().find(|line| line.contains("tacho.service")) {
        None => Ok(()),
        Some(fault) => Err(fault.to_owned().into()),
    }
}

fn is_closed() -> Verdict {
    let mut analyze = Peer::SystemdAnalyze.command()?;
    analyze.args(["security", "--offline=true", "--no-pager", "--threshold=20"]).arg(unit());
    let lines = Running::start(analyze)?.succeed()?;
    let last = lines.iter().rev().find(|line| line.contains("exposure level"));
    let last = last.ok_or("no exposure level")?;
    let level = |text: &str, before: &str| -> Option<f64> {
        text.split(before).nth(1)?.split_whitespace().next()?.parse().ok()
    };
    let document = fs::read_to_string(repository().join("docs/service.md"))?;
    let stated = level(&document, "`systemd-analyze security tacho` says ");
    let (stated, found) = (stated.ok_or("none is stated")?, level(last, "tacho.service: "));
    // Versions of systemd weigh a little differently.
    match found.is_some_and(|found| (found - stated).abs() <= 0.3) {
        true => Ok(()),
        false => Err(format!("the document says {stated}, systemd {last}").into()),
    }
}
