//! Conditions that a run must meet: `e2e_p99 < 10ms`.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::TimeSpan;
use crate::format;

/// Conditions in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thresholds(pub Vec<Threshold>);

/// One condition on a figure of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The figure.
    pub metric: Metric,
    /// How it compares.
    pub comparison: Comparison,
    /// The limit, in the figure's own unit (microseconds for latencies).
    pub limit: f64,
}

/// A figure that can have a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A statistic of a latency, in microseconds.
    Latency(LatencyKind, Statistic),
    /// Messages lost.
    Lost,
    /// Deliveries lost of messages that were acknowledged.
    AcknowledgedLost,
    /// Sessions that the broker lost.
    SessionsLost,
    /// Deliveries lost in percent of those that were due.
    Loss,
    /// Messages delivered more than once.
    Duplicates,
    /// Messages delivered out of order.
    OutOfOrder,
    /// Achieved rate in percent of the offered one, in the direction that is worse off.
    Achieved,
    /// Messages in and out per second.
    Tps,
    /// CPU in percent of the broker's share: its host, or its cores.
    Cpu,
    /// Memory in use on the broker's host in percent.
    Memory,
    /// CPU of the broker process, one core = 100.
    BrokerCpu,
    /// 1 - idle of the broker's host in percent.
    HostCpu,
    /// Resident memory of the broker in bytes.
    BrokerRss,
}

/// Which latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// Intended time to receipt.
    EndToEnd,
    /// Written to received.
    Service,
    /// Intended time to written.
    SendDelay,
    /// PUBLISH to its last acknowledgement.
    Ack,
    /// Round trip to the broker's host.
    RoundTrip,
    /// TCP connect to CONNACK.
    Connect,
    /// From the time that a login is due to its acceptance.
    Login,
}

/// A statistic of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Largest.
    Max,
}

/// How a figure compares with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
}

const KINDS: [(&str, LatencyKind); 7] = [
    ("e2e", LatencyKind::EndToEnd),
    ("service", LatencyKind::Service),
    ("send_delay", LatencyKind::SendDelay),
    ("ack", LatencyKind::Ack),
    ("rtt", LatencyKind::RoundTrip),
    ("connect", LatencyKind::Connect),
    ("login", LatencyKind::Login),
];

const STATISTICS: [(&str, Statistic); 7] = [
    ("mean", Statistic::Mean),
    ("p50", Statistic::P50),
    ("p90", Statistic::P90),
    ("p95", Statistic::P95),
    ("p99", Statistic::P99),
    ("p999", Statistic::P999),
    ("max", Statistic::Max),
];

const METRICS: [(&str, Metric); 13] = [
    ("lost", Metric::Lost),
    ("acknowledged_lost", Metric::AcknowledgedLost),
    ("sessions_lost", Metric::SessionsLost),
    ("loss", Metric::Loss),
    ("duplicates", Metric::Duplicates),
    ("out_of_order", Metric::OutOfOrder),
    ("achieved", Metric::Achieved),
    ("tps", Metric::Tps),
    ("cpu", Metric::Cpu),
    ("memory", Metric::Memory),
    ("broker_cpu", Metric::BrokerCpu),
    ("host_cpu", Metric::HostCpu),
    ("broker_rss", Metric::BrokerRss),
];

/// Two-character operators come first: `<=` starts with `<`.
const COMPARISONS: [(&str, Comparison); 5] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Metric {
    /// All names, for messages.
    pub fn names() -> Vec<String> {
        let latencies = KINDS.iter().flat_map(|(kind, _)| {
            STATISTICS.iter().map(move |(statistic, _)| format!("{kind}_{statistic}"))
        });
        latencies.chain(METRICS.iter().map(|(name, _)| (*name).to_owned())).collect()
    }

    fn parse(name: &str) -> Option<Self> {
        if let Some((_, metric)) = METRICS.iter().find(|(known, _)| *known == name) {
            return Some(*metric);
        }
        // The latency that users ask about goes without saying: p99 is e2e_p99.
        let (kind, statistic) = match name.rsplit_once('_') {
            Some((kind, statistic)) => (kind, statistic),
            None => ("e2e", name),
        };
        let (_, kind) = KINDS.iter().find(|(known, _)| *known == kind)?;
        let (_, statistic) = STATISTICS.iter().find(|(known, _)| *known == statistic)?;
        Some(Self::Latency(*kind, *statistic))
    }

    fn is_percentage(self) -> bool {
        match self {
            Self::Loss
            | Self::Achieved
            | Self::Cpu
            | Self::Memory
            | Self::BrokerCpu
            | Self::HostCpu => true,
            Self::Latency(..)
            | Self::Lost
            | Self::AcknowledgedLost
            | Self::SessionsLost
            | Self::Duplicates
            | Self::OutOfOrder
            | Self::Tps
            | Self::BrokerRss => false,
        }
    }

    /// Reads a limit in the metric's unit.
    fn limit(self, text: &str) -> Option<f64> {
        let text = text.trim();
        match self {
            // A latency needs its unit: 10 could be anything.
            Self::Latency(..) if text.ends_with('s') => {
                TimeSpan::parse(text).ok().map(|span| span.as_ns() as f64 / 1e3)
            }
            Self::Latency(..) => None,
            _ if self.is_percentage() => text.strip_suffix('%').unwrap_or(text).trim().parse().ok(),
            Self::BrokerRss => bytes(text),
            _ => text.replace('_', "").parse().ok(),
        }
        .filter(|limit: &f64| limit.is_finite())
    }

    /// A figure of this metric with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Latency(..) => format::latency(value),
            _ if self.is_percentage() => format::percent(value),
            Self::BrokerRss => format::bytes(value.max(0.0) as u64),
            Self::Tps => format!("{} msg/s", format::rate(value)),
            _ => format::thousands(value.max(0.0) as u64),
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Latency(..) => "10ms",
            _ if self.is_percentage() => "75%",
            Self::BrokerRss => "64MiB",
            _ => "0",
        }
    }
}

