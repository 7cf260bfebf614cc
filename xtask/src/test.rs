//! `cargo xtask test`: everything that must pass before a change lands.

use std::env;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;

use crate::failures::Failures;
use crate::{peers, shell, tidy, web};

#[derive(Args)]
pub(crate) struct Options {
    /// Skip the checks of dependencies (licences, sources, advisories)
    #[arg(long)]
    no_deny: bool,
}

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// A step's work, which adds tests that failed. Returns why it was left out.
type Work<'a> = dyn FnMut(&mut Failures) -> Result<Option<String>> + 'a;

struct Step {
    name: &'static str,
    outcome: Outcome,
    seconds: f64,
}

/// Runs every step, also after one has failed, and sums up.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut steps = Vec::new();
    let mut failures = Failures::default();
    let mut step = |name: &'static str, work: &mut Work| {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let outcome = match work(&mut failures) {
            Ok(None) => Outcome::Passed,
            Ok(Some(why)) => Outcome::Skipped(why),
            Err(error) => {
                eprintln!("error: {error:#}");
                Outcome::Failed(format!("{error:#}"))
            }
        };
        steps.push(Step { name, outcome, seconds: start.elapsed().as_secs_f64() });
    };

    step("format", &mut |_| {
        shell::run(shell::cargo().args(["fmt", "--all", "--", "--check"])).map(|()| None)
    });
    step("tidy", &mut |_| tidy::run().map(|()| None));
    step("dependencies", &mut |_| if options.no_deny { Ok(skip("--no-deny")) } else { deny() });
    step("lints", &mut |_| {
        shell::run(shell::cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            "xtask/results",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]))
        .map(|()| None)
    });
    step("web", &mut web::check);
    step("peers", &mut |_| match peers::install() {
        Err(error) if !peers::required() => Ok(skip(&format!("{error:#}"))),
        result => result.map(|()| None),
    });
    // After the peers, which install the browser where they may.
    step("console", &mut web::browse);
    step("tests", &mut |failures| {
        let mut cargo = shell::cargo();
        cargo.args(["test", "--workspace", "--features", "xtask/results"]);
        cargo.args(["--locked", "--no-fail-fast"]);
        cargo.env("TACHO_PEERS_DIR", peers::dir());
        if peers::required() {
            cargo.env("TACHO_REQUIRE_PEERS", "1");
        }
        failures.watch(&mut cargo).map(|()| None)
    });
    conclude(&steps, &failures)
}

fn skip(why: &str) -> Option<String> {
    Some(why.to_owned())
}

fn conclude(steps: &[Step], failures: &Failures) -> Result<()> {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    println!();
    if !failures.names.is_empty() {
        println!("== output of failed tests\n{}", failures.lines.join("\n"));
    }
    for step in steps {
        let said = match &step.outcome {
            Outcome::Passed => {
                passed += 1;
                "passed".to_owned()
            }
            Outcome::Failed(why) => {
                failed += 1;
                format!("FAILED: {why}")
            }
            Outcome::Skipped(why) => {
                skipped += 1;
                format!("skipped: {why}")
            }
        };
        println!("{:<13} {:>6.1} s  {said}", step.name, step.seconds);
    }
    for name in &failures.names {
        println!("failed test: {name}");
    }
    println!("steps: {passed} passed, {failed} failed, {skipped} skipped");
    if failed > 0 {
        bail!("{failed} of {} steps failed", steps.len());
    }
    Ok(())
}

/// Licences, sources and bans offline; advisories where their database can be had.
fn deny() -> Result<Option<String>> {
    if shell::find("cargo-deny").is_none() && !cargo_bin_has("cargo-deny") {
        if !shell::in_ci() {
            return Ok(skip("cargo-deny is not installed: cargo install --locked cargo-deny"));
        }
        // An unoptimised build takes a third of the time and checks the same.
        shell::run(shell::cargo().args(["install", "--locked", "--debug", "cargo-deny"]))?;
    }
    shell::run(shell::cargo().args([
        "deny",
        "--workspace",
        "check",
        "licenses",
        "bans",
        "sources",
    ]))?;
    let advisories =
        shell::run(shell::cargo().args(["deny", "--workspace", "check", "advisories"]));
    if let Err(error) = advisories {
        let fetched = shell::output(shell::cargo().args(["deny", "fetch", "db"])).is_ok();
        if fetched {
            return Err(error);
        }
        eprintln!("the advisory database cannot be fetched from here: advisories were not checked");
    }
    Ok(None)
}

fn cargo_bin_has(program: &str) -> bool {
    let home = env::var_os("CARGO_HOME")
        .map(std::path::PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| std::path::PathBuf::from(home).join(".cargo")));
    home.is_some_and(|home| home.join("bin").join(program).is_file())
}
