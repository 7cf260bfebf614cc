//! What `/metrics` and `$SYS` say of the journal, where there is one.

use tacho_journal::{Condition, Journal, Latency};

use super::exposition::{Exposition, Kind};

/// Microseconds as Prometheus wants them.
const US: f64 = 1e-6;
/// Buckets of a histogram that are shown: up to a good second, in steps of two.
const BUCKETS: usize = 21;

/// All figures of the journal. It only reads atomics.
pub(super) fn write(exposition: &mut Exposition, journal: &Journal) {
    let stats = journal.stats();
    let (counter, gauge) = (Kind::Counter, Kind::Gauge);
    for (name, help, kind, value) in [
        ("commits_total", "Commits complete.", counter, stats.commits.get()),
        (
            "commit_records_total",
            "Records in complete commits, those that were moved included.",
            counter,
            stats.records.get(),
        ),
        (
            "record_bytes_total",
            "Bytes of records in complete commits.",
            counter,
            stats.record_bytes.get(),
        ),
        (
            "left_out_records_total",
            "Records not written, as what they told of was over by then.",
            counter,
            stats.left_out_records.get(),
        ),
        ("left_out_bytes_total", "Bytes of these.", counter, stats.left_out_bytes.get()),
        ("body_bytes_total", "Bytes of messages appended.", counter, stats.body_bytes.get()),
        ("written_bytes_total", "Bytes written to the log.", counter, stats.written_bytes.get()),
        (
            "zeroed_bytes_total",
            "Bytes of zeros written to prepare segments.",
            counter,
            stats.zeroed_bytes.get(),
        ),
        ("sync_errors_total", "Syncs that failed.", counter, stats.sync_errors.get()),
        (
            "write_errors_total",
            "Writes that failed, but for those that found the disk full.",
            counter,
            stats.write_errors.get(),
        ),
        ("full_errors_total", "Writes that found the disk full.", counter, stats.full_errors.get()),
        (
            "lost_frames_total",
            "Commits of the level `written` that a failing disk lost.",
            counter,
            stats.lost_frames.get(),
        ),
        (
            "pressed_total",
            "Times that more waited to be written than should.",
            counter,
            stats.pressed.get(),
        ),
        ("segments", "Segments of the log now.", gauge, stats.segments.get()),
        ("log_bytes", "Bytes of the log's segments now.", gauge, stats.log_bytes.get()),
        ("freed_segments_total", "Segments given back.", counter, stats.freed_segments.get()),
        ("live_bytes", "Bytes of live records in the log now.", gauge, stats.live_bytes.get()),
        ("live_messages", "Messages in the log now.", gauge, stats.live_messages.get()),
        ("live_entries", "Places in queues in the log now.", gauge, stats.live_entries.get()),
        ("live_keys", "Keys in the log now.", gauge, stats.live_keys.get()),
        (
            "relocated_records_total",
            "Live records moved so that old segments get free.",
            counter,
            stats.relocated_records.get(),
        ),
        (
            "relocated_bytes_total",
            "Bytes of live records moved so.",
            counter,
            stats.relocated_bytes.get(),
        ),
        (
            "lost_records_total",
            "Live records lost because the disk does not let them be read.",
            counter,
            stats.lost_records.get(),
        ),
        (
            "quarantined_total",
            "Segments set aside because they are damaged.",
            counter,
            stats.quarantined.get(),
        ),
        (
            "unreadable_total",
            "Messages asked for that could not be read.",
            counter,
            stats.unreadable.get(),
        ),
        (
            "condition",
            "How the journal is doing: 0 fine, 1 at its limit, 2 disk full, 3 disk failing.",
            gauge,
            number(journal.condition()),
        ),
    ] {
        exposition.family(&format!("tacho_journal_{name}"), help, kind).sample(&[], value);
    }
    let help = "Time that the disk took to sync.";
    histogram(exposition, "tacho_journal_sync_seconds", help, &stats.sync);
    let help = "Time from the begin of a commit to its end.";
    histogram(exposition, "tacho_journal_commit_seconds", help, &stats.commit);
}

fn histogram(exposition: &mut Exposition, name: &str, help: &str, latency: &Latency) {
    let (bounds, counts): (Vec<u64>, Vec<u64>) = latency.buckets().unzip();
    let (shown, longer) = counts.split_at(BUCKETS.min(counts.len()));
    let buckets: Vec<u64> = shown.iter().copied().chain([longer.iter().sum()]).collect();
    let mut family = exposition.family(name, help, Kind::Histogram);
    family.histogram(&[], &bounds[..shown.len()], &buckets, latency.sum_us(), US);
}

/// As `$SYS` topics, behind their prefix.
pub(super) fn figures(journal: &Journal) -> [(&'static str, String); 5] {
    let stats = journal.stats();
    let condition = match journal.condition() {
        Condition::Fine => "fine",
        Condition::Limited => "limited",
        Condition::Full => "full",
        Condition::Failing => "failing",
    };
    [
        ("journal/commits", stats.commits.get().to_string()),
        ("journal/bytes", stats.log_bytes.get().to_string()),
        ("journal/live/bytes", stats.live_bytes.get().to_string()),
        ("journal/live/messages", stats.live_messages.get().to_string()),
        ("journal/condition", condition.to_owned()),
    ]
}

const fn number(condition: Condition) -> u64 {
    match condition {
        Condition::Fine => 0,
        Condition::Limited => 1,
        Condition::Full => 2,
        Condition::Failing => 3,
    }
}