fn bytes(text: &str) -> Option<f64> {
    let (number, factor) = [("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0), ("B", 1.0)]
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)))
        .unwrap_or((text, 1.0));
    number.trim().replace('_', "").parse::<f64>().ok().map(|number| number * factor)
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Latency(kind, statistic) = self {
            let kind = KINDS.iter().find(|(_, known)| known == kind);
            let statistic = STATISTICS.iter().find(|(_, known)| known == statistic);
            return write!(f, "{}_{}", kind.map_or("", |k| k.0), statistic.map_or("", |s| s.0));
        }
        f.write_str(METRICS.iter().find(|(_, known)| known == self).map_or("", |known| known.0))
    }
}

impl Comparison {
    /// Its sign.
    pub fn symbol(self) -> &'static str {
        COMPARISONS.iter().find(|(_, known)| *known == self).map_or("", |known| known.0)
    }

    /// Whether `value` meets the condition.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
            Self::Greater => value > limit,
            Self::AtLeast => value >= limit,
            Self::Equal => (value - limit).abs() < f64::EPSILON,
        }
    }
}

impl Threshold {
    /// Parses `e2e_p99<10ms`, `lost==0`, `achieved>=99%`.
    ///
    /// # Errors
    /// A sentence when figure, comparison or limit is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let start = text
            .find(['<', '>', '='])
            .ok_or_else(|| format!("'{text}' is not a threshold: write e2e_p99<10ms"))?;
        Self::from_parts(text[..start].trim(), &text[start..])
    }

    /// Parses the figure's name and `<10ms` apart, as a scenario's `[thresholds]` has them.
    ///
    /// # Errors
    /// A sentence when figure, comparison or limit is invalid.
    pub fn from_parts(name: &str, condition: &str) -> Result<Self, String> {
        let metric = Metric::parse(name).ok_or_else(|| {
            format!("there is no figure '{name}'; there are {}", Metric::names().join(", "))
        })?;
        let condition = condition.trim();
        let (symbol, comparison) = COMPARISONS
            .iter()
            .find(|(symbol, _)| condition.starts_with(symbol))
            .ok_or_else(|| format!("'{condition}' does not start with <, <=, >, >= or =="))?;
        let limit = &condition[symbol.len()..];
        let limit = metric.limit(limit).ok_or_else(|| {
            format!(
                "'{}' is not a limit for {name}: write for example {}",
                limit.trim(),
                metric.example()
            )
        })?;
        Ok(Self { metric, comparison: *comparison, limit })
    }

    /// `<10ms`: everything but the figure's name.
    pub fn condition(&self) -> String {
        let symbol = self.comparison.symbol();
        match self.metric {
            Metric::Latency(..) => {
                let ns = (self.limit * 1e3).round() as u64;
                format!("{symbol}{}", TimeSpan(std::time::Duration::from_nanos(ns)))
            }
            metric if metric.is_percentage() => format!("{symbol}{}%", self.limit),
            Metric::BrokerRss => format!("{symbol}{}B", self.limit),
            _ => format!("{symbol}{}", self.limit),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.metric, self.condition())
    }
}

impl Serialize for Thresholds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0.iter().map(|threshold| (threshold.metric.to_string(), threshold.condition())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for text in [
            "e2e_p99<10ms",
            "send_delay_p999<=250us",
            "service_mean<1s",
            "lost==0",
            "achieved>=99%",
            "broker_cpu<75%",
            "tps>20000",
            "loss==0%",
            "cpu<=75%",
            "memory<90%",
            "rtt_p99<1ms",
            "connect_max<1s",
            "login_p99<50ms",
            "ack_p50<2ms",
        ] {
            assert_eq!(Threshold::parse(text).expect(text).to_string(), text);
        }
        assert_eq!(Threshold::parse("p99<10ms").expect("parses").to_string(), "e2e_p99<10ms");
        assert_eq!(Threshold::parse("loss==0").expect("parses").to_string(), "loss==0%");
        let spaced = Threshold::parse(" e2e_p50 < 1.5 ms ").expect("parses");
        assert_eq!(spaced.limit, 1500.0);
        assert_eq!(Threshold::parse("broker_rss<64MiB").expect("parses").limit, 67108864.0);
    }

    #[test]
    fn complains_in_sentences() {
        for (text, words) in [
            ("e2e_p99", "not a threshold"),
            ("e2e_p98<10ms", "there is no figure 'e2e_p98'"),
            ("e2e_p99<10", "not a limit for e2e_p99"),
            ("lost=0", "does not start with <"),
            ("achieved>=fast", "not a limit"),
        ] {
            let error = Threshold::parse(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn compares() {
        assert!(Comparison::Less.holds(1.0, 2.0) && !Comparison::Less.holds(2.0, 2.0));
        assert!(Comparison::AtMost.holds(2.0, 2.0) && Comparison::AtLeast.holds(2.0, 2.0));
        assert!(Comparison::Greater.holds(3.0, 2.0) && Comparison::Equal.holds(0.0, 0.0));
    }
}
