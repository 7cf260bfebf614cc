//! Results of runs, and medians over rounds.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// Results of one run of one case. A metric name ends with its unit.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    pub(super) case: String,
    pub(super) round: usize,
    /// The run's verdict, or `ok` where there is none.
    pub(super) verdict: String,
    /// Reasons of any other verdict.
    pub(super) reasons: Vec<String>,
    pub(super) metrics: BTreeMap<&'static str, f64>,
}

/// All metrics of runs, in table order.
pub(super) const METRICS: [&str; 56] = [
    "cpu_us_per_message",
    "cpu_us_per_delivery",
    "tps",
    "in_per_s",
    "out_per_s",
    "broker_cpu_percent",
    "generator_cpu_percent",
    "latency_us_mean",
    "latency_us_p50",
    "latency_us_p99",
    "latency_us_p999",
    "latency_us_max",
    "send_delay_us_p99",
    "sent",
    "received",
    "lost",
    "duplicates",
    "out_of_order",
    "rss_bytes_per_connection",
    "rss_bytes_per_subscribed",
    "rss_bytes_per_subscription",
    "burst_us_p50",
    "burst_us_max",
    "subscribe_s",
    "fdatasync_us_p50",
    "fdatasync_us_p99",
    "fdatasync_grown_us_p50",
    "fdatasync_grown_us_p99",
    "disk_bytes_per_payload_byte",
    "disk_bytes_per_message",
    "written_per_payload_byte",
    "zeroed_per_payload_byte",
    "written_bytes_per_message",
    "body_bytes_per_message",
    "restart_ms",
    "drained_per_s",
    "acknowledged_lost",
    "rss_bytes_full",
    "rss_bytes_restarted",
    "rss_bytes_per_partial_byte",
    "rss_bytes_left",
    "rss_bytes_before",
    "rss_bytes_after",
    "turn_us_max",
    "turn_cpu_us_max",
    "turn_units_max",
    "metrics_us_max",
    "logins_per_s",
    "login_us_p50",
    "login_us_p99",
    "cpu_us_per_login",
    "logins_undecided",
    "logins_misjudged",
    "storm_connected_ms_p99",
    "storm_served_ms_p99",
    "storm_attempts_failed",
];

/// Metrics with a table of their own, as few cases have them.
pub(super) const FURTHER: &[&str] = METRICS.split_at(24).1;

/// All samples of a session.
#[derive(Default)]
pub(super) struct Figures {
    samples: Vec<Sample>,
}

impl Sample {
    pub(super) fn new(case: &str, round: usize) -> Self {
        Self {
            case: case.to_owned(),
            round,
            verdict: "ok".to_owned(),
            reasons: Vec::new(),
            metrics: BTreeMap::new(),
        }
    }

    pub(super) fn set(&mut self, metric: &'static str, value: Option<f64>) {
        debug_assert!(METRICS.contains(&metric), "{metric} is not in the table");
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.metrics.insert(metric, value);
        }
    }

    /// One line for the terminal.
    pub(super) fn line(&self) -> String {
        let shown = [
            ("cpu_us_per_message", "us/msg"),
            ("tps", "TPS"),
            ("broker_cpu_percent", "% broker"),
            ("generator_cpu_percent", "% generator"),
            ("latency_us_p50", "us p50"),
            ("latency_us_p99", "us p99"),
            ("latency_us_max", "us worst"),
            ("turn_cpu_us_max", "us CPU of the longest turn"),
            ("lost", "lost"),
            ("rss_bytes_per_connection", "B/connection"),
            ("rss_bytes_per_subscribed", "B with a subscription"),
            ("rss_bytes_per_subscription", "B/subscription"),
            ("burst_us_max", "us to the last"),
            ("subscribe_s", "s to subscribe"),
            ("fdatasync_us_p50", "us p50 of a sync"),
            ("fdatasync_us_p99", "us p99 of a sync"),
            ("disk_bytes_per_payload_byte", "B on the disk per B"),
            ("written_per_payload_byte", "B written per B"),
            ("disk_bytes_per_message", "B on the disk per message"),
            ("body_bytes_per_message", "B of body per message"),
            ("restart_ms", "ms to serve again"),
            ("drained_per_s", "drained per s"),
            ("logins_per_s", "logins/s"),
            ("login_us_p50", "us p50 of a login"),
            ("login_us_p99", "us p99 of a login"),
            ("cpu_us_per_login", "us/login"),
            ("storm_connected_ms_p99", "ms to 99 % connected"),
        ];
        let mut line = format!("{:<26}", self.case);
        for (metric, unit) in shown {
            if let Some(value) = self.metrics.get(metric) {
                line.push_str(&format!(" {} {unit}", number(*value)));
            }
        }
        if self.verdict != "ok" {
            line.push_str(&format!(" [{}: {}]", self.verdict, self.reasons.join("; ")));
        }
        line
    }
}

