//! `tacho calibrate`: what the generator can do on this machine.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, Parser};
use tacho_lab::calibration::{
    Calibration, Connections, LatenessCell, RateCell, calibration_text, path, store,
};
use tacho_lab::campaign::Performance;
use tacho_lab::run::Ending;
use tacho_record::RunDirectory;
use tacho_record::Timestamp;
use tacho_record::{RunRecord, Step, Verdict};
use tacho_rig::attached::{quoted, this_program};
use tacho_scenario::{Adjustment, Limits, Scenario, TimeSpan};

use crate::exit::{self, Failure};
use crate::hidden_commands::NULL_BROKER;
use crate::run::{Setting, Stage, TargetArguments, create};
use crate::scenario::failure;

/// Publishers, and as many subscribers, of a rate.
const PAIRS: u32 = 50;
/// The same of a rate at which each message is sent at its own time.
const SCHEDULED_PAIRS: u32 = 500;
/// That rate: this part of what a core reaches with system calls shared, about half of what it
/// reaches without.
const SCHEDULED_SHARE: f64 = 0.04;
/// Messages that each publisher has under way.
const WINDOW: u32 = 20;
/// Payload of such messages.
const SCHEDULED_PAYLOAD_BYTES: u64 = 32;
/// Clients of the larger of the two runs that only connect: fewer than a listener's backlog.
const CLIENTS: u64 = 4000;
const CLIENTS_QUICK: u64 = 1000;
/// The smaller one has so many times fewer.
const CLIENTS_DIVISOR: u64 = 4;
/// Rates at which lateness is measured, in messages per second.
const LATENESS_RATES: [f64; 2] = [1000.0, 10_000.0];
/// Lateness is measured on a generator with headroom: at most this part of a core's rate.
const EASY_SHARE: f64 = 0.1;
/// How often this process's memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Measure the limits of the load generator on this machine: messages per second and core, clients
/// per GiB, lateness, connections per second.
///
/// It is measured against a responder that only acknowledges and forwards, on cores of its own
/// where there are more than one. The result is kept for this machine; 'tacho scenario check',
/// 'tacho doctor' and suites then estimate with it how many cores a scenario takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes: 0 success, 1 unexpected error, 105 stopped by a signal, 112 the responder \
went away.")]
pub(crate) struct CalibrateArguments {
    /// Fewer kinds of messages and a second each: about 20 seconds instead of 75
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

    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// Arguments about brokers, as a run without any has them.
#[derive(Debug, Parser)]
struct Targets {
    #[command(flatten)]
    targets: TargetArguments,
}

/// The machinery that the measurements run on.
struct Bench {
    setting: Setting,
    stage: Stage,
    directory: RunDirectory,
    hold: TimeSpan,
    runs: usize,
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
    check_kept(arguments)?;
    let place = place(arguments);
    let mut bench = Bench::begin(arguments, &place)?;
    let mut calibration = Calibration::new(Timestamp::now().rfc3339(), arguments.quick);
    // First: memory that other runs leave in the allocator would hide that of the clients.
    calibration.connections = bench.connections(arguments.quick)?;
    let kinds: &[(u8, u64)] = match arguments.quick {
        true => &[(0, 32), (1, 32), (1, 1024), (2, 32)],
        false => &[(0, 32), (0, 1024), (1, 32), (1, 1024), (2, 32), (2, 1024)],
    };
    for (qos, payload) in kinds {
        let (record, step) = bench.rate(*qos, *payload)?;
        calibration.generator_threads = record.placement.generator_threads;
        calibration.rates.push(cell((*qos, *payload), &step));
    }
    for fastest in &calibration.rates {
        if fastest.payload_bytes == SCHEDULED_PAYLOAD_BYTES {
            calibration.scheduled.push(bench.scheduled(fastest)?);
        }
    }
    let easy = calibration.planned_per_core(0, 32).unwrap_or(f64::MAX) * EASY_SHARE;
    let count = if arguments.quick { 1 } else { LATENESS_RATES.len() };
    for rate in &LATENESS_RATES[..count] {
        calibration.lateness.push(bench.lateness(rate.min(easy).max(1.0))?);
    }
    let Bench { mut setting, stage, .. } = bench;
    drop(stage);
    setting.conclude(None);
    publish(arguments, &calibration, &place)?;
    Ok(exit::OK)
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

/// Whether the result can be kept: said before a minute of measuring, not after it.
fn check_kept(arguments: &CalibrateArguments) -> Result<(), Failure> {
    let Some(path) = path().filter(|_| !arguments.no_store) else { return Ok(()) };
    let is_there = path.exists();
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let open = || File::options().append(true).create(true).open(&path);
    if let Err(error) = folder.and_then(|()| open()) {
        let sentence = format!(
            "the result cannot be kept in {}: {error}; TACHO_CALIBRATION names another file, and \
             --no-store keeps none",
            path.display()
        );
        return Err(Failure::new(exit::UNEXPECTED, sentence));
    }
    if !is_there {
        // It was only tried out.
        let _ = std::fs::remove_file(&path);
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

fn cell((qos, payload_bytes): (u8, u64), step: &Step) -> RateCell {
    let messages_per_s = step.attempted_in_per_s + step.achieved_out_per_s;
    let cores = step.generator_cpu_percent / 100.0;
    RateCell {
        qos,
        payload_bytes,
        messages_per_s,
        generator_cpu_percent: step.generator_cpu_percent,
        thread_busy_percent: step.generator_thread_busy_max_percent,
        per_core: if cores > 0.0 { (messages_per_s / cores).round() } else { 0.0 },
    }
}

impl Bench {
    fn begin(arguments: &CalibrateArguments, place: &Place) -> Result<Self, Failure> {
        let program = this_program()?;
        let program = quoted(&program.display().to_string());
        let command = format!("{program} {NULL_BROKER} 127.0.0.1:{{port}}");
        let parsed = Targets::try_parse_from(["tacho", "--broker-cmd", &command]);
        let parsed = parsed.map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
        let mut setting = Setting::new(&parsed.targets, arguments.quiet)?;
        let hold = TimeSpan(Duration::from_secs(if arguments.quick { 1 } else { 5 }));
        let targets = setting.targets(&scenario("connect", &[], hold)?)?;
        let directory = create(&place.path)?;
        let stage = setting.stage(targets, &directory)?;
        Ok(Self { setting, stage, directory, hold, runs: 0 })
    }

    /// Runs a scenario; its record, and the step that it measured.
    fn run(&mut self, scenario: Scenario, title: &str) -> Result<(RunRecord, Step), Failure> {
        self.runs += 1;
        let name = format!("steps/{:02}", self.runs);
        let directory = create(&self.directory.file(&name))?;
        let title = Some(title.to_owned());
        let performance = Performance { scenario, name, title };
        let outcome = self.stage.perform(performance, &directory)?;
        if self.setting.is_stopped() {
            return Err(Failure::new(exit::ABORTED, "stopped before the calibration was complete"));
        }
        if let Some(words) = self.stage.broker_failure() {
            return Err(Failure::new(exit::TARGET_UNREACHABLE, words));
        }
        match &outcome.ending {
            Ending::Completed => {}
            Ending::Aborted => {
                return Err(Failure::new(exit::ABORTED, "the calibration was stopped"));
            }
            Ending::TargetFailed(sentence) => {
                return Err(Failure::new(exit::TARGET_UNREACHABLE, sentence));
            }
            Ending::GeneratorFailed(sentence) => {
                return Err(Failure::new(exit::UNEXPECTED, sentence));
            }
        }
        let broken = outcome.data.record.verdict == Verdict::QosViolation;
        match outcome.data.record.steps.last() {
            Some(step) if !broken => Ok((outcome.data.record.clone(), step.clone())),
            _ => {
                let why = outcome.data.record.reasons.join("; ");
                let sentence = format!("a run of the calibration measured nothing: {why}");
                Err(Failure::new(exit::UNEXPECTED, sentence))
            }
        }
    }

    fn rate(&mut self, qos: u8, payload: u64) -> Result<(RunRecord, Step), Failure> {
        let vars = pairs(PAIRS, &[("qos", qos.to_string()), ("payload_size", payload.to_string())]);
        let mut scenario = scenario("symmetric", &vars, self.hold)?;
        scenario.close(WINDOW);
        self.run(scenario, &format!("QoS {qos}, {payload} bytes, as fast as it goes"))
    }

    /// Many clients that send each message at its own time, at a rate that a core carries.
    fn scheduled(&mut self, fastest: &RateCell) -> Result<RateCell, Failure> {
        let (qos, payload) = (fastest.qos, fastest.payload_bytes);
        // In and out: half of the messages are sent.
        let rate = (fastest.per_core * SCHEDULED_SHARE / 2.0).max(f64::from(SCHEDULED_PAIRS));
        let vars = pairs(
            SCHEDULED_PAIRS,
            &[
                ("qos", qos.to_string()),
                ("payload_size", payload.to_string()),
                ("target_throughput", format!("{rate:.0}")),
            ],
        );
        let scenario = scenario("symmetric", &vars, self.hold)?;
        let (_, step) = self.run(scenario, &format!("QoS {qos}, {payload} bytes, scheduled"))?;
        Ok(cell((qos, payload), &step))
    }

    fn lateness(&mut self, rate: f64) -> Result<LatenessCell, Failure> {
        let throughput = format!("{rate:.0}");
        let more = [("qos", "0".to_owned()), ("payload_size", "32".to_owned())];
        let mut vars = pairs(PAIRS, &more);
        vars.push(("target_throughput".to_owned(), throughput));
        let scenario = scenario("symmetric", &vars, self.hold)?;
        let (_, step) =
            self.run(scenario, &format!("lateness at {rate:.0} messages per second"))?;
        let late = &step.send_delay_us;
        Ok(LatenessCell {
            rate_per_s: step.attempted_in_per_s,
            count: late.count,
            p50_us: late.p50,
            p99_us: late.p99,
            p999_us: late.p999,
            max_us: late.max,
            overrun: step.overrun,
        })
    }

    /// Two runs that only connect: their difference is the cost of the additional clients.
    fn connections(&mut self, quick: bool) -> Result<Option<Connections>, Failure> {
        let limits = Limits::of_this_process();
        let most = if quick { CLIENTS_QUICK } else { CLIENTS };
        // The responder has as many descriptors as this process, and half of the ports is plenty.
        let clients = most.min(limits.descriptors_max / 2).min(limits.ports_per_address / 2);
        let few = clients / CLIENTS_DIVISOR;
        if few < 10 {
            return Ok(None);
        }
        let (_, before) = self.connect(few)?;
        let (record, after) = self.connect(clients)?;
        let grown = after.zip(before).map(|(after, before)| after.saturating_sub(before) as f64);
        Ok(Some(Connections {
            clients,
            connects_per_s: record.connect_per_s,
            connect_p99_us: record.connect_us.p99,
            bytes_per_client: grown
                .map(|grown| (grown / (clients - few) as f64).round())
                .filter(|bytes| *bytes > 0.0),
        }))
    }

    /// Connects so many; the record, and the most memory that this process had meanwhile.
    fn connect(&mut self, clients: u64) -> Result<(RunRecord, Option<u64>), Failure> {
        let vars = [
            ("connections".to_owned(), clients.to_string()),
            // All of them as soon as they can be opened.
            ("connect_rate".to_owned(), "100000/s".to_owned()),
        ];
        let scenario = scenario("connect", &vars, TimeSpan(Duration::from_millis(500)))?;
        let memory = Memory::watch();
        let result = self.run(scenario, &format!("{clients} connections"));
        let most = memory.end();
        Ok((result?.0, most))
    }
}

/// Variables of `symmetric` for so many pairs.
fn pairs(count: u32, more: &[(&str, String)]) -> Vec<(String, String)> {
    let mut vars = vec![
        ("publishers".to_owned(), count.to_string()),
        ("subscribers".to_owned(), count.to_string()),
        ("ramp_up".to_owned(), "100ms".to_owned()),
        ("warmup".to_owned(), "500ms".to_owned()),
    ];
    vars.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    vars
}

fn scenario(name: &str, vars: &[(String, String)], hold: TimeSpan) -> Result<Scenario, Failure> {
    let adjustment = Adjustment { hold: Some(hold), ..Adjustment::NONE };
    Scenario::load(name, vars, &adjustment, Limits::of_this_process())
        .map_err(|error| failure(&error))
}

/// Watches this process's resident memory.
struct Memory {
    end: Arc<AtomicBool>,
    most: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Memory {
    fn watch() -> Self {
        let (end, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ended, greatest) = (Arc::clone(&end), Arc::clone(&most));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                if let Ok(bytes) = tacho_monitor::resident_bytes(std::process::id()) {
                    greatest.fetch_max(bytes, Ordering::Relaxed);
                }
                std::thread::sleep(LOOK_EVERY);
            }
        });
        Self { end, most, thread }
    }

    /// The most there was; `None` where the system does not tell.
    fn end(self) -> Option<u64> {
        self.end.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        Some(self.most.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }
}
