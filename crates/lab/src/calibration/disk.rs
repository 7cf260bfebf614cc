//! The time of a synced write: what a broker waits for before it acknowledges a durable message.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tacho_monitor::{DataDisk, ProcRoot, describe_host};
use tacho_record::{Given, Timestamp};
use tacho_scenario::format::{bytes, latency, rate, thousands};

use super::{Machine, VERSION};

/// What is written at once. A journal's commit is a few KiB with little load, and grows with it.
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// The file has so many bytes, which are written over and over, as a journal's segments are.
const FILE_BYTES: u64 = 16 << 20;
/// Each size is written for so long,
const HOLD: Duration = Duration::from_secs(5);
const HOLD_QUICK: Duration = Duration::from_secs(1);
/// and until its 99th percentile has ten samples beyond it, but no longer than this.
const WRITES_MIN: u64 = 1_000;
const HOLD_MAX: Duration = Duration::from_secs(20);
/// Samples needed beyond a percentile, as everywhere.
const SAMPLES_BEYOND: f64 = 10.0;
/// The longest time that is told apart, in microseconds.
const LONGEST_US: u64 = 100_000_000;

/// What a synced write takes in a directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskCalibration {
    /// Version of this form.
    pub schema_version: u32,
    /// When it was measured, RFC 3339 in UTC.
    pub measured_at: String,
    /// What the user calls it and says about it.
    #[serde(skip_serializing_if = "Given::is_empty")]
    pub given: Given,
    /// The machine.
    pub machine: Machine,
    /// Where the file was.
    pub directory: PathBuf,
    /// The disk below it, where that is known.
    pub disk: Option<DataDisk>,
    /// Was it a short one?
    pub quick: bool,
    /// By size.
    pub synced_writes: Vec<SyncedWrites>,
}

/// Writes of one size, each followed by `fdatasync`, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncedWrites {
    /// Bytes of each.
    pub bytes: u64,
    /// How many there were.
    pub count: u64,
    /// How many fitted into a second.
    pub per_s: f64,
    /// Median of the time of write and sync together, in microseconds. A percentile without ten
    /// samples beyond it is absent.
    pub p50_us: Option<u64>,
    /// 99th percentile.
    pub p99_us: Option<u64>,
    /// 99.9th percentile.
    pub p999_us: Option<u64>,
    /// Greatest.
    pub max_us: u64,
}

/// Why a disk could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The path is not a directory that can be used.
    #[error("{} is no directory to measure in: {source}", path.display())]
    Directory {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A write or a sync failed.
    #[error("writing {} failed: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was stopped before it was complete.
    #[error("stopped before the disk was measured")]
    Stopped,
}

