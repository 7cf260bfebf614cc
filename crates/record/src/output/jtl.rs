//! `results.jtl`: the format of JMeter's listeners.
//!
//! JMeter writes a line per sample. At our rates that would be gigabytes, so a line stands for all
//! samples of one label, one outcome and one second, as JMeter's own statistical samples do:
//! `SampleCount` says how many, and `elapsed` is the sum of theirs, by which JMeter divides.

use std::io::{self, Write};

use tacho_load::{Histogram, IntervalSnapshot};

/// Labels of JMeter's MQTT samplers.
const CONNECT: &str = "MQTT Connect";
const PUBLISH: &str = "MQTT Pub Sampler";
const SUBSCRIBE: &str = "MQTT Sub Sampler";

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
pub struct JtlWriter<W: Write> {
    out: csv::Writer<W>,
    /// Unix time of the run's start.
    started_ms: u64,
    url: String,
    /// Every publication is acknowledged: those count. At QoS 0, those written.
    acknowledged: bool,
}

/// Samples of one label and one outcome.
struct Samples<'a> {
    label: &'a str,
    failure: Option<(&'a str, &'a str)>,
    count: u64,
    /// Their times in microseconds, where there are any.
    times: Option<&'a Histogram>,
    bytes: u64,
    sent_bytes: u64,
}

impl<W: Write> JtlWriter<W> {
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
        let plain = |label, count, times| Samples {
            label,
            failure: None,
            count,
            times: Some(times),
            bytes: 0,
            sent_bytes: 0,
        };
        let failed = |label, code, words, count, times| Samples {
            failure: Some((code, words)),
            ..plain(label, count, times)
        };
        let samples = [
            plain(CONNECT, connect.ok, &connect.ok_us),
            failed(CONNECT, "501", "Failed to connect", connect.failed, &connect.failed_us),
            Samples { sent_bytes: interval.bytes_out, ..plain(PUBLISH, published, &interval.ack) },
            failed(
                PUBLISH,
                "501",
                "Publish failed",
                interval.ack_failed.len(),
                &interval.ack_failed,
            ),
            Samples {
                bytes: interval.bytes_in,
                ..plain(SUBSCRIBE, counters.received, &interval.e2e)
            },
            failed(SUBSCRIBE, "501", "Subscribe failed", subscribe.failed, &subscribe.failed_us),
        ];
        let at_ms = self.started_ms + (start_s * 1e3) as u64;
        for samples in samples.iter().filter(|samples| samples.count > 0) {
            self.line(at_ms, interval.connected, samples)?;
        }
        Ok(())
    }

    fn line(&mut self, at_ms: u64, connected: u64, samples: &Samples<'_>) -> io::Result<()> {
        let any = samples.times.filter(|times| !times.is_empty());
        let mean_ms = any.map_or(0.0, |times| times.mean() / 1e3);
        let elapsed_ms = (mean_ms * samples.count as f64).round() as u64;
        let (code, message) = samples.failure.unwrap_or(("200", "OK"));
        let good = samples.failure.is_none();
        let errors = if good { 0 } else { samples.count };
        let connected = connected.to_string();
        let connect_ms = if samples.label == CONNECT { elapsed_ms } else { 0 };
        self.out.write_record([
            at_ms.to_string().as_str(),
            elapsed_ms.to_string().as_str(),
            samples.label,
            code,
            message,
            "tacho 1-1",
            "text",
            if good { "true" } else { "false" },
            if good { "" } else { message },
            samples.bytes.to_string().as_str(),
            samples.sent_bytes.to_string().as_str(),
            &connected,
            &connected,
            &self.url,
            "0",
            samples.count.to_string().as_str(),
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

    use tacho_load::{Counters, Outcomes, PhaseKind};

    use super::*;

    fn times(value_us: u64, count: u64) -> Histogram {
        let mut histogram = Histogram::new(3).expect("three digits");
        histogram.record_n(value_us, count).expect("grows");
        histogram
    }

    fn interval() -> IntervalSnapshot {
        IntervalSnapshot {
            phase: PhaseKind::Measure,
            phase_index: 4,
            start_ns: 0,
            len_ns: 1_000_000_000,
            connected: 20,
            counters: Counters { sent: 100, acked: 90, received: 80, ..Counters::default() },
            e2e: times(2_000, 80),
            service: times(1_000, 80),
            send_delay: times(10, 100),
            ack: times(500, 90),
            ack_failed: times(0, 0),
            connect: Outcomes { ok: 3, ok_us: times(4_000, 3), failed: 2, ..Outcomes::default() },
            subscribe: Outcomes { ok: 5, ..Outcomes::default() },
            bytes_in: 8_000,
            bytes_out: 10_000,
            rtt: times(80, 1),
            groups: Vec::new(),
            targets: Vec::new(),
            threads: Vec::new(),
            actions: Vec::new(),
        }
    }

    fn lines(acknowledged: bool) -> Vec<BTreeMap<String, String>> {
        let mut bytes = Vec::new();
        let url = "mqtt://127.0.0.1:1883";
        let mut jtl = JtlWriter::new(&mut bytes, 1_000_000, url, acknowledged).expect("begins");
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
                (CONNECT, "false", "2", "0"),
                (PUBLISH, "true", "90", "45"),
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
        assert_eq!((lines[2]["sentBytes"].as_str(), lines[3]["bytes"].as_str()), ("10000", "8000"));
    }

    #[test]
    fn without_acknowledgements_what_was_written_counts() {
        assert_eq!(lines(false)[2]["SampleCount"], "100");
    }
}
