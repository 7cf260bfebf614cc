//! What a measurement with several brokers leaves: `record.json` and a line per run in
//! `rows.jsonl`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use tacho_record::SUSTAINED_PERCENT;
use tacho_record::{Check, Gate, LatencyStats, StepTarget, Verdict, ViolationCounts};

/// How late a generator may be, 99th percentile, for its load to be the one that was meant.
const LATE_US_MAX: u64 = 10_000;

/// A measurement that documents are written from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Results {
    /// Name of the suite.
    pub(crate) suite: String,
    /// What measures it again.
    pub(crate) command: String,
    /// When the first run began.
    pub(crate) started_at: String,
    /// When the last one was over.
    pub(crate) ended_at: String,
    /// Measured seconds of every run.
    pub(crate) hold_s: u64,
    /// Seconds of load before them.
    pub(crate) warmup_s: u64,
    /// How the generator waited: `sleep` or `batch`.
    pub(crate) timing: String,
    /// How often a run was made when the machine disturbed it.
    pub(crate) attempts: u32,
    /// Core of the broker.
    pub(crate) broker_core: u64,
    /// Core of the generator.
    pub(crate) generator_core: u64,
    /// The machine.
    pub(crate) machine: Machine,
    /// Hard limit of open files.
    pub(crate) descriptors_max: Option<u64>,
    /// The measured programs.
    pub(crate) brokers: Vec<Broker>,
    /// What was not run.
    pub(crate) left_out: Vec<LeftOut>,
    /// The runs, in the order of time; they are in a file of their own.
    #[serde(skip)]
    pub(crate) rows: Vec<Row>,
    /// Name of the folder.
    #[serde(skip)]
    pub(crate) folder: String,
}

/// The machine that everything ran on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Machine {
    /// Model.
    pub(crate) cpu: String,
    /// How many.
    pub(crate) cores: u64,
    /// Memory.
    pub(crate) memory_gib: f64,
    /// Release of the kernel.
    pub(crate) kernel: String,
    /// A hypervisor is below it.
    pub(crate) virtualised: bool,
    /// Revision of the sources.
    pub(crate) revision: String,
}

/// A broker that was measured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Broker {
    /// What rows call it.
    pub(crate) key: String,
    /// What people call it.
    pub(crate) name: String,
    /// What it says of itself.
    pub(crate) version: String,
    /// How it was started.
    pub(crate) command: String,
    /// The same where sessions outlive their connections.
    pub(crate) persistent_command: String,
    /// Its configuration file; empty without one.
    pub(crate) configuration: String,
    /// What the bridge adds to it; empty where the run starts a pair by itself.
    pub(crate) bridge: String,
    /// What it does with sessions that outlive connections.
    pub(crate) persistence: String,
}

/// A row that was not run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LeftOut {
    /// Whose; empty for all.
    pub(crate) broker: String,
    /// Its series.
    pub(crate) series: String,
    /// Which step.
    pub(crate) label: String,
    /// Why.
    pub(crate) reason: String,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Row {
    /// Key of the broker.
    pub(crate) broker: String,
    /// Name of the series in the suite.
    pub(crate) series: String,
    /// Which step of it.
    pub(crate) label: String,
    /// The scenario.
    pub(crate) scenario: String,
    /// How often it was run.
    pub(crate) attempts: u32,
    /// Its judgement.
    pub(crate) verdict: Verdict,
    /// Why.
    pub(crate) reasons: Vec<String>,
    /// What was measured, if anything was.
    pub(crate) step: Option<RowFigures>,
    /// The line of the file that it is, from 1.
    #[serde(skip)]
    pub(crate) line: usize,
}

/// The figures of a run, named as in `summary.json`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RowFigures {
    /// Messages that were to be sent per second.
    pub(crate) offered_in_per_s: f64,
    /// Deliveries that they imply.
    pub(crate) offered_out_per_s: f64,
    /// Messages that the broker took per second.
    pub(crate) achieved_in_per_s: f64,
    /// Messages that it delivered per second.
    pub(crate) achieved_out_per_s: f64,
    /// Both.
    pub(crate) tps: f64,
    /// From when a message was due to its receipt.
    pub(crate) latency_us: LatencyStats,
    /// How late the generator was.
    pub(crate) send_delay_us: LatencyStats,
    /// Deliveries that did not come.
    pub(crate) lost: u64,
    /// Further copies.
    pub(crate) duplicates: u64,
    /// Deliveries out of order.
    pub(crate) out_of_order: u64,
    /// Breaches of the QoS contract.
    pub(crate) violations: ViolationCounts,
    /// CPU of the broker process, one core = 100.
    pub(crate) broker_cpu_percent: Option<f64>,
    /// The same per message in or out.
    pub(crate) broker_cpu_us_per_message: Option<f64>,
    /// Resident memory.
    pub(crate) broker_rss_bytes: Option<u64>,
    /// Memory in use on the machine; earlier records do not hold it.
    pub(crate) host_memory_percent: Option<f64>,
    /// Time that the hypervisor gave to others.
    pub(crate) host_steal_percent: Option<f64>,
    /// How busy the generator's core was.
    pub(crate) generator_thread_busy_max_percent: f64,
    /// Checks of the generator.
    pub(crate) gates: Vec<Gate>,
    /// The part of each of several brokers.
    pub(crate) targets: Vec<StepTarget>,
}

