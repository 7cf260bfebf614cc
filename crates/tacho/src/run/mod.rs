//! `tacho run`: finds or starts the broker, runs the scenario, shows what comes of it.

mod arguments;
mod broker;
mod cores;
mod progress;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tacho_lab::Timestamp;
use tacho_lab::output::RunDirectory;
use tacho_lab::record::Placement;
use tacho_lab::report::summary_text;
use tacho_lab::run::{Ending, RunConfig, RunError};
use tacho_lab::scenario::{Scenario, Timing};

use crate::exit::{self, Failure};

pub(crate) use arguments::RunArguments;
use broker::Target;
use cores::Cores;
use progress::Display;

/// Runs one scenario; the exit code tells the verdict.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    let scenario = arguments.scenario()?;
    let stop = stop_flag()?;
    // Best effort: what is too much was refused with the scenario, and the rest fails with words.
    let _ = tacho_net::raise_fd_limit();

    let started = Timestamp::now();
    let name = RunDirectory::run_name(started, &scenario.name);
    let path = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("runs").join(&name));
    let unexpected = |error: &dyn std::fmt::Display| Failure::new(exit::UNEXPECTED, error);

    let target = Target::of(arguments, &scenario)?;
    let cores = Cores::choose(arguments, &scenario, &target)?;
    let directory = RunDirectory::create(&path).map_err(|error| unexpected(&error))?;
    let mut broker = target.ready(&cores, &directory, &stop)?;
    cores.pin_this_thread();

    let config = RunConfig {
        name,
        started,
        target: broker.record(scenario.target.version),
        addresses: broker.addresses().iter().map(|address| (*address).into()).collect(),
        placement: placement(&scenario, &cores, broker.is_local()),
        monitors: Vec::new(),
        scenario,
    };
    let mut display = Display::new(arguments.quiet, &config);
    let outcome = tacho_lab::run::run(&config, &directory, &stop, |news| display.show(news));
    display.end();
    let last_words = broker.stop();
    let outcome = outcome.map_err(|error| match error {
        RunError::Plan(error) => Failure::new(exit::INVALID_CONFIG, error),
        error => unexpected(&error),
    })?;

    if arguments.json {
        let json = serde_json::to_string_pretty(&outcome.record).map_err(|e| unexpected(&e))?;
        println!("{json}");
    } else if !arguments.quiet {
        println!("{}", summary_text(&outcome.record));
        println!("report: {}", shown(&directory.file("report.html")));
    }
    if let Ending::TargetFailed(sentence) | Ending::GeneratorFailed(sentence) = &outcome.ending {
        eprintln!("error: {sentence}");
    }
    if let Some(words) = last_words {
        eprintln!("error: {words}");
    }
    Ok(exit::code_of(outcome.record.verdict, &outcome.ending))
}

/// Becomes true on SIGINT, SIGTERM and SIGHUP.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    }
    Ok(stop)
}

/// The failure of a run that was stopped before it began.
fn unless_stopped(stop: &AtomicBool) -> Result<(), Failure> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Failure::new(exit::ABORTED, "stopped before the run began")),
        false => Ok(()),
    }
}

fn placement(scenario: &Scenario, cores: &Cores, one_machine: bool) -> Placement {
    Placement {
        one_machine,
        broker_cores: cores.broker.clone(),
        generator_cores: cores.generator.clone(),
        generator_threads: cores.threads,
        timing: match scenario.load.timing {
            Timing::Sleep => "sleep".to_owned(),
            Timing::Spin => "spin".to_owned(),
        },
    }
}

/// A path without a `./` in front.
fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}
