//! The measurements of a calibration: runs against a responder that does nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tacho_record::{RunDirectory, RunRecord, Step, Timestamp, Verdict};
use tacho_scenario::{Adjustment, Limits, Scenario, TimeSpan};

use super::{Calibration, Connections, LatenessCell, RateCell};
use crate::campaign::{Bench, CampaignError, Performance};
use crate::run::Ending;

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

/// Length of a measurement.
const HOLD: TimeSpan = TimeSpan::from_secs(5);
const HOLD_QUICK: TimeSpan = TimeSpan::from_secs(1);
/// Kinds of messages: QoS and bytes of payload.
const KINDS: [(u8, u64); 6] = [(0, 32), (0, 1024), (1, 32), (1, 1024), (2, 32), (2, 1024)];
const KINDS_QUICK: [(u8, u64); 4] = [(0, 32), (1, 32), (1, 1024), (2, 32)];

/// Measures what the generator can do; `bench` has the responder, and the runs lie below
/// `directory`. A quick calibration has fewer kinds of messages and a second each.
///
/// # Errors
/// When a run cannot be made or measures nothing.
pub fn measure(
    bench: &mut dyn Bench,
    directory: &RunDirectory,
    is_quick: bool,
) -> Result<Calibration, CampaignError> {
    let hold = if is_quick { HOLD_QUICK } else { HOLD };
    bench.set_up(&scenario("connect", &[], hold)?, directory)?;
    let mut measurements = Measurements { bench, directory, hold, runs: 0 };
    let calibration = measurements.all(is_quick);
    measurements.bench.clear();
    calibration
}

/// The measurements under way.
struct Measurements<'b> {
    bench: &'b mut dyn Bench,
    directory: &'b RunDirectory,
    hold: TimeSpan,
    runs: usize,
}

impl Measurements<'_> {
    fn all(&mut self, is_quick: bool) -> Result<Calibration, CampaignError> {
        let mut calibration = Calibration::new(Timestamp::now().rfc3339(), is_quick);
        // First: memory that other runs leave in the allocator would hide that of the clients.
        calibration.connections = self.connections(is_quick)?;
        let kinds: &[(u8, u64)] = if is_quick { &KINDS_QUICK } else { &KINDS };
        for (qos, payload) in kinds {
            let (record, step) = self.rate(*qos, *payload)?;
            calibration.generator_threads = record.placement.generator_threads;
            calibration.rates.push(cell((*qos, *payload), &step));
        }
        for fastest in &calibration.rates {
            if fastest.payload_bytes == SCHEDULED_PAYLOAD_BYTES {
                calibration.scheduled.push(self.scheduled(fastest)?);
            }
        }
        let easy = calibration.planned_per_core(0, 32).unwrap_or(f64::MAX) * EASY_SHARE;
        let count = if is_quick { 1 } else { LATENESS_RATES.len() };
        for rate in &LATENESS_RATES[..count] {
            calibration.lateness.push(self.lateness(rate.min(easy).max(1.0))?);
        }
        Ok(calibration)
    }

    /// Runs a scenario; its record, and the step that it measured.
    fn run(&mut self, scenario: Scenario, title: &str) -> Result<(RunRecord, Step), CampaignError> {
        self.runs += 1;
        let name = format!("steps/{:02}", self.runs);
        let directory = RunDirectory::create(&self.directory.file(&name))?;
        let title = Some(title.to_owned());
        let performance = Performance { scenario, name, title, step: None };
        let outcome = self.bench.perform(performance, &directory)?;
        if self.bench.is_stopped() {
            let sentence = "stopped before the calibration was complete".to_owned();
            return Err(CampaignError::Stopped(sentence));
        }
        if let Some(sentence) = self.bench.broker_failure() {
            return Err(CampaignError::Target(sentence));
        }
        match outcome.ending {
            Ending::Completed => {}
            Ending::Aborted => {
                return Err(CampaignError::Stopped("the calibration was stopped".to_owned()));
            }
            Ending::TargetFailed(sentence) => return Err(CampaignError::Target(sentence)),
            Ending::GeneratorFailed(sentence) => return Err(CampaignError::Failed(sentence)),
        }
        let record = outcome.data.record;
        let is_broken = record.verdict == Verdict::QosViolation;
        match record.steps.last().cloned() {
            Some(step) if !is_broken => Ok((record, step)),
            _ => {
                let why = record.reasons.join("; ");
                let sentence = format!("a run of the calibration measured nothing: {why}");
                Err(CampaignError::Failed(sentence))
            }
        }
    }

    fn rate(&mut self, qos: u8, payload: u64) -> Result<(RunRecord, Step), CampaignError> {
        let vars = pairs(PAIRS, &[("qos", qos.to_string()), ("payload_size", payload.to_string())]);
        let mut scenario = scenario("symmetric", &vars, self.hold)?;
        scenario.close(WINDOW);
        self.run(scenario, &format!("QoS {qos}, {payload} bytes, as fast as it goes"))
    }

    /// Many clients that send each message at its own time, at a rate that a core carries.
    fn scheduled(&mut self, fastest: &RateCell) -> Result<RateCell, CampaignError> {
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

    fn lateness(&mut self, rate: f64) -> Result<LatenessCell, CampaignError> {
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
    fn connections(&mut self, is_quick: bool) -> Result<Option<Connections>, CampaignError> {
        let limits = Limits::of_this_process();
        let most = if is_quick { CLIENTS_QUICK } else { CLIENTS };
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
    fn connect(&mut self, clients: u64) -> Result<(RunRecord, Option<u64>), CampaignError> {
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

fn scenario(
    name: &str,
    vars: &[(String, String)],
    hold: TimeSpan,
) -> Result<Scenario, CampaignError> {
    let adjustment = Adjustment { hold: Some(hold), ..Adjustment::NONE };
    Ok(Scenario::load(name, vars, &adjustment, Limits::of_this_process())?)
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
