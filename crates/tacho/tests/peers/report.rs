//! A real browser reads the report of a real run.

use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::process::{Peer, Running, peers_dir};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let peers = [Peer::Chromium, Peer::Playwright];
    trials.push(trial("chromium_reads_the_report_of_a_run".to_owned(), &peers, run));
}

/// Runs a tiny scenario and hands its report to the browser.
fn run() -> Verdict {
    let folder = tempfile::tempdir()?;
    let directory = folder.path().join("run");
    let mut tacho = Command::new(env!("CARGO_BIN_EXE_tacho"));
    tacho.args(["run", "symmetric", "--quiet", "--dir"]).arg(&directory);
    for variable in [
        "publishers=5",
        "subscribers=5",
        "target_throughput=200",
        "ramp_up=100ms",
        "warmup=1s",
        "duration=4s",
    ] {
        tacho.args(["--var", variable]);
    }
    tacho.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (_, said) = Running::start(tacho)?.finish()?;
    let report = directory.join("report.html");
    if !report.is_file() {
        return Err(format!("no report: {said:#?}").into());
    }
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("peers");
    let mut browser = Peer::Playwright.command()?;
    browser.arg(scripts.join("report_page.cjs")).arg(&report);
    browser.env("TACHO_PEERS_DIR", peers_dir());
    browser.env("CHROMIUM", Peer::Chromium.find().ok_or("no chromium")?);
    Running::start(browser)?.succeed()?;
    Ok(())
}
