//! InfluxDB in the names of its collectd listener, for dashboards that are made for collectd.
//!
//! Measurement: plugin and data source; tags `host`, `instance`, `type`, `type_instance`; field
//! `value`. Traffic and operations are counters there: the rates of the windows are added up.

use std::collections::BTreeMap;

use super::line::{FieldValue, Lines};
use super::{Encode, OutputBody};
use crate::point::{OutputItem, OutputPoint, PointFigure, PointSeries, PointTag};

/// Counters of all hosts at a time.
const COUNTERS_MAX: usize = 10_000;

/// Gauges: our name, the measurement, `type` and `type_instance`.
const GAUGES: [(&str, &str, &str, &str); 17] = [
    ("cpu_user_percent", "cpu_value", "percent", "user"),
    ("cpu_nice_percent", "cpu_value", "percent", "nice"),
    ("cpu_system_percent", "cpu_value", "percent", "system"),
    ("cpu_irq_percent", "cpu_value", "percent", "interrupt"),
    ("cpu_softirq_percent", "cpu_value", "percent", "softirq"),
    ("cpu_iowait_percent", "cpu_value", "percent", "wait"),
    ("cpu_steal_percent", "cpu_value", "percent", "steal"),
    ("cpu_idle_percent", "cpu_value", "percent", "idle"),
    ("memory_used_bytes", "memory_value", "memory", "used"),
    ("memory_buffered_bytes", "memory_value", "memory", "buffered"),
    ("memory_cached_bytes", "memory_value", "memory", "cached"),
    ("memory_free_bytes", "memory_value", "memory", "free"),
    ("memory_slab_reclaimable_bytes", "memory_value", "memory", "slab_recl"),
    ("memory_slab_unreclaimable_bytes", "memory_value", "memory", "slab_unrecl"),
    ("load_1m", "load_shortterm", "load", ""),
    ("load_5m", "load_midterm", "load", ""),
    ("load_15m", "load_longterm", "load", ""),
];

/// Space of a mount point: our name and `type_instance`.
const SPACES: [(&str, &str); 2] =
    [("filesystem_used_bytes", "used"), ("filesystem_available_bytes", "free")];

/// A rate, and the counter that it becomes.
struct CounterName {
    figure: &'static str,
    measurement: &'static str,
    kind: &'static str,
    /// The tags `instance` and `type_instance` of a figure of the whole host; others have their
    /// part as the instance.
    fixed: (&'static str, &'static str),
    /// What one of ours is there.
    factor: f64,
}

const fn by_part(
    figure: &'static str,
    measurement: &'static str,
    kind: &'static str,
) -> CounterName {
    CounterName { figure, measurement, kind, fixed: ("", ""), factor: 1.0 }
}

const RATES: [CounterName; 17] = [
    by_part("net_rx_bytes_per_s", "interface_rx", "if_octets"),
    by_part("net_tx_bytes_per_s", "interface_tx", "if_octets"),
    by_part("net_rx_packets_per_s", "interface_rx", "if_packets"),
    by_part("net_tx_packets_per_s", "interface_tx", "if_packets"),
    by_part("net_rx_drops_per_s", "interface_rx", "if_dropped"),
    by_part("net_tx_drops_per_s", "interface_tx", "if_dropped"),
    by_part("net_rx_errors_per_s", "interface_rx", "if_errors"),
    by_part("net_tx_errors_per_s", "interface_tx", "if_errors"),
    by_part("disk_read_bytes_per_s", "disk_read", "disk_octets"),
    by_part("disk_written_bytes_per_s", "disk_write", "disk_octets"),
    by_part("disk_reads_per_s", "disk_read", "disk_ops"),
    by_part("disk_writes_per_s", "disk_write", "disk_ops"),
    // The rate of these counters is the mean time of an operation in milliseconds,
    CounterName { factor: 1e-3, ..by_part("disk_read_wait_us", "disk_read", "disk_time") },
    CounterName { factor: 1e-3, ..by_part("disk_write_wait_us", "disk_write", "disk_time") },
    // and of this one milliseconds per second.
    CounterName { factor: 10.0, ..by_part("disk_busy_percent", "disk_io_time", "disk_io_time") },
    CounterName {
        fixed: ("Tcp", "RetransSegs"),
        ..by_part("tcp_retransmits_per_s", "protocols_value", "protocol_counter")
    },
    by_part("context_switches_per_s", "contextswitch_value", "contextswitch"),
];

/// Encodes figures of hosts.
#[derive(Debug, Default)]
pub(super) struct Collectd {
    lines: Lines,
    /// What came of the rates so far, by host, interface and figure.
    counters: BTreeMap<(String, String, &'static str), f64>,
    left_out: u64,
}

impl Encode for Collectd {
    fn take(&mut self, item: &OutputItem) {
        if let OutputItem::Point(point) = item
            && point.series == PointSeries::Host
        {
            point.figures.iter().for_each(|figure| self.figure(point, figure));
        }
    }