/// The file that is written, removed in the end.
struct Scratch {
    path: PathBuf,
    file: File,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Measures in a file of its own in `directory`, which is removed in the end; `is_stopped` is asked
/// between two writes.
///
/// # Errors
/// The directory cannot be used, a write fails, or it was stopped.
pub fn measure_disk(
    directory: &Path,
    is_quick: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<DiskCalibration, DiskError> {
    let unusable = |source| DiskError::Directory { path: directory.to_owned(), source };
    let directory = directory.canonicalize().map_err(unusable)?;
    if !directory.is_dir() {
        return Err(unusable(io::ErrorKind::NotADirectory.into()));
    }
    let path = directory.join(format!(".tacho-calibrate-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(unusable)?;
    let mut scratch = Scratch { path, file };
    let mut synced_writes = Vec::new();
    fill(&mut scratch, is_stopped)?;
    for size in SIZES {
        synced_writes.push(writes(&mut scratch, size, is_quick, is_stopped)?);
    }
    Ok(DiskCalibration {
        schema_version: VERSION,
        measured_at: Timestamp::now().rfc3339(),
        given: Given::default(),
        machine: Machine::this(),
        disk: describe_host(&ProcRoot::default(), Some(&directory), &[]).data_disk,
        directory,
        quick: is_quick,
        synced_writes,
    })
}

/// Gives the file its size, so that later syncs have only data to write.
fn fill(scratch: &mut Scratch, is_stopped: &dyn Fn() -> bool) -> Result<(), DiskError> {
    let block = pattern(1 << 20);
    for _ in 0..FILE_BYTES / block.len() as u64 {
        if is_stopped() {
            return Err(DiskError::Stopped);
        }
        scratch.file.write_all(&block).map_err(|source| failed(scratch, source))?;
    }
    scratch.file.sync_all().map_err(|source| failed(scratch, source))
}

fn failed(scratch: &Scratch, source: io::Error) -> DiskError {
    DiskError::Write { path: scratch.path.clone(), source }
}

/// Bytes that no disk compresses to nothing.
fn pattern(size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(1);
    std::iter::repeat_with(|| random.u8(..)).take(size).collect()
}

fn writes(
    scratch: &mut Scratch,
    size: usize,
    is_quick: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<SyncedWrites, DiskError> {
    let block = pattern(size);
    // Invariant: both bounds and three digits are in the histogram's range.
    let mut times = Histogram::<u64>::new_with_bounds(1, LONGEST_US, 3).expect("valid bounds");
    let (hold, least) = if is_quick { (HOLD_QUICK, 0) } else { (HOLD, WRITES_MIN) };
    let start = Instant::now();
    let mut at = FILE_BYTES;
    loop {
        let elapsed = start.elapsed();
        let is_enough = times.len() >= least || elapsed >= HOLD_MAX;
        if elapsed >= hold && is_enough && !times.is_empty() {
            return Ok(SyncedWrites::of(size as u64, &times, elapsed));
        }
        if is_stopped() {
            return Err(DiskError::Stopped);
        }
        if at + size as u64 > FILE_BYTES {
            at = scratch.file.seek(SeekFrom::Start(0)).map_err(|error| failed(scratch, error))?;
        }
        let began = Instant::now();
        let result = scratch.file.write_all(&block).and_then(|()| scratch.file.sync_data());
        let taken = began.elapsed();
        result.map_err(|error| failed(scratch, error))?;
        at += size as u64;
        times.saturating_record(u64::try_from(taken.as_micros()).unwrap_or(LONGEST_US).max(1));
    }
}

impl SyncedWrites {
    fn of(bytes: u64, times: &Histogram<u64>, elapsed: Duration) -> Self {
        let count = times.len();
        let known = |quantile: f64| {
            let beyond = count as f64 * (1.0 - quantile);
            (beyond >= SAMPLES_BEYOND - 1e-6).then(|| times.value_at_quantile(quantile))
        };
        Self {
            bytes,
            count,
            per_s: count as f64 / elapsed.as_secs_f64().max(1e-9),
            p50_us: known(0.5),
            p99_us: known(0.99),
            p999_us: known(0.999),
            max_us: times.max(),
        }
    }
}

/// The table and what it means.
pub fn disk_text(calibration: &DiskCalibration) -> String {
    let mut out = String::new();
    let given = &calibration.given;
    let said: Vec<&str> =
        [&*given.name, &*given.note].into_iter().filter(|text| !text.is_empty()).collect();
    if !said.is_empty() {
        let _ = writeln!(out, "{}", said.join(": "));
    }
    let on = calibration.disk.as_ref().map_or_else(String::new, |disk| {
        let model = disk.model.as_ref().map_or_else(String::new, |model| format!(" ({model})"));
        format!(": {} on {}{model}", disk.file_system, disk.device)
    });
    let quick = if calibration.quick { " (quick)" } else { "" };
    let (directory, at) = (calibration.directory.display(), &calibration.measured_at);
    let _ = writeln!(out, "{directory}{on}; measured {at}{quick}");
    let _ = writeln!(
        out,
        "\n{:<18}{:>12}{:>12}{:>12}{:>12}{:>14}{:>12}",
        "SYNCED WRITES", "p50", "p99", "p99.9", "max", "per second", "writes"
    );
    let us = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |us| latency(us as f64));
    for cell in &calibration.synced_writes {
        let _ = writeln!(
            out,
            "  {:<16}{:>12}{:>12}{:>12}{:>12}{:>14}{:>12}",
            bytes(cell.bytes),
            us(cell.p50_us),
            us(cell.p99_us),
            us(cell.p999_us),
            us(Some(cell.max_us)),
            rate(cell.per_s),
            thousands(cell.count)
        );
    }
    let _ = writeln!(out, "\nWHAT IT MEANS");
    for sentence in sentences(calibration) {
        let _ = writeln!(out, "  - {sentence}");
    }
    out
}

fn sentences(calibration: &DiskCalibration) -> Vec<String> {
    let Some(least) = calibration.synced_writes.first() else { return Vec::new() };
    let mut sentences = Vec::new();
    if let Some(median) = least.p50_us {
        let at_most = least.p99_us.map_or_else(String::new, |p99| {
            format!(", and no more than {} for 99 % of them", latency(p99 as f64))
        });
        sentences.push(format!(
            "A broker that syncs before it acknowledges adds about {} to a durable \
             message{at_most}.",
            latency(median as f64)
        ));
    }
    sentences.push(format!(
        "About {} commits per second fit after one another. All messages that wait share the next \
         one, so that this is no limit on messages per second.",
        thousands(least.per_s.round() as u64)
    ));
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_measured_and_nothing_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let found = measure_disk(folder.path(), true, &|| false).expect("measures");
        let sizes: Vec<u64> = found.synced_writes.iter().map(|cell| cell.bytes).collect();
        assert_eq!(sizes, [4096, 65_536, 1 << 20]);
        for cell in &found.synced_writes {
            assert!(cell.count > 0 && cell.per_s > 0.0 && cell.max_us > 0, "{cell:?}");
            assert_eq!(cell.p99_us.is_some(), cell.count >= 1_000, "{cell:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("lists").count(), 0);
        let text = disk_text(&found);
        assert!(text.contains("64.0 KiB") && text.contains("commits per second"), "{text}");
    }

    #[test]
    fn a_place_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("writes");
        for path in [&file, &folder.path().join("nowhere")] {
            let error = measure_disk(path, true, &|| false).expect_err("no directory").to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
        let error = measure_disk(folder.path(), true, &|| true).expect_err("stopped");
        assert!(matches!(error, DiskError::Stopped), "{error}");
        assert_eq!(fs::read_dir(folder.path()).expect("lists").count(), 1, "nothing is left");
    }

    #[test]
    fn a_percentile_needs_samples_beyond_it() {
        let mut times = Histogram::<u64>::new_with_bounds(1, LONGEST_US, 3).expect("bounds");
        (1..=1_000).for_each(|us| times.saturating_record(us));
        let found = SyncedWrites::of(4096, &times, Duration::from_secs(2));
        assert_eq!((found.p50_us, found.p99_us, found.p999_us), (Some(500), Some(990), None));
        assert_eq!((found.per_s, found.max_us), (500.0, 1_000));
    }
}
