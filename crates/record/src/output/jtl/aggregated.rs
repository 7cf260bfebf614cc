//! `results-aggregated.jtl`: a row stands for all samples of one label, one outcome and one second.
//!
//! `SampleCount` is their number and `elapsed` the sum of their times, by which JMeter's listeners
//! divide. Its dashboard generator ignores the column: it needs [`SampleRows`](super::SampleRows).

use std::io::{self, Write};

use tacho_load::{Histogram, IntervalSnapshot};

use super::{CONNECT, KINDS, Kind, payload_bytes};

/// Columns in the order in which JMeter writes them.
const COLUMNS: [&str; 19] = [
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
    "SampleCount",
    "ErrorCount",
    "IdleTime",
    "Connect",
];

/// Writes the file.
#[derive(Debug)]
pub struct AggregatedWriter<W: Write> {
    out: csv::Writer<W>,
    /// Unix time of the run's start.
    started_ms: u64,
    url: String,
    /// Every publication is acknowledged: those count. At QoS 0, those written.
    acknowledged: bool,
}

/// Samples of one kind.
struct Samples<'a> {
    kind: Kind,
    count: u64,
    /// Their times in microseconds, where there are any.
    times: &'a Histogram,
    bytes: u64,
    sent_bytes: u64,
}

impl<W: Write> AggregatedWriter<W> {
    /// Begins with the head line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(out: W, started_ms: u64, url: &str, acknowledged: bool) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(COLUMNS)?;
        Ok(Self { out, started_ms, url: url.to_owned(), acknowledged })
    }

    /// Appends an interval that began `start_s` after the run's start.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, start_s: f64, interval: &IntervalSnapshot) -> io::Result<()> {
        let counters = &interval.counters;
        let (connect, subscribe) = (&interval.connect, &interval.subscribe);
        let published = if self.acknowledged { counters.acked } else { counters.sent };
        let counts_and_times = [
            (connect.ok, &connect.ok_us),
            (connect.failed, &connect.failed_us),
            (published, &interval.ack),
            (interval.ack_failed.len(), &interval.ack_failed),
            (counters.received, &interval.e2e),
            (subscribe.failed, &subscribe.failed_us),
        ];
        let sent_bytes = published * payload_bytes(counters.payload_bytes_out, counters.sent);
        let bytes = [(0, 0), (0, 0), (0, sent_bytes), (0, 0), (counters.payload_bytes_in, 0)];
        let bytes = bytes.into_iter().chain([(0, 0)]);
        let at_ms = self.started_ms + (start_s * 1e3) as u64;
        for ((kind, (count, times)), (bytes, sent_bytes)) in
            KINDS.into_iter().zip(counts_and_times).zip(bytes)
        {
            if count > 0 {
                let samples = Samples { kind, count, times, bytes, sent_bytes };
                self.line(at_ms, interval.connected, &samples)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, at_ms: u64, connected: u64, samples: &Samples<'_>) -> io::Result<()> {
        let Samples { kind, count, times, bytes, sent_bytes } = samples;
        let mean_ms = if times.is_empty() { 0.0 } else { times.mean() / 1e3 };
        let elapsed_ms = (mean_ms * *count as f64).round() as u64;
        let errors = if kind.success { 0 } else { *count };
        let connected = connected.to_string();
        let connect_ms = if kind.label == CONNECT { elapsed_ms } else { 0 };
        self.out.write_record([
            at_ms.to_string().as_str(),
            elapsed_ms.to_string().as_str(),
            kind.label,
            kind.code,
            kind.message,
            "tacho 1-1",
            "text",
            if kind.success { "true" } else { "false" },
            kind.failure(),
            bytes.to_string().as_str(),
            sent_bytes.to_string().as_str(),
            &connected,
            &connected,
            &self.url,
            "0",
            count.to_string().as_str(),
            errors.to_string().as_str(),
            "0",
            connect_ms.to_string().as_str(),
        ])?;
        Ok(())
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// When the rest cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing::interval;
    use super::super::{PUBLISH, SUBSCRIBE};
    use super::*;

    fn lines(acknowledged: bool) -> Vec<BTreeMap<String, String>> {
        let mut bytes = Vec::new();
        let url = "mqtt://127.0.0.1:1883";
        let mut jtl =
            AggregatedWriter::new(&mut bytes, 1_000_000, url, acknowledged).expect("begins");
        jtl.write(1.5, &interval()).expect("writes");
        jtl.flush().expect("flushes");
        drop(jtl);
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        reader.deserialize().collect::<Result<_, _>>().expect("lines with a head")
    }

    #[test]
    fn a_line_stands_for_all_samples_of_a_second() {
        let lines = lines(true);
        let shown: Vec<_> = lines
            .iter()
            .map(|line| {
                let cell = |name: &str| line[name].as_str();
                (cell("label"), cell("success"), cell("SampleCount"), cell("elapsed"))
            })
            .collect();
        assert_eq!(
            shown,
            [
                (CONNECT, "true", "3", "12"),
                (CONNECT, "false", "2", "10"),
                (PUBLISH, "true", "90", "44"),
                (SUBSCRIBE, "true", "80", "160"),
            ]
        );
        for line in &lines {
            assert_eq!(line["timeStamp"], "1001500");
            assert_eq!(line["allThreads"], "20");
            let errors = if line["success"] == "true" { "0" } else { &line["SampleCount"] };
            assert_eq!(line["ErrorCount"], *errors);
        }
        assert_eq!(lines[1]["responseCode"], "501");
        // Payloads of 128 bytes, not what was on the wire.
        assert_eq!(
            (lines[2]["sentBytes"].as_str(), lines[3]["bytes"].as_str()),
            ("11520", "10240")
        );
    }

    #[test]
    fn without_acknowledgements_what_was_written_counts() {
        assert_eq!(lines(false)[2]["SampleCount"], "100");
    }
}
