//! The directory that a run leaves.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;

use super::brokers::BrokerWriter;
use super::hgrm::write_percentiles;
use super::hlog::HistogramLog;
use super::jtl::{AggregatedWriter, SampleRows};
use super::resources::ResourceWriter;
use super::steps::write_steps;
use super::timeseries::SeriesWriter;
use crate::comparison::Comparison;
use crate::environment::Environment;
use crate::run::RunRecord;
use crate::timestamp::Timestamp;

/// A file of the run directory that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct OutputError {
    path: PathBuf,
    source: io::Error,
}

/// Files that a run writes at its end, or leaves behind when it is killed: those of an earlier one
/// must not stand beside its others.
const STALE: [&str; 15] = [
    "brokers.csv",
    "comparison.json",
    "groups.csv",
    "groups.hlog",
    "summary.json",
    "summary.md",
    "junit.xml",
    "report.html",
    "source.json",
    "results.jtl.part",
    "steps.csv",
    "e2e.hgrm",
    "service.hgrm",
    "send_delay.hgrm",
    "ack.hgrm",
];

/// Files that every run writes first.
const FIRST: [&str; 2] = ["scenario.toml", "environment.json"];

/// The directory of one run, and the writers of its files:
///
/// | file | content |
/// |---|---|
/// | `scenario.toml` | the scenario, every variable replaced and every default spelled out |
/// | `environment.json` | the machine and its settings |
/// | `timeseries.csv` | a row per second |
/// | `brokers.csv` | with several brokers: a row per second and broker |
/// | `groups.csv`, `groups.hlog` | with several groups: a row and a histogram per second and group |
/// | `resources.csv` | resource use of the watched hosts, a line per figure and second |
/// | `latency.hlog` | a histogram per second and latency, HdrHistogram's interval log 1.3 |
/// | `results.jtl` | a row per connect, publication and reception, bounded, for JMeter |
/// | `results-aggregated.jtl` | the same per second, for JMeter's listeners |
/// | `e2e.hgrm` and others | percentiles of each latency, as HdrHistogram's plotting page reads
/// them |
/// | `summary.json` | the run record |
/// | `summary.md`, `junit.xml` | the same for CI |
/// | `steps.csv` | a line per measured window |
/// | `report.html` | all of it to look at, self-contained |
/// | `comparison.json` | of a comparison: its record |
/// | `broker.log` | the output of a broker that the caller started |
///
/// The first two are written at the start and the next seven as the run goes on, so that a run that
/// is killed leaves what it measured.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Creates `path` with its parents. An existing directory is used as it is: files of an
    /// earlier run in it are replaced.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        fs::create_dir_all(path).map_err(|source| OutputError { path: path.to_owned(), source })?;
        let directory = Self { path: path.to_owned() };
        // A verdict of an earlier run must not stand beside the files of this one.
        for stale in STALE {
            let path = directory.file(stale);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(OutputError { path, source });
                }
                _ => {}
            }
        }
        Ok(directory)
    }

    /// Whether `path` has files of an earlier run.
    pub fn holds_run(path: &Path) -> bool {
        STALE.iter().chain(&FIRST).any(|name| path.join(name).exists())
    }

    /// The directory of a run that has ended; its files stay as they are.
    pub fn existing(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// `<time>-<name>`, with only characters that every file system takes.
    pub fn run_name(started: Timestamp, name: &str) -> String {
        let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name: String = name.chars().map(|c| if usable(c) { c } else { '-' }).collect();
        let name = name.trim_matches(['.', '-']);
        format!("{}-{}", started.compact(), if name.is_empty() { "run" } else { name })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), OutputError> {
        let path = self.file(name);
        fs::write(&path, text).map_err(|source| OutputError { path, source })
    }

    /// An error about one of its files.
    pub fn error(&self, name: &str, source: io::Error) -> OutputError {
        OutputError { path: self.file(name), source }
    }

    pub(super) fn open(&self, name: &str) -> Result<BufWriter<File>, OutputError> {
        // One that another process may still have open, having lost this run, is left to it.
        let _ = fs::remove_file(self.file(name));
        File::create(self.file(name)).map(BufWriter::new).map_err(|source| self.error(name, source))
    }

    /// Writes `scenario.toml`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_scenario(&self, toml: &str) -> Result<(), OutputError> {
        self.write("scenario.toml", toml)
    }

    /// Writes `environment.json`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_environment(&self, environment: &Environment) -> Result<(), OutputError> {
        self.write("environment.json", &json(environment))
    }

    /// Writes a rendering of the record, such as `summary.md`. Renderings are written before the
    /// record: a reader that waits for `summary.json` finds the others.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_rendering(&self, name: &str, text: &str) -> Result<(), OutputError> {
        self.write(name, text)
    }

    /// The names of the files that are there.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn names(&self) -> Result<Vec<String>, OutputError> {
        let entries = fs::read_dir(&self.path).map_err(|source| self.error(".", source))?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
    }

    /// Writes the record: `steps.csv` and `summary.json`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_summary(&self, record: &RunRecord) -> Result<(), OutputError> {
        write_steps(self.open("steps.csv")?, record)
            .map_err(|source| self.error("steps.csv", source))?;
        // Last: a reader that waits for it finds the others.
        self.write("summary.json", &json(record))
    }

    /// Writes `NAME.hgrm`, the percentiles of a histogram of microseconds.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_percentiles(
        &self,
        name: &str,
        histogram: &Histogram<u64>,
    ) -> Result<(), OutputError> {
        let name = format!("{name}.hgrm");
        let mut out = self.open(&name)?;
        write_percentiles(&mut out, histogram)
            .and_then(|()| out.flush())
            .map_err(|source| self.error(&name, source))
    }

    /// Begins `results.jtl`, a row per sample, of a run that started at `started_ms` of Unix time,
    /// loads the broker at `url` and measures for `measured_s`; `acknowledged` when every
    /// publication is acknowledged.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn sample_rows(
        &self,
        started_ms: u64,
        url: &str,
        acknowledged: bool,
        measured_s: f64,
    ) -> Result<SampleRows, OutputError> {
        let name = "results.jtl";
        SampleRows::new(&self.file(name), started_ms, url, acknowledged, measured_s)
            .map_err(|source| self.error(name, source))
    }

    /// Begins `results-aggregated.jtl`, a row per label, outcome and second, of the same run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn aggregated_samples(
        &self,
        started_ms: u64,
        url: &str,
        acknowledged: bool,
    ) -> Result<AggregatedWriter<BufWriter<File>>, OutputError> {
        let name = "results-aggregated.jtl";
        AggregatedWriter::new(self.open(name)?, started_ms, url, acknowledged)
            .map_err(|source| self.error(name, source))
    }

    /// Writes `comparison.json`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_comparison(&self, comparison: &Comparison) -> Result<(), OutputError> {
        self.write("comparison.json", &json(comparison))
    }

    /// Begins `timeseries.csv`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn series(&self) -> Result<SeriesWriter<BufWriter<File>>, OutputError> {
        SeriesWriter::new(self.open("timeseries.csv")?)
            .map_err(|source| self.error("timeseries.csv", source))
    }

    /// Begins `brokers.csv`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn brokers(&self) -> Result<BrokerWriter<BufWriter<File>>, OutputError> {
        BrokerWriter::new(self.open("brokers.csv")?)
            .map_err(|source| self.error("brokers.csv", source))
    }

    /// Begins `resources.csv`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn resources(&self) -> Result<ResourceWriter<BufWriter<File>>, OutputError> {
        ResourceWriter::new(self.open("resources.csv")?)
            .map_err(|source| self.error("resources.csv", source))
    }

    /// Begins `latency.hlog`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn histograms(
        &self,
        started: Timestamp,
    ) -> Result<HistogramLog<BufWriter<File>>, OutputError> {
        HistogramLog::new(self.open("latency.hlog")?, started)
            .map_err(|source| self.error("latency.hlog", source))
    }
}

