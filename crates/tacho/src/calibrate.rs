//! `tacho calibrate`: limits of the generator on this machine.

use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use tacho_console::Stop;
use tacho_lab::calibration::{
    Calibration, DiskError, calibration_text, check_writable, disk_text, measure, measure_disk,
    path, store,
};
use tacho_record::RunDirectory;
use tacho_rig::attached::{quoted, this_program};

use crate::campaign::ArgumentBench;
use crate::exit::{self, Failure};
use crate::hidden_commands::NULL_BROKER;
use crate::machine::MachineArguments;
use crate::run::{GivenArguments, Setting, TargetArguments, create};
use crate::signals::stop_flag;

/// Measure the limits of the load generator on this machine: messages per second and core, clients
/// per GiB, lateness, connections per second; or, with --disk, the time of a synced write.
///
/// It is measured against a responder that only acknowledges and forwards, on cores of its own
/// where there are more than one. The result is kept for this machine; 'tacho scenario check',
/// 'tacho doctor' and suites then estimate with it how many cores a scenario takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes: 0 success, 1 unexpected error, 104 --dir holds an earlier calibration or --disk is no \
directory, 105 stopped by a signal, 112 the responder went away, 113 another run has this machine, \
and --no-wait was given.")]
pub(crate) struct CalibrateArguments {
    /// Measure fewer kinds of messages, for a second each: about 20 seconds instead of 75
    #[arg(long)]
    quick: bool,

    /// Print the record as JSON instead of the table
    #[arg(long)]
    json: bool,

    /// Do not keep the result for later estimates
    #[arg(long)]
    no_store: bool,

    /// Keep the runs and calibration.json in this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Measure a disk instead: the time of a synced write in this directory, such as a broker's
    /// data directory, at three sizes; 15 seconds or more, 3 with --quick
    ///
    /// Writes a file of 16 MiB there repeatedly, and removes it afterwards. The result is shown
    /// and not kept.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["no_store", "dir"])]
    disk: Option<PathBuf>,

    /// Replace the calibration that --dir holds
    #[arg(long, requires = "dir")]
    force: bool,

    #[command(flatten)]
    named: GivenArguments,

    #[command(flatten)]
    machine: MachineArguments,

    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Arguments about brokers, as a run without any has them.
#[derive(Debug, Parser)]
struct Targets {
    #[command(flatten)]
    targets: TargetArguments,
}

/// A directory that goes away with the process's work, unless it was asked for.
struct Place {
    path: PathBuf,
    is_temporary: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Measures, keeps, shows.
pub(crate) fn calibrate(arguments: &CalibrateArguments) -> Result<u8, Failure> {
    if let Some(directory) = &arguments.disk {
        return calibrate_disk(arguments, directory);
    }
    check_kept(arguments)?;
    check_free(arguments)?;
    let targets = null_broker()?.waiting(arguments.machine);
    let mut setting = Setting::new(&targets, arguments.quiet)?;
    setting.give(arguments.named.given());
    let place = place(arguments);
    let directory = create(&place.path)?;
    let mut bench = ArgumentBench::new(setting, vec![&targets], arguments.quiet);
    let mut calibration = measure(&mut bench, &directory, arguments.quick)?;
    calibration.given = arguments.named.given();
    bench.conclude(None);
    publish(arguments, &calibration, &place)?;
    Ok(exit::OK)
}

/// Measures synced writes, and shows them.
fn calibrate_disk(arguments: &CalibrateArguments, directory: &Path) -> Result<u8, Failure> {
    let stop = Stop::new(stop_flag()?);
    let _machine = arguments.machine.take(&stop)?;
    if !arguments.quiet {
        eprintln!("measuring synced writes in {}", directory.display());
    }
    let measured = measure_disk(directory, arguments.quick, &|| stop.is_raised());
    let mut calibration = measured.map_err(|error| {
        let code = match error {
            DiskError::Directory { .. } => exit::INVALID_CONFIG,
            DiskError::Write { .. } => exit::UNEXPECTED,
            DiskError::Stopped => exit::ABORTED,
        };
        Failure::new(code, error)
    })?;
    calibration.given = arguments.named.given();
    if arguments.json {
        let json = serde_json::to_string_pretty(&calibration);
        println!("{}", json.map_err(|error| Failure::new(exit::UNEXPECTED, error))?);
    } else {
        print!("{}", disk_text(&calibration));
    }
    Ok(exit::OK)
}

/// The broker that is measured against, as arguments.
fn null_broker() -> Result<TargetArguments, Failure> {
    let program = quoted(&this_program()?.display().to_string());
    let command = format!("{program} {NULL_BROKER} 127.0.0.1:{{port}}");
    let parsed = Targets::try_parse_from(["tacho", "--broker-cmd", &command]);
    parsed.map(|parsed| parsed.targets).map_err(|error| Failure::new(exit::UNEXPECTED, error))
}

fn place(arguments: &CalibrateArguments) -> Place {
    match &arguments.dir {
        Some(dir) => Place { path: dir.clone(), is_temporary: false },
        None => {
            let name = format!("tacho-calibrate-{}", std::process::id());
            Place { path: std::env::temp_dir().join(name), is_temporary: true }
        }
    }
}

/// Refuses a directory with an earlier calibration or run.
fn check_free(arguments: &CalibrateArguments) -> Result<(), Failure> {
    let Some(dir) = arguments.dir.as_ref().filter(|_| !arguments.force) else { return Ok(()) };
    let has_parts = ["calibration.json", "steps"].iter().any(|name| dir.join(name).exists());
    if !has_parts && !RunDirectory::holds_run(dir) {
        return Ok(());
    }
    let sentence = format!(
        "{} holds an earlier calibration or run: choose another directory with --dir, or replace \
         it with --dir and --force",
        dir.display()
    );
    Err(Failure::new(exit::INVALID_CONFIG, sentence))
}

/// Whether the result can be kept: said before a minute of measuring, not after it.
fn check_kept(arguments: &CalibrateArguments) -> Result<(), Failure> {
    let Some(path) = path().filter(|_| !arguments.no_store) else { return Ok(()) };
    if let Err(error) = check_writable(&path) {
        let sentence = format!(
            "the result cannot be kept in {}: {error}; TACHO_CALIBRATION names another file, and \
             --no-store keeps none",
            path.display()
        );
        return Err(Failure::new(exit::UNEXPECTED, sentence));
    }
    Ok(())
}

fn publish(
    arguments: &CalibrateArguments,
    calibration: &Calibration,
    place: &Place,
) -> Result<(), Failure> {
    let unexpected = |error: String| Failure::new(exit::UNEXPECTED, error);
    // First: a file that cannot be written must not lose the results.
    if arguments.json {
        let json = serde_json::to_string_pretty(calibration);
        println!("{}", json.map_err(|error| unexpected(error.to_string()))?);
    } else {
        print!("{}", calibration_text(calibration));
    }
    if !place.is_temporary {
        let path = place.path.join("calibration.json");
        store(&path, calibration).map_err(|error| unexpected(error.to_string()))?;
    }
    let kept = match (arguments.no_store, path()) {
        (true, _) => "not kept, as asked".to_owned(),
        (false, None) => {
            "not kept: this program was compiled without optimisation, or there is no \
                          home directory; TACHO_CALIBRATION names a file"
                .to_owned()
        }
        (false, Some(path)) => {
            store(&path, calibration).map_err(|error| unexpected(error.to_string()))?;
            format!("kept in {}", path.display())
        }
    };
    if !arguments.quiet {
        eprintln!("calibration: {kept}");
    }
    Ok(())
}
