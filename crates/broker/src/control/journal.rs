//! The metrics of the journal and its `$SYS` topics.

use tacho_journal::{Condition, Journal, Latency, Stats};

use super::exposition::{Exposition, Kind};

/// Microseconds in seconds.
const US: f64 = 1e-6;
/// Exported buckets of a histogram: up to about a second, in steps of two.
const BUCKETS: usize = 21;

/// All metrics of the journal. It only reads atomics.
pub(super) fn write(exposition: &mut Exposition, journal: &Journal) {
    let stats = journal.stats();
    for metric in &METRICS {
        let JournalMetric { name, help, kind, pick } = *metric;
        exposition.family(&format!("tacho_journal_{name}"), help, kind).sample(&[], pick(stats));
    }
    let help = "Condition of the journal: 0 fine, 1 at its size limit, 2 disk full, \
                3 disk failing, 4 data directory moved, removed or replaced.";
    let mut family = exposition.family("tacho_journal_condition", help, Kind::Gauge);
    family.sample(&[], number(journal.condition()));
    let help = "Duration of disk syncs.";
    histogram(exposition, "tacho_journal_sync_seconds", help, &stats.sync);
    let help = "Duration of commits.";
    histogram(exposition, "tacho_journal_commit_seconds", help, &stats.commit);
}

/// A counter or gauge of the journal.
struct JournalMetric {
    /// Behind `tacho_journal_`.
    name: &'static str,
    help: &'static str,
    kind: Kind,
    pick: fn(&Stats) -> u64,
}

const fn counter(name: &'static str, help: &'static str, pick: fn(&Stats) -> u64) -> JournalMetric {
    JournalMetric { name, help, kind: Kind::Counter, pick }
}

const fn gauge(name: &'static str, help: &'static str, pick: fn(&Stats) -> u64) -> JournalMetric {
    JournalMetric { name, help, kind: Kind::Gauge, pick }
}

const METRICS: [JournalMetric; 27] = [
    counter("commits_total", "Complete commits.", |s| s.commits.get()),
    counter("commit_records_total", "Records in complete commits, moved ones included.", |s| {
        s.records.get()
    }),
    counter("record_bytes_total", "Bytes of records in complete commits.", |s| {
        s.record_bytes.get()
    }),
    counter(
        "left_out_records_total",
        "Records not written because they were obsolete before their commit.",
        |s| s.left_out_records.get(),
    ),
    counter(
        "left_out_bytes_total",
        "Bytes of records not written because they were obsolete before their commit.",
        |s| s.left_out_bytes.get(),
    ),
    counter("body_bytes_total", "Bytes of messages appended.", |s| s.body_bytes.get()),
    counter("written_bytes_total", "Bytes written to the log.", |s| s.written_bytes.get()),
    counter("zeroed_bytes_total", "Bytes of zeros written to prepare segments.", |s| {
        s.zeroed_bytes.get()
    }),
    counter("sync_errors_total", "Failed syncs.", |s| s.sync_errors.get()),
    counter("write_errors_total", "Failed writes, except those that found the disk full.", |s| {
        s.write_errors.get()
    }),
    counter("full_errors_total", "Writes that found the disk full.", |s| s.full_errors.get()),
    counter("lost_frames_total", "Commits of the level `written` that a failing disk lost.", |s| {
        s.lost_frames.get()
    }),
    counter("pressed_total", "Times the write backlog exceeded its limit.", |s| s.pressed.get()),
    counter("backups_total", "Backups made.", |s| s.backups.get()),
    counter("backup_errors_total", "Backups that failed.", |s| s.backup_errors.get()),
    gauge("segments", "Segments of the log.", |s| s.segments.get()),
    gauge("log_bytes", "Bytes of the segments of the log.", |s| s.log_bytes.get()),
    counter("freed_segments_total", "Segments freed.", |s| s.freed_segments.get()),
    gauge("live_bytes", "Bytes of live records in the log.", |s| s.live_bytes.get()),
    gauge("live_messages", "Live messages in the log.", |s| s.live_messages.get()),
    gauge("live_entries", "Live queue entries in the log.", |s| s.live_entries.get()),
    gauge("live_keys", "Live keys in the log.", |s| s.live_keys.get()),
    counter("relocated_records_total", "Live records moved to free old segments.", |s| {
        s.relocated_records.get()
    }),
    counter("relocated_bytes_total", "Bytes of live records moved to free old segments.", |s| {
        s.relocated_bytes.get()
    }),
    counter("lost_records_total", "Live records lost because the disk could not read them.", |s| {
        s.lost_records.get()
    }),
    counter("quarantined_total", "Damaged segments put in quarantine.", |s| s.quarantined.get()),
    counter("unreadable_total", "Message reads that failed.", |s| s.unreadable.get()),
];

fn histogram(exposition: &mut Exposition, name: &str, help: &str, latency: &Latency) {
    let (bounds, counts): (Vec<u64>, Vec<u64>) = latency.buckets().unzip();
    let (shown, longer) = counts.split_at(BUCKETS.min(counts.len()));
    let buckets: Vec<u64> = shown.iter().copied().chain([longer.iter().sum()]).collect();
    let mut family = exposition.family(name, help, Kind::Histogram);
    family.histogram(&[], &bounds[..shown.len()], &buckets, latency.sum_us(), Some(US));
}

/// `$SYS` topics behind their prefix, and their payloads.
pub(super) fn sys_values(journal: &Journal) -> [(&'static str, String); 5] {
    let stats = journal.stats();
    [
        ("journal/commits", stats.commits.get().to_string()),
        ("journal/bytes", stats.log_bytes.get().to_string()),
        ("journal/live/bytes", stats.live_bytes.get().to_string()),
        ("journal/live/messages", stats.live_messages.get().to_string()),
        ("journal/condition", condition_name(journal.condition()).to_owned()),
    ]
}

/// A condition in a word.
pub(super) const fn condition_name(condition: Condition) -> &'static str {
    match condition {
        Condition::Fine => "fine",
        Condition::Limited => "limited",
        Condition::Full => "full",
        Condition::Failing => "failing",
        Condition::Displaced => "displaced",
    }
}

const fn number(condition: Condition) -> u64 {
    match condition {
        Condition::Fine => 0,
        Condition::Limited => 1,
        Condition::Full => 2,
        Condition::Failing => 3,
        Condition::Displaced => 4,
    }
}
