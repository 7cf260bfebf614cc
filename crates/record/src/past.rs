//! Runs that were made, read back from their directories, so that their report can be rendered
//! again: by another version, or in another language.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tacho_monitor::HostRow;

use crate::campaign::RunKind;
use crate::curves::{StepCurves, StepSecond};
use crate::data::RunData;
use crate::environment::Environment;
use crate::hosts::ResourceRow;
use crate::output::{GROUP_ROWS, RunDirectory};
use crate::percentiles::curve_of_file;
use crate::phase::PhaseName;
use crate::read::{ReadError, read_json, read_record};
use crate::series::{BrokerRow, BrokerSpent, GroupRow, PartBy, PartRow, SeriesRow};
use crate::step::Step;

/// The reason why a report cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PastError {
    /// Something that the report shows is not there.
    #[error("{} cannot be rendered: it has no {file}, {what}", path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
        /// The file.
        file: &'static str,
        /// Its content.
        what: &'static str,
    },
    /// A kind of run whose report has more than its directory holds.
    #[error(
        "{} is a comparison: run 'tacho compare' on its runs to render it", path.display()
    )]
    Comparison {
        /// The directory.
        path: PathBuf,
    },
    /// A record that cannot be used.
    #[error(transparent)]
    Record(#[from] ReadError),
    /// A table that is damaged.
    #[error("{} is damaged or of another version: {source}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Where.
        source: csv::Error,
    },
}

/// A run that was read back.
#[derive(Debug)]
pub struct Past {
    directory: RunDirectory,
    /// What it left.
    pub data: RunData,
}

impl Past {
    /// Reads the directory of a run, a ladder, a search or a suite.
    ///
    /// # Errors
    /// When something is missing or damaged.
    pub fn read(path: &Path) -> Result<Self, PastError> {
        let missing = |file, what| PastError::Missing { path: path.to_owned(), file, what };
        let record = read_record(path)?;
        let record = record.ok_or_else(|| missing("summary.json", "the record of a run"))?;
        if record.kind == RunKind::Comparison {
            return Err(PastError::Comparison { path: path.to_owned() });
        }
        let environment: Option<Environment> = read_json(&path.join("environment.json"))?;
        let environment =
            environment.ok_or_else(|| missing("environment.json", "the machine of the run"))?;
        let (mut rows, mut hosts, mut brokers) = (Vec::new(), Vec::new(), Vec::new());
        let curves = match record.kind {
            RunKind::Run => {
                rows = table(&path.join("timeseries.csv"))?
                    .ok_or_else(|| missing("timeseries.csv", "a row per second"))?;
                let figures: Vec<HostLine> = table(&path.join("resources.csv"))?
                    .ok_or_else(|| missing("resources.csv", "figures of watched hosts"))?;
                hosts = hosts_of(figures);
                // Only where there are several.
                let lines: Option<Vec<BrokerLine>> = table(&path.join("brokers.csv"))?;
                brokers = lines.into_iter().flatten().map(BrokerLine::row).collect();
                match &record.steps[..] {
                    [step] => vec![curves_of(path, path, step)?],
                    // Files of percentiles are of all windows of a run together.
                    several => vec![StepCurves::default(); several.len()],
                }
            }
            _ => {
                let steps = record.steps.iter();
                let own = |step: &Step| {
                    let directory = path.join(&step.directory);
                    let rows: Option<Vec<SeriesRow>> = table(&directory.join("timeseries.csv"))?;
                    let seconds = StepSecond::of(&rows.unwrap_or_default());
                    Ok(StepCurves { seconds, ..curves_of(path, &directory, step)? })
                };
                steps.map(own).collect::<Result<_, PastError>>()?
            }
        };
        let directory = RunDirectory::existing(path);
        let environment = Some(environment);
        let data = RunData { record, rows, curves, hosts, brokers, environment };
        Ok(Self { directory, data })
    }

    /// Its directory.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// The directories of its steps that are there, where these are runs of their own.
    pub fn steps(&self) -> Vec<PathBuf> {
        let below = |step: &Step| {
            let own = Path::new(&step.directory);
            let is_below =
                own.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            (is_below && !step.directory.is_empty()).then(|| self.directory.file(&step.directory))
        };
        let steps = self.data.record.steps.iter().filter_map(below);
        steps.filter(|step| step.join("summary.json").is_file()).collect()
    }
}

/// A line of `resources.csv`.
#[derive(Debug, Deserialize)]
struct HostLine {
    at_s: f64,
    length_s: f64,
    host: String,
    target: String,
    source: String,
    metric: String,
    instance: String,
    value: f64,
}

/// A line of `brokers.csv`.
#[derive(Debug, Deserialize)]
struct BrokerLine {
    start_s: f64,
    length_s: f64,
    phase: PhaseName,
    broker: String,
    connected: u64,
    sent_per_s: f64,
    received_per_s: f64,
    rtt_p50_us: Option<u64>,
    cpu_percent: Option<f64>,
    cores_busy_percent: Option<f64>,
    rss_bytes: Option<u64>,
    bridged_in_per_s: Option<f64>,
    bridged_out_per_s: Option<f64>,
    bridge_waiting: Option<u64>,
    bridge_waiting_bytes: Option<u64>,
    bridge_connections_up: Option<u64>,
}

