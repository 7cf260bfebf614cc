//! The text format of Prometheus, version 0.0.4.
//!
//! Client crates keep their own values in registries and write OpenMetrics; our values are in the
//! shards and only need to be printed.

use std::fmt::{Display, Write as _};

/// The media type of the format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A page being written.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a metric; its samples follow.
    pub(super) fn family(&mut self, name: &str, help: &str, kind: Kind) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let text = &mut self.text;
        text.push_str("# HELP ");
        text.push_str(name);
        text.push(' ');
        escape(help, text, false);
        let _ = write!(text, "\n# TYPE {name} {kind}\n");
        Family { name: name.to_owned(), text }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// One metric.
#[derive(Debug)]
pub(super) struct Family<'a> {
    name: String,
    text: &'a mut String,
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.line("", labels, value);
    }

    /// A histogram: counts per bucket, one bucket more than bounds, and the sum of all values.
    /// Bounds and sum are multiplied by `unit`.
    pub(super) fn histogram(
        &mut self,
        labels: &[(&str, &dyn Display)],
        bounds: &[u64],
        buckets: &[u64],
        sum: u64,
        unit: f64,
    ) {
        let bounds = bounds.iter().map(|bound| (*bound as f64 * unit).to_string());
        let mut count = 0;
        for (bound, bucket) in bounds.chain(["+Inf".to_owned()]).zip(buckets) {
            count += bucket;
            let labels: Vec<_> = labels.iter().copied().chain([("le", &bound as _)]).collect();
            self.line("_bucket", &labels, count);
        }
        self.line("_sum", labels, sum as f64 * unit);
        self.line("_count", labels, count);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"", if at == 0 { '{' } else { ',' });
            escape(&value.to_string(), self.text, true);
            self.text.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

fn escape(value: &str, text: &mut String, quotes: bool) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quotes => text.push_str("\\\""),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_help_and_type() {
        let mut exposition = Exposition::default();
        let mut family = exposition.family("a_total", "Back\\slash and\nline.", Kind::Counter);
        family.sample(&[], 1);
        family.sample(&[("shard", &0), ("client", &"q\"b\\n\n")], 0.5);
        assert_eq!(
            exposition.finish(),
            "# HELP a_total Back\\\\slash and\\nline.\n# TYPE a_total counter\na_total 1\n\
             a_total{shard=\"0\",client=\"q\\\"b\\\\n\\n\"} 0.5\n"
        );
    }

    #[test]
    fn buckets_are_cumulative_and_end_with_infinity() {
        let mut exposition = Exposition::default();
        let mut family = exposition.family("t_seconds", "Turns.", Kind::Histogram);
        family.histogram(&[("shard", &3)], &[4_096, 16_384], &[2, 0, 1], 1_000_000, 1e-9);
        assert_eq!(
            exposition.finish(),
            "# HELP t_seconds Turns.\n# TYPE t_seconds histogram\n\
             t_seconds_bucket{shard=\"3\",le=\"0.000004096\"} 2\n\
             t_seconds_bucket{shard=\"3\",le=\"0.000016384\"} 2\n\
             t_seconds_bucket{shard=\"3\",le=\"+Inf\"} 3\n\
             t_seconds_sum{shard=\"3\"} 0.001\nt_seconds_count{shard=\"3\"} 3\n"
        );
    }
}