impl Figures {
    pub(super) fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// Those of a record; `None` if it has none.
    pub(super) fn of_record(record: &Value) -> Option<Self> {
        let sample = |kept: &Value| {
            let text = |name: &str| Some(kept.get(name)?.as_str()?.to_owned());
            let kept_metrics = kept.get("metrics")?.as_object()?;
            let known =
                METRICS.iter().filter_map(|name| Some((*name, kept_metrics.get(*name)?.as_f64()?)));
            Some(Sample {
                case: text("case")?,
                round: usize::try_from(kept.get("round")?.as_u64()?).ok()?,
                verdict: text("verdict")?,
                reasons: Vec::new(),
                metrics: known.collect(),
            })
        };
        let samples = record.get("samples")?.as_array()?;
        Some(Self { samples: samples.iter().map(sample).collect::<Option<_>>()? })
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    pub(super) fn of<'a>(&'a self, case: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| sample.case == case)
    }

    /// The first case's figure over the second's, for each round in which both have it.
    pub(super) fn ratios(&self, case: &str, other: &str, metric: &str) -> Vec<f64> {
        let ratio = |sample: &Sample| {
            let pair = self.of(other).find(|paired| paired.round == sample.round)?;
            let (this, that) = (sample.metrics.get(metric)?, pair.metrics.get(metric)?);
            (*that != 0.0).then(|| this / that)
        };
        self.of(case).filter_map(ratio).collect()
    }

    /// The median over the rounds of a case.
    pub(super) fn median(&self, case: &str, metric: &str) -> Option<f64> {
        let values = self.of(case).filter_map(|sample| sample.metrics.get(metric).copied());
        median(values.collect())
    }

    /// The distinct verdicts of a case.
    pub(super) fn verdicts<'a>(&'a self, case: &'a str) -> Vec<&'a str> {
        let mut verdicts: Vec<&str> = self.of(case).map(|sample| sample.verdict.as_str()).collect();
        verdicts.sort_unstable();
        verdicts.dedup();
        verdicts
    }

    /// The bottleneck: a side that used its core up.
    pub(super) fn bottleneck(&self, case: &str) -> &'static str {
        let busy = |metric| self.median(case, metric).is_some_and(|percent| percent >= 95.0);
        match (busy("broker_cpu_percent"), busy("generator_cpu_percent")) {
            (true, true) => "both",
            (true, false) => "broker",
            (false, true) => "generator",
            (false, false) => "none",
        }
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => values.get(middle).copied(),
        _ => Some(f64::midpoint(*values.get(middle - 1)?, *values.get(middle)?)),
    }
}

/// A number with its significant digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => grouped(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ if value == 0.0 => "0".to_owned(),
        _ => format!("{value:.2}"),
    }
}

/// A whole number with commas.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_few_cases_begin_with_the_disk() {
        assert_eq!(FURTHER.first(), Some(&"fdatasync_us_p50"));
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        let cases = [
            (0.0, "0"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234567.0, "1,234,567"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