/// Pretty JSON with a line break at its end.
pub fn json<T: serde::Serialize>(value: &T) -> String {
    // Invariant: our structures have string keys and finite or optional numbers.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_else(|_| "null".to_owned());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe() {
        let name = RunDirectory::run_name(Timestamp::now(), "../a b/ü");
        assert!(name.ends_with("-a-b"), "{name}");
        assert!(RunDirectory::run_name(Timestamp::now(), "../..").ends_with("-run"));
    }

    #[test]
    fn an_old_verdict_is_removed() {
        let place = tempfile::tempdir().expect("temporary directory");
        let path = place.path().join("a/b");
        fs::create_dir_all(&path).expect("creates");
        fs::write(path.join("notes.txt"), "mine").expect("writes");
        assert!(!RunDirectory::holds_run(&path), "a file of the user is no run");
        RunDirectory::create(&path).expect("creates");
        for name in ["summary.json", "results.jtl.part"] {
            fs::write(path.join(name), "{}").expect("writes");
            assert!(RunDirectory::holds_run(&path));
            RunDirectory::create(&path).expect("takes an existing one");
            assert!(!path.join(name).exists());
        }
        fs::write(place.path().join("file"), "").expect("writes");
        let error = RunDirectory::create(&place.path().join("file")).expect_err("is a file");
        assert!(error.to_string().contains("cannot write"), "{error}");
    }
}
