//! InfluxDB in the names of its collectd listener, for dashboards that are made for collectd.
//!
//! Measurement: plugin and data source; tags `host`, `instance`, `type`, `type_instance`; field
//! `value`. Traffic is a counter there: the rates of the windows are added up.

use std::collections::BTreeMap;

use super::line::{FieldValue, Lines};
use super::{Encode, OutputBody};
use crate::point::{OutputItem, OutputPoint, PointFigure, PointSeries, PointTag};

/// Interfaces of all hosts that have counters at a time.
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

/// Rates of interfaces: our name, the measurement of the counter, and `type`.
const RATES: [(&str, &str, &str); 6] = [
    ("net_rx_bytes_per_s", "interface_rx", "if_octets"),
    ("net_tx_bytes_per_s", "interface_tx", "if_octets"),
    ("net_rx_packets_per_s", "interface_rx", "if_packets"),
    ("net_tx_packets_per_s", "interface_tx", "if_packets"),
    ("net_rx_drops_per_s", "interface_rx", "if_dropped"),
    ("net_tx_drops_per_s", "interface_tx", "if_dropped"),
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
        let known = GAUGES.iter().find(|(name, ..)| *name == figure.name);
        if let (Some((_, measurement, kind, state)), None) = (known, &figure.part) {
            let tags = [("host", host), ("type", *kind), ("type_instance", *state)];
            let value = [("value", FieldValue::Float(figure.value))];
            self.lines.add(measurement, &tags, &value, at_ms);
        }
        let known = RATES.iter().find(|(name, ..)| *name == figure.name);
        if let (Some((name, measurement, kind)), Some(interface)) = (known, &figure.part) {
            let key = (host.to_owned(), interface.clone(), *name);
            if self.counters.len() >= COUNTERS_MAX && !self.counters.contains_key(&key) {
                self.left_out += 1;
                return;
            }
            let counter = self.counters.entry(key).or_default();
            *counter += figure.value * point.window.length_s();
            let tags = [("host", host), ("instance", interface), ("type", *kind)];
            let value = [("value", FieldValue::Float(counter.round()))];
            self.lines.add(measurement, &tags, &value, at_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{PointTags, PointWindow};

    #[test]
    fn hosts_have_the_names_of_collectd_and_traffic_is_a_counter() {
        let second = |number: u64| {
            let traffic = PointFigure {
                part: Some("eth0".to_owned()),
                ..PointFigure::gauge("net_rx_bytes_per_s", 1_000.5)
            };
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
        let lines = |at, rx| {
            format!(
                "cpu_value,host=h,type=percent,type_instance=interrupt value=1.5 {at}\n\
                 memory_value,host=h,type=memory,type_instance=slab_recl value=4096 {at}\n\
                 load_longterm,host=h,type=load value=0.25 {at}\n\
                 interface_rx,host=h,instance=eth0,type=if_octets value={rx} {at}\n"
            )
        };
        assert_eq!(text, lines(2_000, 2_001) + &lines(4_000, 4_002));
    }
}
