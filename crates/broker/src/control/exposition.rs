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

/// All metrics at a time.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    families: Vec<MetricFamily>,
}

/// A metric with its samples.
#[derive(Debug)]
pub(super) struct MetricFamily {
    pub(super) name: String,
    help: String,
    pub(super) kind: Kind,
    pub(super) samples: Vec<MetricSample>,
}

/// A value of a metric.
#[derive(Debug)]
pub(super) struct MetricSample {
    /// What follows the name: `_sum` and the like of a histogram.
    pub(super) suffix: &'static str,
    pub(super) labels: Vec<(String, String)>,
    /// It has a type without fractions.
    pub(super) is_whole: bool,
    pub(super) value: f64,
}

/// A number that can be a sample.
pub(super) trait SampleNumber {
    /// The type has no fractions.
    const IS_WHOLE: bool;

    fn number(self) -> f64;
}

macro_rules! sample_numbers {
    ($($type:ty: $is_whole:literal),*) => {
        $(impl SampleNumber for $type {
            const IS_WHOLE: bool = $is_whole;

            fn number(self) -> f64 {
                self as f64
            }
        })*
    };
}

sample_numbers!(u8: true, i32: true, u64: true, usize: true, f64: false);

impl Exposition {
    /// Begins a metric; its samples follow.
    pub(super) fn family(&mut self, name: &str, help: &str, kind: Kind) -> Family<'_> {
        let (name, help) = (name.to_owned(), help.to_owned());
        let metric = MetricFamily { name, help, kind, samples: Vec::new() };
        self.families.push(metric);
        // Invariant: the metric was pushed just before.
        let last = self.families.len() - 1;
        Family { samples: &mut self.families[last].samples }
    }

    /// The metrics so far.
    pub(super) fn metrics(&self) -> &[MetricFamily] {
        &self.families
    }

    /// The page.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for MetricFamily { name, help, kind, samples } in &self.families {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            text.push_str("# HELP ");
            text.push_str(name);
            text.push(' ');
            escape(help, &mut text, false);
            // Writing to a string cannot fail.
            let _ = write!(text, "\n# TYPE {name} {kind}\n");
            samples.iter().for_each(|sample| sample.write(name, &mut text));
        }
        text
    }
}

impl MetricSample {
    fn write(&self, name: &str, text: &mut String) {
        let _ = write!(text, "{name}{}", self.suffix);
        for (at, (label, value)) in self.labels.iter().enumerate() {
            let _ = write!(text, "{}{label}=\"", if at == 0 { '{' } else { ',' });
            escape(value, text, true);
            text.push('"');
        }
        let end = if self.labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{end} {}", self.value);
    }
}

/// One metric, which gets its samples.
#[derive(Debug)]
pub(super) struct Family<'a> {
    samples: &'a mut Vec<MetricSample>,
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &dyn Display)], value: impl SampleNumber) {
        self.add("", labels, value);
    }

    /// A histogram: counts per bucket, one bucket more than bounds, and the sum of all values.
    /// Bounds and sum are multiplied by `unit` where their exported unit is another one.
    pub(super) fn histogram(
        &mut self,
        labels: &[(&str, &dyn Display)],
        bounds: &[u64],
        buckets: &[u64],
        sum: u64,
        unit: Option<f64>,
    ) {
        let factor = unit.unwrap_or(1.0);
        let bounds = bounds.iter().map(|bound| (*bound as f64 * factor).to_string());
        let mut count = 0_u64;
        for (bound, bucket) in bounds.chain(["+Inf".to_owned()]).zip(buckets) {
            count += bucket;
            let labels: Vec<_> = labels.iter().copied().chain([("le", &bound as _)]).collect();
            self.add("_bucket", &labels, count);
        }
        match unit {
            None => self.add("_sum", labels, sum),
            Some(unit) => self.add("_sum", labels, sum as f64 * unit),
        }
        self.add("_count", labels, count);
    }

    fn add<N: SampleNumber>(
        &mut self,
        suffix: &'static str,
        labels: &[(&str, &dyn Display)],
        value: N,
    ) {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
        self.samples.push(MetricSample {
            suffix,
            labels: labels.collect(),
            is_whole: N::IS_WHOLE,
            value: value.number(),
        });
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
            exposition.text(),
            "# HELP a_total Back\\\\slash and\\nline.\n# TYPE a_total counter\na_total 1\n\
             a_total{shard=\"0\",client=\"q\\\"b\\\\n\\n\"} 0.5\n"
        );
    }

    #[test]
    fn buckets_are_cumulative_and_end_with_infinity() {
        let mut exposition = Exposition::default();
        let mut family = exposition.family("t_seconds", "Turns.", Kind::Histogram);
        family.histogram(&[("shard", &3)], &[4_096, 16_384], &[2, 0, 1], 1_000_000, Some(1e-9));
        assert_eq!(
            exposition.text(),
            "# HELP t_seconds Turns.\n# TYPE t_seconds histogram\n\
             t_seconds_bucket{shard=\"3\",le=\"0.000004096\"} 2\n\
             t_seconds_bucket{shard=\"3\",le=\"0.000016384\"} 2\n\
             t_seconds_bucket{shard=\"3\",le=\"+Inf\"} 3\n\
             t_seconds_sum{shard=\"3\"} 0.001\nt_seconds_count{shard=\"3\"} 3\n"
        );
    }
}
