//! The files for JMeter: `results.jtl`, a row per sample, and `results-aggregated.jtl`, a row per
//! label, outcome and second.

mod aggregated;
mod rows;

pub use aggregated::AggregatedWriter;
pub use rows::{SAMPLE_ROWS_MAX, SampleRows, Thinned};

use tacho_load::{IntervalSnapshot, PhaseKind};

/// A kind of sample: the label of JMeter's MQTT sampler, and the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    label: &'static str,
    code: &'static str,
    message: &'static str,
    success: bool,
}

const CONNECT: &str = "MQTT Connect";
const PUBLISH: &str = "MQTT Pub Sampler";
const SUBSCRIBE: &str = "MQTT Sub Sampler";

/// All of them; the functions below name their places.
const KINDS: [Kind; 6] = [
    Kind::good(CONNECT),
    Kind::failed(CONNECT, "Failed to connect"),
    Kind::good(PUBLISH),
    Kind::failed(PUBLISH, "Publish failed"),
    Kind::good(SUBSCRIBE),
    Kind::failed(SUBSCRIBE, "Subscribe failed"),
];

impl Kind {
    const fn good(label: &'static str) -> Self {
        Self { label, code: "200", message: "OK", success: true }
    }

    const fn failed(label: &'static str, message: &'static str) -> Self {
        Self { label, code: "501", message, success: false }
    }

    /// What JMeter writes into the column `failureMessage`.
    const fn failure(&self) -> &'static str {
        if self.success { "" } else { self.message }
    }
}

/// The mean payload of a message in bytes: what the samplers count as sent and received.
fn payload_bytes(total: u64, messages: u64) -> u64 {
    (total + messages / 2).checked_div(messages).unwrap_or(0)
}

/// Whether latencies of the interval belong to a measured window.
fn is_measured(interval: &IntervalSnapshot) -> bool {
    matches!(interval.phase, PhaseKind::Measure | PhaseKind::Resume | PhaseKind::Drain)
}

/// What the tests of both files write.
#[cfg(test)]
mod testing {
    use tacho_load::{Counters, Histogram, IntervalSnapshot, Outcomes, PhaseKind};

    pub(super) fn times(value_us: u64, count: u64) -> Histogram {
        let mut histogram = Histogram::new(3).expect("three digits");
        histogram.record_n(value_us, count).expect("grows");
        histogram
    }

    /// A second with 90 acknowledgements of 0.49 ms, 80 receptions of 2 ms and 5 connects.
    pub(super) fn interval() -> IntervalSnapshot {
        IntervalSnapshot {
            phase: PhaseKind::Measure,
            phase_index: 4,
            start_ns: 0,
            len_ns: 1_000_000_000,
            connected: 20,
            counters: Counters {
                sent: 100,
                acked: 90,
                received: 80,
                payload_bytes_out: 12_800,
                payload_bytes_in: 10_240,
                ..Counters::default()
            },
            e2e: times(2_000, 80),
            service: times(1_000, 80),
            send_delay: times(10, 100),
            ack: times(490, 90),
            ack_failed: times(0, 0),
            connect: Outcomes {
                ok: 3,
                ok_us: times(4_000, 3),
                failed: 2,
                failed_us: times(5_000, 2),
            },
            subscribe: Outcomes { ok: 5, ..Outcomes::default() },
            logins: None,
            bytes_in: 12_000,
            bytes_out: 15_000,
            rtt: times(80, 1),
            groups: Vec::new(),
            targets: Vec::new(),
            threads: Vec::new(),
            shares: Vec::new(),
            actions: Vec::new(),
        }
    }
}
