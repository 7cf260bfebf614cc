//! The course of a run that has ended, from its files: its page shows the same charts later as
//! while it went on.

use std::collections::BTreeMap;
use std::path::Path;

use tacho_record::past::{Past, group_rows};
use tacho_record::{ActionRecord, ActionState, PartRow, RunKind, RunRecord, ThresholdResult};
use tacho_scenario::threshold::Threshold;

use crate::news::{ActionNews, RunAbout, RunNews, SecondNews, ThresholdAbout};
use crate::relay::event;

/// Seconds that are sent; of a longer run each second one, each third one and so on.
const SECONDS_MAX: usize = 1800;
/// Rows of hosts that are sent.
const HOST_ROWS_MAX: usize = 10_000;
/// The table of a run's seconds.
const SECONDS: &str = "timeseries.csv";

/// What there is to tell about a run that has ended.
#[derive(Debug)]
pub(crate) struct PastCourse {
    pub(crate) run: RunNews,
    pub(crate) actions: Vec<ActionNews>,
    pub(crate) failures: Vec<String>,
    pub(crate) failures_count: u64,
    /// Seconds and rows of hosts, as events.
    pub(crate) rows: String,
    /// Time between two rows, in seconds.
    pub(crate) every_s: usize,
}

impl PastCourse {
    /// Of a single run; `None` where its directory has no course, or one that cannot be read.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        if !directory.join(SECONDS).is_file() {
            return None;
        }
        let past = Past::read(directory).ok()?;
        let record = &past.data.record;
        let last = past.data.rows.last().filter(|_| record.kind == RunKind::Run)?;
        let every_s = (last.start_s as usize / SECONDS_MAX) + 1;
        let is_sent = |at_s: f64| (at_s as usize).is_multiple_of(every_s);
        let mut parts = parts(directory, &past);
        let mut rows = String::new();
        for row in past.data.rows.iter().filter(|row| is_sent(row.start_s)).take(2 * SECONDS_MAX) {
            let parts = parts.remove(&milliseconds(row.start_s)).unwrap_or_default();
            let second = SecondNews { clients: record.clients, parts, row: row.clone() };
            rows.push_str(&event("second", &serde_json::to_string(&second).ok()?));
        }
        let hosts = past.data.hosts.iter().filter(|row| is_sent(row.at_s)).take(HOST_ROWS_MAX);
        for row in hosts {
            rows.push_str(&event("host", &serde_json::to_string(row).ok()?));
        }
        let actions = record.actions.iter().enumerate().filter_map(action).collect();
        let (failures, failures_count) = (record.first_failures.clone(), record.client_failures);
        Some(Self { run: about(record), actions, failures, failures_count, rows, every_s })
    }
}

/// Groups and brokers of each second.
fn parts(directory: &Path, past: &Past) -> BTreeMap<i64, Vec<PartRow>> {
    let mut parts: BTreeMap<i64, Vec<PartRow>> = BTreeMap::new();
    for row in group_rows(directory).unwrap_or_default() {
        parts.entry(milliseconds(row.start_s)).or_default().push(row.part());
    }
    for row in &past.data.brokers {
        parts.entry(milliseconds(row.start_s)).or_default().push(row.part.clone());
    }
    parts
}

fn milliseconds(at_s: f64) -> i64 {
    (at_s * 1e3).round() as i64
}

fn about(record: &RunRecord) -> RunNews {
    let brokers = record.targets.iter().map(|target| match target.name.as_str() {
        "" => target.broker.clone(),
        name => format!("{name} {}", target.broker),
    });
    let about = RunAbout {
        title: None,
        scenario: record.scenario.clone(),
        description: record.description.clone(),
        clients: record.clients,
        version: record.target.version.clone(),
        brokers: brokers.collect(),
        thresholds: record.thresholds.iter().filter_map(threshold).collect(),
    };
    RunNews { number: 1, about, at_s: 0.0 }
}

fn threshold(result: &ThresholdResult) -> Option<ThresholdAbout> {
    let threshold = Threshold::parse(&result.condition).ok()?;
    Some(ThresholdAbout {
        condition: result.condition.clone(),
        figure: threshold.metric.to_string(),
        symbol: threshold.comparison.symbol(),
        limit: threshold.limit,
    })
}

fn action((number, record): (usize, &ActionRecord)) -> Option<ActionNews> {
    let state = ActionState {
        number,
        kind: record.kind.clone(),
        // Records of version 1 have words only.
        effect: record.effect.clone()?,
        at_s: record.at_s,
        length_s: record.length_s,
        clients: record.clients,
        consequences: record.consequences(),
    };
    Some(ActionNews::new(1, state))
}
