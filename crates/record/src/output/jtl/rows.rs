//! `results.jtl`: a row per sample, as JMeter's dashboard generator needs it.
//!
//! The generator counts rows and takes `elapsed` as the time of one sample, whatever `SampleCount`
//! says. A row's time is a value of the interval's histogram. JMeter has whole milliseconds: a row
//! is rounded up or down, in proportion, so that means are those of the microseconds.
//!
//! The file is bounded. Where there are more samples than rows it keeps one of two, four, eight ...
//! of each kind, evenly over time and over latencies, and every row says so.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use tacho_load::{Histogram, IntervalSnapshot, PhaseKind};

use super::{CONNECT, KINDS, Kind, is_measured, payload_bytes};

/// Rows of one file at most: some 11 MB.
pub const SAMPLE_ROWS_MAX: u64 = 100_000;

/// Columns in the order in which JMeter writes them.
const COLUMNS: [&str; 17] = [
    "timeStamp",
    "elapsed",
    "label",
    "responseCode",
    "responseMessage",
    "threadName",
    "dataType",
    "success",
    "failureMessage",
    "bytes",
    "sentBytes",
    "grpThreads",
    "allThreads",
    "URL",
    "Latency",
    "IdleTime",
    "Connect",
];

/// Places in [`COLUMNS`] that thinning reads.
const LABEL: usize = 2;
const MESSAGE: usize = 4;
const SUCCESS: usize = 7;

/// Steps of two sequences whose terms, taken modulo 2^64, are spread evenly, and remain so when
/// every second term is left out: the fractions of the golden ratio and of the root of two.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const ROOT_OF_TWO: u64 = 0x6A09_E667_F3BC_C909;

/// The file holds a part of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thinned {
    /// There is a row for one of so many samples.
    pub one_in: u64,
    /// All samples.
    pub of: u64,
}

/// Writes the file.
#[derive(Debug)]
pub struct SampleRows {
    path: PathBuf,
    out: csv::Writer<BufWriter<File>>,
    rows: u64,
    rows_max: u64,
    one_in: u64,
    /// Samples so far, by kind.
    seen: [u64; KINDS.len()],
    /// Unix time of the run's start.
    started_ms: u64,
    url: String,
    /// Every publication is acknowledged: those count. At QoS 0, those written.
    acknowledged: bool,
    /// Seconds that will be measured in all.
    measured_s: f64,
    /// The most rows of a second of the warm-up.
    warm_per_s: f64,
    is_planned: bool,
}

/// Where and when samples of one kind were taken.
struct Place {
    start_ms: u64,
    len_ms: u64,
    /// They ended in the drain: each within its own time after the start.
    is_drain: bool,
    connected: u64,
    bytes: u64,
    sent_bytes: u64,
}

