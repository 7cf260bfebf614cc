//! Resource use of hosts: rows on the run's time axis, and their summary per step.

use serde::{Deserialize, Serialize};
use tacho_monitor::HostRow;

/// A host's row on the time axis of the run, the content of `resources.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceRow {
    /// End of the row's interval in seconds since the start of the run, as in `timeseries.csv`;
    /// negative for what was seen just before.
    pub at_s: f64,
    /// The row. Its `at_ns` is the controller's clock and means nothing to others.
    pub host: HostRow,
}

impl ResourceRow {
    /// Does the row belong to the time from `from_s` to `to_s`? It does when the middle of its
    /// interval is inside.
    pub fn is_inside(&self, from_s: f64, to_s: f64) -> bool {
        let middle_s = self.at_s - self.host.length_ns as f64 / 2e9;
        (from_s..=to_s).contains(&middle_s)
    }
}

/// Resource use of one host in a measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUse {
    /// Name of the host.
    pub host: String,
    /// The source that told about it.
    pub source: String,
    /// The target that it was bound to.
    pub target: Option<String>,
    /// Rows in the window.
    pub samples: u64,
    /// Least, mean and most of every figure.
    pub metrics: Vec<MetricUse>,
}

/// One figure of a host over a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricUse {
    /// Name, with its unit last: one of [`tacho_monitor::METRICS`].
    pub metric: String,
    /// Which core, interface or process; absent for figures of the whole host.
    pub instance: Option<String>,
    /// Least.
    pub min: f64,
    /// Mean of the rows, each weighted by the length of its interval.
    pub mean: f64,
    /// Most.
    pub max: f64,
}

/// A source of host figures and how it behaved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MonitorRecord {
    /// The source, as `--monitor` names it, without tokens.
    pub source: String,
    /// The target that it was bound to.
    pub target: Option<String>,
    /// Rows that came.
    pub rows: u64,
    /// Rows dropped because their queue was full.
    pub dropped: u64,
    /// Number of failed requests and unusable answers.
    pub errors: u64,
    /// The last of these errors.
    pub last_error: Option<String>,
    /// The largest error bound of its time stamps, in microseconds.
    pub clock_error_us_max: Option<f64>,
}

impl HostUse {
    /// A figure of the whole host.
    pub fn get(&self, metric: &str) -> Option<&MetricUse> {
        self.of(metric, None)
    }

    /// A figure of a core, interface or process.
    pub fn of(&self, metric: &str, instance: Option<&str>) -> Option<&MetricUse> {
        self.metrics
            .iter()
            .find(|known| known.metric == metric && known.instance.as_deref() == instance)
    }

    /// One entry per host that has rows between `from_s` and `to_s`; a row counts when the middle
    /// of its interval is inside.
    pub fn of_rows(rows: &[ResourceRow], from_s: f64, to_s: f64) -> Vec<Self> {
        let mut sums: Vec<(Self, Vec<f64>)> = Vec::new();
        let inside = rows.iter().filter(|row| row.is_inside(from_s, to_s));
        for row in inside {
            let host = &row.host;
            let known = sums.iter().position(|(used, _)| {
                used.host == host.host && used.source == host.source && used.target == host.target
            });
            let index = known.unwrap_or_else(|| {
                let used = Self {
                    host: host.host.clone(),
                    source: host.source.clone(),
                    target: host.target.clone(),
                    ..Self::default()
                };
                sums.push((used, Vec::new()));
                sums.len() - 1
            });
            let (used, weights) = &mut sums[index];
            used.add(host, weights);
        }
        sums.into_iter().map(|(used, weights)| used.settled(&weights)).collect()
    }

    /// Adds a row: until [`HostUse::settled`] `mean` is a sum weighted by `weights`.
    fn add(&mut self, row: &HostRow, weights: &mut Vec<f64>) {
        self.samples += 1;
        // A row without a length is a moment; it counts as much as a second.
        let weight = if row.length_ns == 0 { 1.0 } else { row.length_ns as f64 / 1e9 };
        for metric in row.metrics() {
            let known = self
                .metrics
                .iter()
                .position(|known| known.metric == metric.name && known.instance == metric.instance);
            let index = known.unwrap_or_else(|| {
                let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
                let (name, instance) = (metric.name.to_owned(), metric.instance);
                self.metrics.push(MetricUse { metric: name, instance, min, mean: 0.0, max });
                weights.push(0.0);
                self.metrics.len() - 1
            });
            let known = &mut self.metrics[index];
            known.min = known.min.min(metric.value);
            known.max = known.max.max(metric.value);
            known.mean += metric.value * weight;
            weights[index] += weight;
        }
    }

    fn settled(mut self, weights: &[f64]) -> Self {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        for (known, weight) in self.metrics.iter_mut().zip(weights) {
            known.mean = round(known.mean / weight);
            known.min = round(known.min);
            known.max = round(known.max);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_monitor::{CpuPercent, InterfaceRates};

    fn row(host: &str, at_s: f64, length_s: f64, idle: f64, rx: f64) -> ResourceRow {
        ResourceRow {
            at_s,
            host: HostRow {
                at_ns: 0,
                length_ns: (length_s * 1e9) as u64,
                host: host.to_owned(),
                cpu: Some(CpuPercent { idle, user: 100.0 - idle, ..CpuPercent::default() }),
                interfaces: vec![InterfaceRates {
                    name: "eth0".to_owned(),
                    rx_bytes_per_s: rx,
                    ..InterfaceRates::default()
                }],
                ..HostRow::default()
            },
        }
    }

    #[test]
    fn rows_of_the_window_are_summarised_per_host() {
        let rows = [
            // Its middle lies before the window.
            row("a", 10.4, 1.0, 0.0, 9.0),
            row("a", 11.0, 1.0, 80.0, 1.0),
            row("b", 11.5, 1.0, 50.0, 4.0),
            row("a", 14.0, 3.0, 40.0, 5.0),
            // Its middle lies behind it.
            row("a", 16.0, 1.0, 0.0, 9.0),
        ];
        let used = HostUse::of_rows(&rows, 10.0, 15.0);
        assert_eq!(used.len(), 2);
        assert_eq!((used[0].host.as_str(), used[0].samples), ("a", 2));
        let cpu = used[0].get("cpu_not_idle_percent").expect("there");
        // One second at 20 %, three at 60 %.
        assert_eq!((cpu.min, cpu.mean, cpu.max), (20.0, 50.0, 60.0));
        let net = used[0].of("net_rx_bytes_per_s", Some("eth0")).expect("there");
        assert_eq!((net.min, net.mean, net.max), (1.0, 4.0, 5.0));
        assert_eq!(used[1].get("cpu_user_percent").map(|cpu| cpu.mean), Some(50.0));
        assert_eq!(used[1].get("load_1m"), None);
        assert!(HostUse::of_rows(&rows, 20.0, 30.0).is_empty());
    }
}