/// Why documents cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultsError {
    /// A file is not there, or cannot be written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file does not say what it should.
    #[error("{path}, line {line}: {error}")]
    Text {
        /// Which.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// Why.
        error: serde_json::Error,
    },
    /// No document describes this suite.
    #[error("{path}: unknown suite '{suite}': guide and bifromq")]
    Suite {
        /// The record.
        path: PathBuf,
        /// What it names.
        suite: String,
    },
    /// A document has no place for what is to be put in.
    #[error("{path} lacks the lines <!-- {name}: begin --> and <!-- {name}: end -->")]
    NoPlace {
        /// Which.
        path: PathBuf,
        /// Name of the place.
        name: String,
    },
}

impl Results {
    /// Reads what a measurement has left in `folder`.
    ///
    /// # Errors
    /// A file is missing or says something else.
    pub(crate) fn load(folder: &Path) -> Result<Self, ResultsError> {
        let read = |name: &str| {
            let path = folder.join(name);
            let text = fs::read_to_string(&path);
            text.map_err(|error| ResultsError::File { path: path.clone(), error })
                .map(|text| (path, text))
        };
        let (path, text) = read("record.json")?;
        let mut results: Self = serde_json::from_str(&text).map_err(|error| {
            let line = error.line();
            ResultsError::Text { path: path.clone(), line, error }
        })?;
        if !["guide", "bifromq"].contains(&results.suite.as_str()) {
            return Err(ResultsError::Suite { path, suite: results.suite });
        }
        let (path, text) = read("rows.jsonl")?;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let row = serde_json::from_str(line).map_err(|error| ResultsError::Text {
                path: path.clone(),
                line: number,
                error,
            })?;
            results.rows.push(Row { line: number, ..row });
        }
        let name = folder.file_name().unwrap_or_default();
        results.folder = name.to_string_lossy().into_owned();
        Ok(results)
    }

    /// The run of a broker and step.
    pub(crate) fn row(&self, broker: &str, series: &str, label: &str) -> Option<&Row> {
        let is = |row: &&Row| row.broker == broker && row.series == series && row.label == label;
        self.rows.iter().find(is)
    }

    /// What tables say of a broker without any run of a series; the reasons are listed elsewhere.
    pub(crate) fn absence(&self, broker: &str, series: &str) -> &'static str {
        let is_own = |left: &LeftOut| left.broker == broker && left.series == series;
        match (series, self.left_out.iter().any(is_own)) {
            ("bridge", true) => "no suitable bridge",
            _ => "not run",
        }
    }

    /// Why a broker has no run of a step.
    pub(crate) fn reason(&self, broker: &str, series: &str, label: &str) -> Option<&str> {
        let is = |left: &&LeftOut| {
            (left.broker.is_empty() || left.broker == broker)
                && left.series == series
                && left.label == label
        };
        self.left_out.iter().find(is).map(|left| left.reason.as_str())
    }
}

/// What the figures of a run are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// They are the broker's.
    Counts,
    /// They say nothing about the broker.
    Invalid,
    /// The broker did not carry the load.
    NotCarried,
}

impl Row {
    /// What its figures are worth; what was not carried stays so whatever the machine did.
    pub(super) fn worth(&self) -> Worth {
        match (self.is_failed(), self.is_invalid()) {
            (true, _) => Worth::NotCarried,
            (false, true) => Worth::Invalid,
            (false, false) => Worth::Counts,
        }
    }

    /// CPU of the broker's process, one core = 100; of several brokers that of the busiest.
    pub(crate) fn cpu_percent(&self) -> Option<f64> {
        let step = self.step.as_ref()?;
        let parts = step.targets.iter().filter_map(|target| target.broker_cpu_percent);
        parts.reduce(f64::max).filter(|_| step.targets.len() > 1).or(step.broker_cpu_percent)
    }

    /// The figures say nothing about the broker.
    pub(crate) fn is_invalid(&self) -> bool {
        let void = !self.verdict.counts() || self.verdict == Verdict::NotSteady;
        let gates = self.step.iter().flat_map(|step| &step.gates);
        void || gates.into_iter().any(|gate| !gate.passed)
    }

    /// The broker carried the load, though the generator was late or its core full: CPU is that of
    /// a load in bursts, and latency is the generator's too.
    pub(crate) fn is_carried_late(&self) -> bool {
        let Some(step) = &self.step else { return false };
        let carried = |achieved: f64, offered: f64| achieved * 100.0 >= offered * SUSTAINED_PERCENT;
        self.verdict == Verdict::GeneratorBound
            && step.gates.iter().all(|gate| gate.passed || gate.name.known() != Some(Check::Steal))
            && step.send_delay_us.p99.is_some_and(|us| us < LATE_US_MAX)
            && step.violations.total() == 0
            && carried(step.achieved_in_per_s, step.offered_in_per_s)
            && carried(step.achieved_out_per_s, step.offered_out_per_s)
    }

    /// The broker did not carry it.
    pub(crate) fn is_failed(&self) -> bool {
        matches!(self.verdict, Verdict::NotSustained | Verdict::QosViolation)
    }

    /// The program without spare CPU.
    pub(crate) fn bottleneck(&self) -> &'static str {
        let Some(step) = &self.step else { return "" };
        let generator = step.generator_thread_busy_max_percent;
        let all: f64 = step.targets.iter().filter_map(|target| target.broker_cpu_percent).sum();
        let broker = self.cpu_percent().unwrap_or(0.0).max(all);
        match (broker >= 85.0, generator >= 80.0) {
            (true, true) => "both",
            (true, false) => "broker",
            (false, true) => "generator",
            _ => "",
        }
    }
}