impl SampleRows {
    /// Begins `path` with the head line, for a run that measures for `measured_s` and began at
    /// `started_ms` of Unix time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(
        path: &Path,
        started_ms: u64,
        url: &str,
        acknowledged: bool,
        measured_s: f64,
    ) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(BufWriter::new(File::create(path)?));
        out.write_record(COLUMNS)?;
        Ok(Self {
            path: path.to_owned(),
            out,
            rows: 0,
            rows_max: SAMPLE_ROWS_MAX,
            one_in: 1,
            seen: [0; KINDS.len()],
            started_ms,
            url: url.to_owned(),
            acknowledged,
            measured_s,
            warm_per_s: 0.0,
            is_planned: false,
        })
    }

    /// Appends the samples of an interval that began `start_s` after the run's start: connects and
    /// failed subscriptions always, messages where they belong to a measured window.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self, start_s: f64, interval: &IntervalSnapshot) -> io::Result<()> {
        self.plan(interval);
        // Without a warm-up a first second may have many times as many samples as there are rows.
        while self.rows + self.samples(interval) / self.one_in > self.rows_max {
            self.thin()?;
        }
        let counters = &interval.counters;
        let place = |bytes, sent_bytes| Place {
            start_ms: self.started_ms + (start_s * 1e3) as u64,
            len_ms: interval.len_ns / 1_000_000,
            is_drain: interval.phase == PhaseKind::Drain,
            connected: interval.connected,
            bytes,
            sent_bytes,
        };
        let in_bytes = payload_bytes(counters.payload_bytes_in, counters.received);
        let out_bytes = payload_bytes(counters.payload_bytes_out, counters.sent);
        let (plain, out, into) = (place(0, 0), place(0, out_bytes), place(in_bytes, 0));
        self.timed(0, &plain, &interval.connect.ok_us)?;
        self.timed(1, &plain, &interval.connect.failed_us)?;
        if is_measured(interval) {
            match self.acknowledged {
                true => self.timed(2, &out, &interval.ack)?,
                false => self.some(2, &out, interval.send_delay.len(), 0)?,
            }
            self.timed(3, &plain, &interval.ack_failed)?;
            self.timed(4, &into, &interval.e2e)?;
        }
        self.timed(5, &plain, &interval.subscribe.failed_us)?;
        while self.rows > self.rows_max {
            self.thin()?;
        }
        Ok(())
    }

    /// Decides before the first measured second, by the warm-up, how many samples have a row: to
    /// write rows and to take them back would be work at a bad time.
    fn plan(&mut self, interval: &IntervalSnapshot) {
        let len_s = interval.len_ns as f64 / 1e9;
        if interval.phase == PhaseKind::WarmUp && len_s > 0.5 {
            let rows = (self.published(interval).len() + interval.e2e.len()) as f64;
            self.warm_per_s = self.warm_per_s.max(rows / len_s);
        }
        if interval.phase == PhaseKind::Measure && !self.is_planned {
            self.is_planned = true;
            let wanted = self.warm_per_s * self.measured_s / self.rows_max as f64;
            if wanted > 1.0 {
                self.one_in = self.one_in.max((wanted.ceil() as u64).next_power_of_two());
            }
        }
    }

    /// How many samples `interval` has.
    fn samples(&self, interval: &IntervalSnapshot) -> u64 {
        let (connect, subscribe) = (&interval.connect, &interval.subscribe);
        let plain = connect.ok_us.len() + connect.failed_us.len() + subscribe.failed_us.len();
        if !is_measured(interval) {
            return plain;
        }
        plain + self.published(interval).len() + interval.ack_failed.len() + interval.e2e.len()
    }

    /// The times of what counts as published.
    const fn published<'i>(&self, interval: &'i IntervalSnapshot) -> &'i Histogram {
        if self.acknowledged { &interval.ack } else { &interval.send_delay }
    }

    /// Samples with these times.
    fn timed(&mut self, kind: usize, place: &Place, times: &Histogram) -> io::Result<()> {
        times.iter_recorded().try_for_each(|value| {
            let time_us = times.median_equivalent(value.value_iterated_to());
            self.some(kind, place, value.count_since_last_iteration(), time_us)
        })
    }

    /// `count` samples that took `time_us` each.
    fn some(&mut self, kind: usize, place: &Place, count: u64, time_us: u64) -> io::Result<()> {
        // Invariant: `kind` is a place in `KINDS`, and `seen` has as many.
        let end = self.seen[kind] + count;
        let mut index = self.seen[kind].next_multiple_of(self.one_in);
        while index < end {
            self.row(KINDS[kind], place, index, time_us)?;
            index += self.one_in;
        }
        self.seen[kind] = end;
        Ok(())
    }

    fn row(&mut self, kind: Kind, place: &Place, index: u64, time_us: u64) -> io::Result<()> {
        let elapsed_ms = (time_us + part(index.wrapping_mul(GOLDEN), 1000)) / 1000;
        let within_ms = match place.is_drain {
            true => place.len_ms.min(elapsed_ms),
            false => place.len_ms,
        };
        let end_ms = place.start_ms + part(index.wrapping_mul(ROOT_OF_TWO), within_ms);
        let elapsed = elapsed_ms.to_string();
        let connected = place.connected.to_string();
        let is_connect = kind.label == CONNECT;
        self.out.write_record([
            end_ms.saturating_sub(elapsed_ms).to_string().as_str(),
            &elapsed,
            kind.label,
            kind.code,
            &message(kind.message, self.one_in),
            "tacho 1-1",
            "text",
            if kind.success { "true" } else { "false" },
            kind.failure(),
            place.bytes.to_string().as_str(),
            place.sent_bytes.to_string().as_str(),
            &connected,
            &connected,
            &self.url,
            &elapsed,
            "0",
            if is_connect { &elapsed } else { "0" },
        ])?;
        self.rows += 1;
        Ok(())
    }

    /// Leaves out every second row of each kind.
    fn thin(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.one_in *= 2;
        let thinner = self.path.with_extension("jtl.part");
        let mut out = csv::Writer::from_writer(BufWriter::new(File::create(&thinner)?));
        let mut read = csv::Reader::from_path(&self.path)?;
        out.write_record(COLUMNS)?;
        let (mut of_kind, mut kept) = ([0_u64; KINDS.len()], 0);
        for row in read.records() {
            let row = row?;
            let is = |kind: &Kind| {
                row.get(LABEL) == Some(kind.label)
                    && (row.get(SUCCESS) == Some("true")) == kind.success
            };
            let Some(at) = KINDS.iter().position(is) else { continue };
            // Invariant: `of_kind` has a place for each of `KINDS`.
            of_kind[at] += 1;
            if of_kind[at] % 2 == 1 {
                let text = message(KINDS[at].message, self.one_in);
                let cells = row.iter().enumerate();
                out.write_record(
                    cells.map(|(at, cell)| if at == MESSAGE { &*text } else { cell }),
                )?;
                kept += 1;
            }
        }
        out.flush()?;
        drop(out);
        fs::rename(&thinner, &self.path)?;
        let file = OpenOptions::new().append(true).open(&self.path)?;
        self.out = csv::Writer::from_writer(BufWriter::new(file));
        self.rows = kept;
        Ok(())
    }

    /// Hands everything to the system. Whether samples were left out.
    ///
    /// # Errors
    /// When the rest cannot be written.
    pub fn finish(mut self) -> io::Result<Option<Thinned>> {
        self.out.flush()?;
        let (one_in, of) = (self.one_in, self.seen.iter().sum());
        Ok((one_in > 1).then_some(Thinned { one_in, of }))
    }
}

