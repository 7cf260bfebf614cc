//! Files of histograms and samples that other tools read: `latency.hlog`, `*.hgrm`, `results.jtl`,
//! `results-aggregated.jtl`.

use std::fs::File;
use std::io::BufWriter;

use tacho_load::{Histogram, IntervalSnapshot, LoginKind, Totals};

use tacho_record::output::{
    AggregatedWriter, HistogramLog, OutputError, RunDirectory, SampleRows, Thinned,
};
use tacho_record::{Remark, Timestamp};

/// A histogram without values.
pub(super) fn empty() -> Histogram {
    // Invariant: 3 is within the 0..=5 that the constructor accepts.
    Histogram::new(3).expect("three significant digits are supported")
}

/// Writes them as the run goes on.
pub(super) struct FigureFiles<'d> {
    directory: &'d RunDirectory,
    log: HistogramLog<BufWriter<File>>,
    samples: SampleRows,
    aggregated: AggregatedWriter<BufWriter<File>>,
    /// Name and sum of all measured windows.
    measured: [(&'static str, Histogram); 4],
}

impl<'d> FigureFiles<'d> {
    /// Begins the files of a run against `url` that measures for `measured_s`; `acknowledged` when
    /// every publication is.
    pub(super) fn begin(
        directory: &'d RunDirectory,
        started: Timestamp,
        url: &str,
        acknowledged: bool,
        measured_s: f64,
    ) -> Result<Self, OutputError> {
        let started_ms = (started.seconds() * 1e3) as u64;
        Ok(Self {
            directory,
            log: directory.histograms(started)?,
            samples: directory.sample_rows(started_ms, url, acknowledged, measured_s)?,
            aggregated: directory.aggregated_samples(started_ms, url, acknowledged)?,
            measured: ["e2e", "service", "send_delay", "ack"].map(|name| (name, empty())),
        })
    }

    /// Takes one interval, which began `start_s` after the run.
    pub(super) fn interval(
        &mut self,
        start_s: f64,
        interval: &IntervalSnapshot,
    ) -> Result<(), OutputError> {
        let length_s = interval.len_ns as f64 / 1e9;
        let logins = interval.logins.as_deref();
        let login = logins.map(|logins| ("login", &logins.of(LoginKind::Right).accepted_us));
        let always = [
            ("e2e", &interval.e2e),
            ("service", &interval.service),
            ("send_delay", &interval.send_delay),
            ("ack", &interval.ack),
            ("connect", &interval.connect.ok_us),
            ("subscribe", &interval.subscribe.ok_us),
            ("rtt", &interval.rtt),
        ];
        for (tag, histogram) in always.into_iter().chain(login) {
            self.log
                .write(tag, start_s, length_s, histogram)
                .map_err(|source| self.directory.error("latency.hlog", source))?;
        }
        self.samples
            .write(start_s, interval)
            .map_err(|source| self.directory.error("results.jtl", source))?;
        self.aggregated
            .write(start_s, interval)
            .map_err(|source| self.directory.error("results-aggregated.jtl", source))
    }

    /// Takes one measured window.
    pub(super) fn measured(&mut self, totals: &Totals) {
        let windows = [&totals.e2e, &totals.service, &totals.send_delay, &totals.ack];
        for ((_, sum), window) in self.measured.iter_mut().zip(windows) {
            // Invariant: a histogram that grows by itself takes all values of another one.
            let added = sum.add(window);
            debug_assert!(added.is_ok(), "{added:?}");
        }
    }

    /// Ends all files. Whether samples have no row in `results.jtl`.
    pub(super) fn end(mut self) -> Result<Option<Remark>, OutputError> {
        self.log.flush().map_err(|source| self.directory.error("latency.hlog", source))?;
        let thinned = self.samples.finish();
        let thinned = thinned.map_err(|source| self.directory.error("results.jtl", source))?;
        self.aggregated
            .flush()
            .map_err(|source| self.directory.error("results-aggregated.jtl", source))?;
        for (name, histogram) in self.measured.iter().filter(|(_, sum)| !sum.is_empty()) {
            self.directory.write_percentiles(name, histogram)?;
        }
        Ok(thinned.map(|Thinned { one_in, of }| Remark::SamplesThinned { one_in, of }))
    }
}