    fn pending(&self) -> u64 {
        self.lines.count()
    }

    fn body(&mut self) -> Option<OutputBody> {
        self.lines.body()
    }

    fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

impl Collectd {
    fn figure(&mut self, point: &OutputPoint, figure: &PointFigure) {
        let host = point.tags.get(PointTag::Host).unwrap_or_default();
        let at_ms = point.window.end_ms;
        let gauge = [("value", FieldValue::Float(figure.value))];
        let known = GAUGES.iter().find(|(name, ..)| *name == figure.name);
        if let (Some((_, measurement, kind, state)), None) = (known, &figure.part) {
            let tags = [("host", host), ("type", *kind), ("type_instance", *state)];
            self.lines.add(measurement, &tags, &gauge, at_ms);
        }
        let known = SPACES.iter().find(|(name, _)| *name == figure.name);
        if let (Some((_, state)), Some(point)) = (known, &figure.part) {
            let place = mount_name(point);
            let tags = [
                ("host", host),
                ("instance", place.as_str()),
                ("type", "df_complex"),
                ("type_instance", *state),
            ];
            self.lines.add("df_value", &tags, &gauge, at_ms);
        }
        if let Some(name) = RATES.iter().find(|name| name.figure == figure.name) {
            self.counter(point, figure, name);
        }
    }

    fn counter(&mut self, point: &OutputPoint, figure: &PointFigure, name: &CounterName) {
        let host = point.tags.get(PointTag::Host).unwrap_or_default();
        let part = figure.part.as_deref().unwrap_or_default();
        let key = (host.to_owned(), part.to_owned(), name.figure);
        if self.counters.len() >= COUNTERS_MAX && !self.counters.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let counter = self.counters.entry(key).or_default();
        *counter += figure.value * name.factor * point.window.length_s();
        let (instance, state) = name.fixed;
        let instance = if instance.is_empty() { part } else { instance };
        let tags =
            [("host", host), ("instance", instance), ("type", name.kind), ("type_instance", state)];
        let value = [("value", FieldValue::Float(counter.round()))];
        self.lines.add(name.measurement, &tags, &value, point.window.end_ms);
    }
}

/// A mount point as collectd's plugin names it.
fn mount_name(point: &str) -> String {
    match point.trim_start_matches('/') {
        "" => "root".to_owned(),
        rest => rest.replace('/', "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{PointTags, PointWindow};

    #[test]
    fn hosts_have_the_names_of_collectd_and_traffic_is_a_counter() {
        let second = |number: u64| {
            let of = |name: &'static str, part: &str, value| PointFigure {
                part: Some(part.to_owned()),
                ..PointFigure::gauge(name, value)
            };
            let traffic = of("net_rx_bytes_per_s", "eth0", 1_000.5);
            OutputItem::Point(Box::new(OutputPoint {
                series: PointSeries::Host,
                tags: PointTags::default().with(PointTag::Host, "h").with(PointTag::Run, "r"),
                window: PointWindow {
                    start_ms: number * 2_000,
                    end_ms: (number + 1) * 2_000,
                    ..PointWindow::default()
                },
                figures: vec![
                    PointFigure::gauge("cpu_irq_percent", 1.5),
                    PointFigure::gauge("memory_slab_reclaimable_bytes", 4_096.0),
                    PointFigure::gauge("load_15m", 0.25),
                    traffic,
                    of("disk_busy_percent", "sda", 25.0),
                    of("disk_write_wait_us", "sda", 1_500.0),
                    of("filesystem_available_bytes", "/var/lib", 7.0),
                    PointFigure::gauge("tcp_retransmits_per_s", 2.0),
                    PointFigure::gauge("cpu_busy_percent", 9.0),
                ],
                latencies: Vec::new(),
                statistics: Vec::new(),
                row: None,
            }))
        };
        let mut collectd = Collectd::default();
        collectd.take(&second(0));
        collectd.take(&second(1));
        let text = String::from_utf8(collectd.body().expect("lines").bytes).expect("UTF-8");
        let lines = |at, rx, busy, wait, again| {
            format!(
                "cpu_value,host=h,type=percent,type_instance=interrupt value=1.5 {at}\n\
                 memory_value,host=h,type=memory,type_instance=slab_recl value=4096 {at}\n\
                 load_longterm,host=h,type=load value=0.25 {at}\n\
                 interface_rx,host=h,instance=eth0,type=if_octets value={rx} {at}\n\
                 disk_io_time,host=h,instance=sda,type=disk_io_time value={busy} {at}\n\
                 disk_write,host=h,instance=sda,type=disk_time value={wait} {at}\n\
                 df_value,host=h,instance=var-lib,type=df_complex,type_instance=free value=7 {at}\n\
                 protocols_value,host=h,instance=Tcp,type=protocol_counter,\
                 type_instance=RetransSegs value={again} {at}\n"
            )
        };
        assert_eq!(text, lines(2_000, 2_001, 500, 3, 4) + &lines(4_000, 4_002, 1_000, 6, 8));
    }
}
