//! Points of a run that was made, from the files in its directory.

use std::iter::Peekable;
use std::time::Duration;

use tacho_output::{Buckets, OutputAccount, Outputs};
use tacho_record::output::{GROUP_LOG, HlogError, LoggedHistogram, LoggedHistograms, group_tag};
use tacho_record::past::{Past, PastError, group_rows};
use tacho_record::{PartRow, RunKind, SeriesRow, Timestamp};

use super::{IntervalLatencies, LATENCIES, RunPoints};

/// Rows that are sent before the outputs are waited for.
const ROWS_PER_FLUSH: usize = 60;

/// An entry of a log.
type LogEntry = Result<LoggedHistogram, HlogError>;

/// Why the points of a run cannot be sent again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PastPointsError {
    /// It has no seconds of its own.
    #[error("{path} holds many runs: its figures are those of the runs in its folder 'steps'")]
    Campaign {
        /// The directory.
        path: String,
    },
    /// Its start cannot be read.
    #[error("{path}: its record has no time of its start ('{text}')")]
    Start {
        /// The directory.
        path: String,
        /// What stands there.
        text: String,
    },
    /// The seconds of its groups cannot be read.
    #[error(transparent)]
    Groups(#[from] PastError),
    /// Its histograms cannot be read.
    #[error(transparent)]
    Histograms(#[from] HlogError),
}

/// Sends the points of a single run to `outputs`, in the order of time, and returns what became of
/// them per target. Waits up to `patience` for each part of them.
///
/// # Errors
/// When it is not a single run, or a file is damaged.
pub fn send_again(
    past: &Past,
    outputs: &Outputs,
    patience: Duration,
) -> Result<Vec<OutputAccount>, PastPointsError> {
    let record = &past.data.record;
    let path = past.directory().path();
    let shown = || path.display().to_string();
    if record.kind != RunKind::Run {
        return Err(PastPointsError::Campaign { path: shown() });
    }
    let started = Timestamp::parse(&record.started_at)
        .ok_or_else(|| PastPointsError::Start { path: shown(), text: record.started_at.clone() })?;
    let log = LoggedHistograms::read(&path.join("latency.hlog"))?;
    let mut logged = log.iter().peekable();
    let mut points = RunPoints::new(&record.name, path, &record.scenario, started);
    let mut items = vec![points.started()];
    let phases = record.phases.iter();
    items.extend(phases.map(|phase| points.phase(phase.start_s, phase.name.clone())));
    let mut accounts: Vec<OutputAccount> = Vec::new();
    let groups = group_rows(path)?.into_iter();
    let mut groups = groups.map(|group| (group.start_s, group.part())).peekable();
    let group_log = match groups.peek() {
        Some(_) => Some(LoggedHistograms::read(&path.join(GROUP_LOG))?),
        None => None,
    };
    let mut logged_groups = group_log.iter().flat_map(LoggedHistograms::iter).peekable();
    let brokers = past.data.brokers.iter();
    let mut brokers = brokers.map(|broker| (broker.start_s, broker.part.clone())).peekable();
    for rows in past.data.rows.chunks(ROWS_PER_FLUSH) {
        for row in rows {
            let mut parts = parts_of(&mut groups, row);
            let latencies = IntervalLatencies {
                all: latencies(&mut logged, row)?,
                groups: group_latencies(&mut logged_groups, row, parts.len())?,
            };
            parts.extend(parts_of(&mut brokers, row));
            items.extend(points.second(row, latencies, &parts));
        }
        outputs.send(std::mem::take(&mut items));
        add(&mut accounts, outputs.flush(patience));
    }
    for rows in past.data.hosts.chunks(ROWS_PER_FLUSH) {
        outputs.send(rows.iter().map(|row| points.host(row)).collect());
        add(&mut accounts, outputs.flush(patience));
    }
    outputs.send(points.ended(record));
    add(&mut accounts, outputs.end_series(patience));
    Ok(accounts)
}

fn add(accounts: &mut Vec<OutputAccount>, later: Vec<OutputAccount>) {
    match &mut accounts[..] {
        [] => *accounts = later,
        known => known.iter_mut().zip(&later).for_each(|(known, later)| known.add(later)),
    }
}

/// The latencies of a row, of all clients.
fn latencies(
    logged: &mut Peekable<impl Iterator<Item = LogEntry>>,
    row: &SeriesRow,
) -> Result<Vec<(&'static str, Buckets)>, HlogError> {
    let own = histograms(logged, row)?;
    let named = own.iter().filter_map(|one| {
        let (name, _) = LATENCIES.iter().find(|(_, tag)| *tag == one.tag)?;
        Some((*name, Buckets::of(&one.histogram)))
    });
    Ok(named.collect())
}

/// The end-to-end latencies of a row, of each of so many groups.
fn group_latencies(
    logged: &mut Peekable<impl Iterator<Item = LogEntry>>,
    row: &SeriesRow,
    groups: usize,
) -> Result<Vec<Buckets>, HlogError> {
    let own = histograms(logged, row)?;
    let of = |position| own.iter().find(|one| one.tag == group_tag(position));
    let buckets =
        |position| of(position).map_or_else(Buckets::default, |one| Buckets::of(&one.histogram));
    Ok((0..groups).map(buckets).collect())
}

/// Takes the parts of a row from those of all rows, each with the start of its row in seconds. A
/// name that comes back belongs to the next row: two rows may begin in one millisecond.
fn parts_of(
    parts: &mut Peekable<impl Iterator<Item = (f64, PartRow)>>,
    row: &SeriesRow,
) -> Vec<PartRow> {
    let mut own: Vec<PartRow> = Vec::new();
    while let Some((_, part)) = parts.next_if(|(start_s, part)| {
        ms(*start_s) <= ms(row.start_s) && own.iter().all(|one| one.name != part.name)
    }) {
        own.push(part);
    }
    own
}

/// Takes the histograms of a row, which follow each other in the log. The log leaves out empty
/// ones: two rows of one millisecond are told apart by their lengths, or by a name that comes back.
fn histograms(
    logged: &mut Peekable<impl Iterator<Item = LogEntry>>,
    row: &SeriesRow,
) -> Result<Vec<LoggedHistogram>, HlogError> {
    let due_ms = u128::from(ms(row.start_s));
    let length_ms = u128::from(ms(row.length_s));
    let mut own: Vec<LoggedHistogram> = Vec::new();
    while let Some(next) = logged.next_if(|next| match next {
        Ok(next) if next.start.as_millis() == due_ms => {
            next.length.as_millis() == length_ms && own.iter().all(|one| one.tag != next.tag)
        }
        Ok(next) => next.start.as_millis() < due_ms,
        Err(_) => true,
    }) {
        let next = next?;
        if next.start.as_millis() == due_ms {
            own.push(next);
        }
    }
    Ok(own)
}

/// All files have times to the millisecond.
fn ms(start_s: f64) -> u64 {
    (start_s * 1e3).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use tacho_load::events::histogram;

    use super::*;

    fn rows() -> [SeriesRow; 2] {
        [(2.6071, 0.0003), (2.6074, 0.5)].map(|(start_s, length_s)| SeriesRow {
            start_s,
            length_s,
            ..SeriesRow::default()
        })
    }

    #[test]
    fn rows_of_one_millisecond_have_their_own_parts() {
        let rows = rows();
        let part = |row: &SeriesRow, name: &str| {
            (row.start_s, PartRow { name: name.to_owned(), ..PartRow::default() })
        };
        let names = ["a", "b"];
        let parts = rows.iter().flat_map(|row| names.map(|name| part(row, name)));
        let mut parts = parts.peekable();
        for row in &rows {
            let own = parts_of(&mut parts, row);
            let own: Vec<_> = own.iter().map(|part| part.name.as_str()).collect();
            assert_eq!(own, names);
        }
    }

    #[test]
    fn rows_of_one_millisecond_have_their_own_latencies() {
        let rows = rows();
        // As in the file, which has milliseconds and no empty histograms.
        let entry = |row: &SeriesRow, tag: &str, value| {
            let mut values = histogram();
            values.record(value).expect("grows");
            Ok(LoggedHistogram {
                tag: tag.to_owned(),
                start: Duration::from_millis(ms(row.start_s)),
                length: Duration::from_millis(ms(row.length_s)),
                histogram: values,
            })
        };
        let taken = |entries: Vec<LogEntry>| {
            let mut logged = entries.into_iter().peekable();
            rows.each_ref().map(|row| {
                let own = histograms(&mut logged, row).expect("a log");
                own.iter().map(|one| (one.tag.clone(), one.histogram.max())).collect::<Vec<_>>()
            })
        };
        let e2e = |value| ("e2e".to_owned(), value);
        let both = taken(vec![entry(&rows[0], "e2e", 1), entry(&rows[1], "e2e", 2)]);
        assert_eq!(both, [vec![e2e(1)], vec![e2e(2)]]);
        let later = taken(vec![entry(&rows[1], "e2e", 2)]);
        assert_eq!(later, [vec![], vec![e2e(2)]]);
    }
}
