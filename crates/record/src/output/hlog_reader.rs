//! `latency.hlog`, read back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

/// A larger file is none of ours.
const BYTES_MAX: u64 = 1 << 30;

/// A log of histograms that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HlogError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It does not have the format of its name.
    #[error("{} is damaged at its entry {entry}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which entry, counted from 1.
        entry: usize,
        /// What is wrong.
        why: String,
    },
}

/// A histogram of an interval.
#[derive(Debug)]
pub struct LoggedHistogram {
    /// What it is of, such as `e2e`.
    pub tag: String,
    /// Start of the interval since the start of the log.
    pub start: Duration,
    /// Its length.
    pub length: Duration,
    /// Its values, in microseconds.
    pub histogram: Histogram<u64>,
}

/// The log of a run.
#[derive(Debug)]
pub struct LoggedHistograms {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl LoggedHistograms {
    /// Reads the file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> Result<Self, HlogError> {
        let read = || {
            if fs::metadata(path)?.len() > BYTES_MAX {
                return Err(std::io::Error::other("it is too large for one of ours"));
            }
            fs::read(path)
        };
        let bytes =
            read().map_err(|source| HlogError::Unreadable { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// Its histograms, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = Result<LoggedHistogram, HlogError>> {
        let damaged = |index: usize, why: String| HlogError::Damaged {
            path: self.path.clone(),
            entry: index + 1,
            why,
        };
        let mut deserializer = Deserializer::new();
        IntervalLogIterator::new(&self.bytes).enumerate().filter_map(move |(index, entry)| {
            let interval = match entry {
                Ok(LogEntry::Interval(interval)) => interval,
                Ok(_) => return None,
                Err(error) => return Some(Err(damaged(index, format!("{error:?}")))),
            };
            let decoded = STANDARD.decode(interval.encoded_histogram());
            let histogram = decoded.map_err(|error| error.to_string()).and_then(|bytes| {
                let read = deserializer.deserialize(&mut &bytes[..]);
                read.map_err(|error| error.to_string())
            });
            let tag = interval.tag().map_or(String::new(), |tag| tag.as_str().to_owned());
            let start = interval.start_timestamp();
            let length = interval.duration();
            Some(match histogram {
                Ok(histogram) => Ok(LoggedHistogram { tag, start, length, histogram }),
                Err(why) => Err(damaged(index, why)),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::HistogramLog;
    use super::*;
    use crate::timestamp::Timestamp;

    #[test]
    fn histograms_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("latency.hlog");
        assert!(matches!(LoggedHistograms::read(&path), Err(HlogError::Unreadable { .. })));
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        for value in [0, 100, 70_000] {
            histogram.record(value).expect("grows");
        }
        let mut bytes = Vec::new();
        let mut log = HistogramLog::new(&mut bytes, Timestamp::now()).expect("head");
        log.write("e2e", 1.5, 1.0, &histogram).expect("line");
        log.write("ack", 2.5, 1.0, &histogram).expect("line");
        drop(log);
        fs::write(&path, &bytes).expect("writes");
        let log = LoggedHistograms::read(&path).expect("reads");
        let all: Vec<LoggedHistogram> = log.iter().collect::<Result<_, _>>().expect("is whole");
        let shown: Vec<_> =
            all.iter().map(|one| (one.tag.as_str(), one.start.as_millis())).collect();
        assert_eq!(shown, [("e2e", 1_500), ("ack", 2_500)]);
        assert!(all.iter().all(|one| one.histogram == histogram));
        // The second one is cut.
        bytes.truncate(bytes.len() - 9);
        fs::write(&path, &bytes).expect("writes");
        let log = LoggedHistograms::read(&path).expect("reads");
        let damaged = log.iter().last().expect("two").expect_err("is damaged");
        assert!(matches!(damaged, HlogError::Damaged { .. }), "{damaged}");
    }
}