/// The fraction `of_2_64` of a whole, rounded down.
fn part(of_2_64: u64, whole: u64) -> u64 {
    ((u128::from(of_2_64) * u128::from(whole)) >> 64) as u64
}

/// What the response says, and how much of the samples the file holds.
fn message(text: &str, one_in: u64) -> String {
    match one_in {
        1 => text.to_owned(),
        many => format!("{text} (a row for 1 of {many} samples)"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tacho_load::{Counters, Outcomes};

    use super::super::testing::{interval, times};
    use super::super::{PUBLISH, SUBSCRIBE};
    use super::*;

    type Row = BTreeMap<String, String>;

    fn begin(place: &tempfile::TempDir, acknowledged: bool) -> SampleRows {
        let path = place.path().join("results.jtl");
        let url = "mqtt://127.0.0.1:1883";
        SampleRows::new(&path, 1_000_000, url, acknowledged, 10.0).expect("begins")
    }

    fn rows(place: &tempfile::TempDir) -> Vec<Row> {
        let mut reader = csv::Reader::from_path(place.path().join("results.jtl")).expect("opens");
        reader.deserialize().collect::<Result<_, _>>().expect("rows with a head")
    }

    fn of<'r>(rows: &'r [Row], label: &str) -> Vec<&'r Row> {
        rows.iter().filter(|row| row["label"] == label).collect()
    }

    fn number(row: &Row, column: &str) -> u64 {
        row[column].parse().expect("a number")
    }

    fn mean_ms(rows: &[&Row]) -> f64 {
        rows.iter().map(|row| number(row, "elapsed") as f64).sum::<f64>() / rows.len() as f64
    }

    fn messages(of_each: u64) -> IntervalSnapshot {
        IntervalSnapshot {
            counters: Counters { sent: of_each, received: of_each, ..Counters::default() },
            e2e: times(2_300, of_each),
            ack: times(490, of_each),
            connect: Outcomes::default(),
            ..interval()
        }
    }

    #[test]
    fn every_sample_has_a_row_and_the_mean_is_that_of_the_microseconds() {
        let place = tempfile::tempdir().expect("a directory");
        let mut file = begin(&place, true);
        file.write(1.5, &interval()).expect("writes");
        assert_eq!(file.finish().expect("ends"), None);
        let rows = rows(&place);
        let counts = [CONNECT, PUBLISH, SUBSCRIBE].map(|label| of(&rows, label).len());
        assert_eq!(counts, [5, 90, 80]);
        let published = of(&rows, PUBLISH);
        assert!((mean_ms(&published) - 0.49).abs() < 0.02, "{}", mean_ms(&published));
        assert!(published.iter().all(|row| number(row, "elapsed") <= 1));
        for row in &rows {
            let end_ms = number(row, "timeStamp") + number(row, "elapsed");
            assert!((1_001_500..1_002_500).contains(&end_ms), "{row:?}");
            assert!(!row.contains_key("SampleCount"), "one sample each");
        }
        assert_eq!((number(published[0], "sentBytes"), number(published[0], "bytes")), (128, 0));
        assert_eq!(number(of(&rows, SUBSCRIBE)[0], "bytes"), 128);
        assert_eq!(of(&rows, CONNECT).iter().filter(|row| row["success"] == "false").count(), 2);
    }

    #[test]
    fn warm_up_has_no_rows_of_messages_and_late_ones_end_early_in_the_drain() {
        let place = tempfile::tempdir().expect("a directory");
        let mut file = begin(&place, false);
        file.write(0.0, &IntervalSnapshot { phase: PhaseKind::WarmUp, ..interval() })
            .expect("writes");
        file.write(1.0, &IntervalSnapshot { phase: PhaseKind::Drain, ..messages(3) })
            .expect("writes");
        file.finish().expect("ends");
        let rows = rows(&place);
        let counts = [CONNECT, PUBLISH, SUBSCRIBE].map(|label| of(&rows, label).len());
        // Without acknowledgements, what was written counts.
        assert_eq!(counts, [5, 100, 3]);
        for row in of(&rows, SUBSCRIBE) {
            assert!(number(row, "timeStamp") + number(row, "elapsed") < 1_001_003, "{row:?}");
        }
        assert_eq!(mean_ms(&of(&rows, PUBLISH)), 0.0);
    }

    #[test]
    fn beyond_the_bound_an_even_part_is_kept_and_rows_say_so() {
        let place = tempfile::tempdir().expect("a directory");
        let mut file = begin(&place, true);
        file.rows_max = 1_000;
        for second in 0..4 {
            file.write(f64::from(second), &messages(1_000)).expect("writes");
        }
        let thinned = file.finish().expect("ends");
        assert_eq!(thinned, Some(Thinned { one_in: 8, of: 8_000 }));
        let rows = rows(&place);
        assert_eq!(rows.len(), 1_000);
        for (label, mean) in [(PUBLISH, 0.49), (SUBSCRIBE, 2.3)] {
            let rows = of(&rows, label);
            assert_eq!(rows.len(), 500);
            assert!((mean_ms(&rows) - mean).abs() < 0.02, "{label}: {}", mean_ms(&rows));
        }
        let second = |row: &Row| (number(row, "timeStamp") + number(row, "elapsed")) / 1_000;
        for expected in 1_000..1_004 {
            let here = rows.iter().filter(|row| second(row) == expected).count();
            assert_eq!(here, 250, "in second {expected}");
        }
        let says = |row: &Row| row["responseMessage"].ends_with("(a row for 1 of 8 samples)");
        assert!(rows.iter().all(says), "{:?}", rows[0]);
    }

    #[test]
    fn the_warm_up_tells_how_much_will_be_kept() {
        let place = tempfile::tempdir().expect("a directory");
        let mut file = begin(&place, true);
        file.rows_max = 2_000;
        let warm = IntervalSnapshot { phase: PhaseKind::WarmUp, ..messages(1_000) };
        file.write(0.0, &warm).expect("writes");
        // Ten seconds with 2,000 rows each.
        file.write(1.0, &messages(1_000)).expect("writes");
        assert_eq!((file.one_in, file.rows), (16, 126));
    }
}
