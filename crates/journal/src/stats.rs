//! Counters and gauges of the journal. Most have one writer; reads are plain loads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that any thread may read at any time.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The current value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// A histogram of durations, in powers of two of a microsecond.
#[derive(Debug, Default)]
pub struct Latency {
    /// Bucket `i` counts durations below `2^i` us and not below half of it.
    buckets: [Counter; Self::BUCKETS],
    sum_us: Counter,
}

impl Latency {
    /// The last bucket also counts all longer durations, from 17 minutes on.
    pub const BUCKETS: usize = 32;

    pub(crate) fn record(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - us.leading_zeros()) as usize;
        // Invariant: the index is at most the last one.
        self.buckets[bucket.min(Self::BUCKETS - 1)].add(1);
        self.sum_us.add(us);
    }

    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }

    /// Their sum in microseconds.
    #[must_use]
    pub fn sum_us(&self) -> u64 {
        self.sum_us.get()
    }

    /// Each bucket: its upper bound in microseconds and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().enumerate().map(|(power, count)| (1 << power, count.get()))
    }

    /// The bound in microseconds that this share (0 to 1) of durations does not exceed, rounded up
    /// to a power of two.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> u64 {
        let rank = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (below, count) in self.buckets() {
            seen += count;
            if seen >= rank.max(1) {
                return below;
            }
        }
        0
    }
}

/// Counters since the journal was opened, and its current content.
#[derive(Debug, Default)]
pub struct Stats {
    /// Frames that are complete.
    pub commits: Counter,
    /// Records in them, including those moved by compaction.
    pub records: Counter,
    /// Bytes of these records.
    pub record_bytes: Counter,
    /// Records of transient messages, which were appended and not written.
    pub left_out_records: Counter,
    /// Bytes of these.
    pub left_out_bytes: Counter,
    /// Bytes of message bodies that were appended.
    pub body_bytes: Counter,
    /// Bytes written to the log: records, headers, padding to whole blocks, and frames written
    /// again after failures.
    pub written_bytes: Counter,
    /// Bytes of zeros written to prepare segments.
    pub zeroed_bytes: Counter,
    /// Durations of syncs.
    pub sync: Latency,
    /// From the cut of the buffers to the completion of the commit.
    pub commit: Latency,
    /// Syncs that failed.
    pub sync_errors: Counter,
    /// Writes that failed for another reason than a full disk.
    pub write_errors: Counter,
    /// Attempts to commit or to prepare a segment that found the disk full.
    pub full_errors: Counter,
    /// Frames that were complete as written and could not be saved from a failing file.
    pub lost_frames: Counter,
    /// Times the backlog of a writer exceeded its limit.
    pub pressed: Counter,
    /// Backups that were made.
    pub backups: Counter,
    /// Backups that failed.
    pub backup_errors: Counter,
    /// Segments of the log.
    pub segments: Counter,
    /// Bytes of these segments.
    pub log_bytes: Counter,
    /// Segments that were freed since the journal was opened.
    pub freed_segments: Counter,
    /// Of these, how many became new segments without being zeroed.
    pub recycled_segments: Counter,
    /// Bytes of records that are live.
    pub live_bytes: Counter,
    /// Messages that are live.
    pub live_messages: Counter,
    /// Entries that are live.
    pub live_entries: Counter,
    /// Keys that are live.
    pub live_keys: Counter,
    /// Records that were moved to the newest end.
    pub relocated_records: Counter,
    /// Bytes of these.
    pub relocated_bytes: Counter,
    /// Live records that could not be moved because they are unreadable.
    pub lost_records: Counter,
    /// Segments quarantined because they are damaged.
    pub quarantined: Counter,
    /// Messages that were requested and could not be read.
    pub unreadable: Counter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_powers_of_two() {
        let latency = Latency::default();
        assert_eq!(latency.quantile_us(0.5), 0);
        for us in [0, 1, 3, 100, 100, 100, 100, 100, 100, u64::MAX] {
            latency.record(Duration::from_micros(us));
        }
        assert_eq!(latency.count(), 10);
        assert_eq!(latency.quantile_us(0.0), 1);
        assert_eq!(latency.quantile_us(0.5), 128);
        assert_eq!(latency.quantile_us(0.9), 128);
        assert_eq!(latency.quantile_us(1.0), 1 << 31);
    }
}