impl BrokerLine {
    fn row(self) -> BrokerRow {
        let spent = BrokerSpent {
            cpu_percent: self.cpu_percent,
            cores_busy_percent: self.cores_busy_percent,
            rss_bytes: self.rss_bytes,
            bridged_in_per_s: self.bridged_in_per_s,
            bridged_out_per_s: self.bridged_out_per_s,
            bridge_waiting: self.bridge_waiting,
            bridge_waiting_bytes: self.bridge_waiting_bytes,
            bridge_connections_up: self.bridge_connections_up,
        };
        let part = PartRow {
            by: PartBy::Broker,
            name: self.broker,
            connected: self.connected,
            sent_per_s: self.sent_per_s,
            received_per_s: self.received_per_s,
            rtt_p50_us: self.rtt_p50_us,
            spent,
        };
        BrokerRow { start_s: self.start_s, length_s: self.length_s, phase: self.phase, part }
    }
}

/// The seconds of groups of clients in the directory of a run; none where it had a single group.
///
/// # Errors
/// When the file is damaged.
pub fn group_rows(path: &Path) -> Result<Vec<GroupRow>, PastError> {
    Ok(table(&path.join(GROUP_ROWS))?.unwrap_or_default())
}

/// The rows of a table, by the names of its columns; `None` where there is no such file.
fn table<T: for<'d> Deserialize<'d>>(path: &Path) -> Result<Option<Vec<T>>, PastError> {
    let Ok(file) = File::open(path) else { return Ok(None) };
    let rows: Result<Vec<T>, csv::Error> = csv::Reader::from_reader(file).deserialize().collect();
    rows.map(Some).map_err(|source| PastError::Table { path: path.to_owned(), source })
}

/// The figures of a host at a time stand in lines that follow each other.
fn hosts_of(figures: Vec<HostLine>) -> Vec<ResourceRow> {
    let mut rows: Vec<ResourceRow> = Vec::new();
    for figure in figures {
        let target = Some(figure.target.as_str()).filter(|name| !name.is_empty());
        let is_of = |row: &&mut ResourceRow| {
            row.at_s.total_cmp(&figure.at_s).is_eq()
                && row.host.host == figure.host
                && row.host.source == figure.source
                && row.host.target.as_deref() == target
        };
        let instance = Some(figure.instance.as_str()).filter(|name| !name.is_empty());
        if let Some(row) = rows.last_mut().filter(is_of) {
            row.host.set_metric(&figure.metric, instance, figure.value);
            continue;
        }
        let mut host = HostRow {
            length_ns: (figure.length_s * 1e9) as u64,
            host: figure.host.clone(),
            source: figure.source.clone(),
            target: target.map(str::to_owned),
            ..HostRow::default()
        };
        host.set_metric(&figure.metric, instance, figure.value);
        rows.push(ResourceRow { at_s: figure.at_s, host });
    }
    rows
}

/// The percentiles of a step of the run in `of`, from the files in `path`.
fn curves_of(of: &Path, path: &Path, step: &Step) -> Result<StepCurves, PastError> {
    let latency = curve_of_file(&path.join("e2e.hgrm"));
    if latency.is_none() && step.latency_us.count > 0 {
        let (file, what) = ("e2e.hgrm", "the percentiles of latency (of a step)");
        return Err(PastError::Missing { path: of.to_owned(), file, what });
    }
    let curve = |name: &str| curve_of_file(&path.join(name)).unwrap_or_default();
    Ok(StepCurves {
        latency: latency.unwrap_or_default(),
        service: curve("service.hgrm"),
        send_delay: curve("send_delay.hgrm"),
        seconds: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_rows_of_hosts() {
        let text = "at_s,length_s,host,target,source,metric,instance,value\n\
            1.000,0.500,\"a,b\",node1,local,load_1m,,0.5\n\
            1.000,0.500,\"a,b\",node1,local,net_rx_bytes_per_s,eth0,12.346\n\
            1.000,0.500,c,,local,load_1m,,7\n\
            2.000,1.000,c,,local,load_1m,,8\n";
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let figures: Result<Vec<HostLine>, _> = reader.deserialize().collect();
        let rows = hosts_of(figures.expect("is a table"));
        let shown: Vec<_> = rows
            .iter()
            .map(|row| {
                let host = &row.host;
                (
                    row.at_s,
                    host.host.as_str(),
                    host.target.as_deref(),
                    host.load.map(|load| load[0]),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (1.0, "a,b", Some("node1"), Some(0.5)),
                (1.0, "c", None, Some(7.0)),
                (2.0, "c", None, Some(8.0))
            ]
        );
        assert_eq!(rows[0].host.length_ns, 500_000_000);
        assert_eq!(rows[0].host.interfaces[0].rx_bytes_per_s.round(), 12.0);
    }
}
