//! A real browser watches a run, stops it with the page's button, and reads the list of past runs.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use libtest_mimic::{Failed, Trial};
use tacho_testkit::runs::code_of;

use crate::process::{Peer, Running, peers_dir};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let peers = [Peer::Chromium, Peer::Playwright];
    trials.push(trial("chromium_watches_a_run_and_stops_it".to_owned(), &peers, watch));
    trials.push(trial("chromium_sees_what_happens_to_clients".to_owned(), &peers, actions));
    trials.push(trial("chromium_watches_a_ladder".to_owned(), &peers, ladder));
    trials.push(trial("chromium_lists_past_runs".to_owned(), &peers, past));
}

const SMALL: [&str; 5] =
    ["publishers=5", "subscribers=5", "target_throughput=200", "ramp_up=1s", "warmup=1s"];

fn tacho(arguments: &[&str], variables: &[&str]) -> Result<Running, Failed> {
    let mut tacho = Command::new(env!("CARGO_BIN_EXE_tacho"));
    tacho.args(arguments);
    for variable in variables {
        tacho.args(["--var", variable]);
    }
    tacho.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(tacho)
}

/// The address that it prints.
fn address_of(program: &mut Running) -> Result<String, Failed> {
    let mut address = String::new();
    program.wait_for_line(|line| line.contains("http://"))?;
    if let Some((_, rest)) = program.last_line().split_once("http://") {
        address = format!("http://{}", rest.split_whitespace().next().unwrap_or_default());
    }
    Ok(address)
}

/// Hands a page to the browser. With `TACHO_PICTURES` it leaves pictures of pages there.
fn browse(what: &str, address: &str) -> Verdict {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("peers");
    let mut browser = Peer::Playwright.command()?;
    browser.arg(scripts.join("pages.cjs")).args([what, address]);
    if let Some(folder) = std::env::var_os("TACHO_PICTURES") {
        browser.arg(folder);
    }
    browser.env("TACHO_PEERS_DIR", peers_dir());
    browser.env("CHROMIUM", Peer::Chromium.find().ok_or("no chromium")?);
    Running::start(browser)?.succeed()?;
    Ok(())
}

/// The same for a run, which ends by what the browser does, or as Ctrl-C ends it: then too it takes
/// the broker that it started with it.
fn browse_to_the_end(
    program: Running,
    what: &str,
    address: &str,
) -> Result<(ExitStatus, Vec<String>), Failed> {
    let watched = browse(what, address);
    if watched.is_err() {
        let pid = rustix::process::Pid::from_child(&program.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    }
    let ended = program.finish()?;
    watched.map(|()| ended)
}

fn watch() -> Verdict {
    let folder = tempfile::tempdir()?;
    let directory = folder.path().join("run");
    let path = directory.to_string_lossy().into_owned();
    let arguments = ["run", "symmetric", "--ui", "0", "--dir", &path];
    let mut program = tacho(&arguments, &[&SMALL[..], &["duration=10m"]].concat())?;
    let address = address_of(&mut program)?;
    let (status, said) = browse_to_the_end(program, "live", &address)?;
    if status.code() != Some(105) {
        return Err(format!("it ended with {status}: {said:#?}").into());
    }
    let summary = std::fs::read_to_string(directory.join("summary.json"))?;
    if !summary.contains("\"verdict\": \"aborted\"") || !directory.join("report.html").is_file() {
        return Err(format!("no partial report: {summary}").into());
    }
    Ok(())
}

fn actions() -> Verdict {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run").to_string_lossy().into_owned();
    let arguments = ["run", "reconnect-storm", "--ui", "0", "--dir", &path];
    let vars = ["clients=5", "bystanders=2", "first_storm=2s", "between=1s", "duration=10m"];
    let mut program = tacho(&arguments, &[&vars[..], &["ramp_up=100ms", "warmup=1s"]].concat())?;
    let address = address_of(&mut program)?;
    let (status, said) = browse_to_the_end(program, "actions", &address)?;
    match status.code() {
        Some(105) => Ok(()),
        _ => Err(format!("it ended with {status}: {said:#?}").into()),
    }
}

fn ladder() -> Verdict {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run").to_string_lossy().into_owned();
    let steps = "target_throughput=100,200";
    let arguments =
        ["ladder", "symmetric", steps, "--hold", "2s", "--ui", "0", "--ui-wait", "--dir", &path];
    // A disturbed step would be measured again, as a third one.
    let calm = ["--tolerate", "steal=100%,others=100%,waiting=100%"];
    let mut program =
        tacho(&[&arguments[..], &calm].concat(), &[&SMALL[..2], &SMALL[3..]].concat())?;
    let address = address_of(&mut program)?;
    let (status, said) = browse_to_the_end(program, "ladder", &address)?;
    // On a busy machine a step may be no valid measurement: the record says whether one was not.
    let summary = std::fs::read_to_string(Path::new(&path).join("summary.json"))?;
    let record = serde_json::from_str(&summary)?;
    if status.code().is_none() || status.code() != code_of(&record) {
        return Err(format!("it ended with {status}: {said:#?}\n{summary}").into());
    }
    Ok(())
}

fn past() -> Verdict {
    let folder = tempfile::tempdir()?;
    let runs = folder.path().to_string_lossy().into_owned();
    let directory = folder.path().join("20260102-030405-symmetric");
    let path = directory.to_string_lossy().into_owned();
    let arguments = ["run", "symmetric", "--quiet", "--dir", &path];
    tacho(&arguments, &[&SMALL[..], &["duration=2s"]].concat())?.finish()?;
    let broken = folder.path().join("20260101-000000-a-run-with-a-long-name-that-was-killed");
    std::fs::create_dir(&broken)?;
    std::fs::write(broken.join("scenario.toml"), "")?;
    let mut program = tacho(&["serve", "--dir", &runs, "--listen", "0"], &[])?;
    let address = address_of(&mut program)?;
    browse("past", &address)?;
    program.kill()?;
    Ok(())
}
