//! The `$SYS/broker/` topics: the state of the broker as retained messages, with the names and
//! formats of mosquitto, so that tools made for mosquitto work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tacho_net::clock;

use super::journal;
use super::load::{Averages, SPANS};
use super::process::ProcessMemory;
use super::{View, bridges};
use crate::mail::{Mail, SysValue};
use crate::stats::{ByQos, ShardStats};

/// Prefix of all topics.
const PREFIX: &str = "$SYS/broker/";

/// Publishes the values that have changed.
pub(super) struct Sys {
    interval: Duration,
    published_ns: Option<u64>,
    /// The payload published last per topic.
    last: BTreeMap<Arc<str>, String>,
    loads: [Averages; LOADS.len()],
    clients_maximum: u64,
    heap_maximum: u64,
}

/// Counters with moving averages.
const LOADS: [&str; 9] = [
    "messages/received",
    "messages/sent",
    "publish/dropped",
    "publish/received",
    "publish/sent",
    "bytes/received",
    "bytes/sent",
    "sockets",
    "connections",
];

impl Sys {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            published_ns: None,
            last: BTreeMap::new(),
            loads: Default::default(),
            clients_maximum: 0,
            heap_maximum: 0,
        }
    }

    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Sends the changed values to the first shard, which publishes them as messages.
    pub(super) fn publish(&mut self, view: &View) {
        let now_ns = clock::now_ns();
        let elapsed = self.published_ns.map_or(Duration::ZERO, |before_ns| {
            Duration::from_nanos(now_ns.saturating_sub(before_ns))
        });
        self.published_ns = Some(now_ns);
        let readings = Readings::take(view);
        let mut values = self.values(&readings, elapsed);
        if let Some(journal) = &view.journal {
            let journal = journal::sys_values(journal).into_iter();
            values.extend(journal.map(|(name, value)| (name.to_owned(), value)));
        }
        values.extend(view.alarms.sys_values());
        values.extend(bridges::sys_values(&view.bridges));
        let changed = self.changed(values);
        if !changed.is_empty() {
            view.remote.post(0, Mail::PublishSys(changed.into()));
        }
    }

    /// What differs from what was published last. A topic that is no more gets an empty payload,
    /// which removes it.
    fn changed(&mut self, values: Vec<(String, String)>) -> Vec<SysValue> {
        let now: BTreeMap<Arc<str>, String> = values
            .into_iter()
            .map(|(name, value)| (format!("{PREFIX}{name}").into(), value))
            .collect();
        let before = std::mem::replace(&mut self.last, now);
        let gone = before.keys().filter(|topic| !self.last.contains_key(*topic));
        let gone = gone.map(|topic| SysValue { topic: Arc::clone(topic), payload: "".into() });
        let others = self.last.iter().filter(|(topic, now)| before.get(*topic) != Some(now));
        let others = others.map(|(topic, now)| SysValue {
            topic: Arc::clone(topic),
            payload: now.as_str().into(),
        });
        gone.chain(others).collect()
    }

    /// Every topic without its prefix, and its payload, always in the same order.
    fn values(&mut self, readings: &Readings, elapsed: Duration) -> Vec<(String, String)> {
        self.clients_maximum = self.clients_maximum.max(readings.clients_connected);
        self.heap_maximum = self.heap_maximum.max(readings.heap_bytes.unwrap_or(0));
        let mut values = readings.values();
        values.push(("clients/maximum".to_owned(), self.clients_maximum.to_string()));
        if let Some(heap_bytes) = readings.heap_bytes {
            values.push(("heap/current".to_owned(), heap_bytes.to_string()));
            values.push(("heap/maximum".to_owned(), self.heap_maximum.to_string()));
        }
        for ((name, averages), count) in
            LOADS.into_iter().zip(&mut self.loads).zip(readings.loads())
        {
            averages.take(count, elapsed);
            for ((span, _), rate) in SPANS.into_iter().zip(averages.per_minute()) {
                values.push((format!("load/{name}/{span}"), format!("{rate:.2}")));
            }
        }
        values
    }
}

/// The state of the broker at one time, over all shards.
#[derive(Clone, Debug, Default)]
struct Readings {
    uptime_s: u64,
    clients_total: u64,
    clients_connected: u64,
    clients_expired: u64,
    subscriptions: u64,
    shared_subscriptions: u64,
    retained: u64,
    stored: u64,
    stored_bytes: u64,
    packets_in: u64,
    packets_out: u64,
    publishes_in: u64,
    publishes_out: u64,
    dropped: u64,
    payload_in_bytes: u64,
    payload_out_bytes: u64,
    bytes_in: u64,
    bytes_out: u64,
    sockets: u64,
    connects: u64,
    heap_bytes: Option<u64>,
}

impl Readings {
    fn take(view: &View) -> Self {
        let publishes = |by_qos: fn(&ShardStats) -> &ByQos| view.sum(|stats| by_qos(stats).total());
        let publishes_out = publishes(|stats| &stats.publishes_out_total);
        let refused = view.sum(|stats| stats.refused_connects_total.total());
        let connects = view.total(|stats| &stats.connects_total);
        let retained = view.total(|stats| &stats.retained);
        // Every type of packet that the broker sends is counted either when it is sent or when its
        // cause is counted.
        let packets_out = publishes_out
            + connects
            + refused
            + view.total(|stats| &stats.acks_out_total)
            + view.total(|stats| &stats.subscribes_total)
            + view.total(|stats| &stats.unsubscribes_total)
            + view.total(|stats| &stats.pings_total)
            + view.total(|stats| &stats.disconnects_out_total);
        Self {
            uptime_s: view.uptime().as_secs(),
            clients_total: view.total(|stats| &stats.sessions),
            clients_connected: view.total(|stats| &stats.sessions_connected),
            clients_expired: view.total(|stats| &stats.sessions_expired_total),
            subscriptions: view.total(|stats| &stats.subscriptions),
            shared_subscriptions: view.total(|stats| &stats.shared_subscriptions),
            retained,
            stored: retained
                + view.total(|stats| &stats.waiting)
                + view.total(|stats| &stats.shared_waiting),
            stored_bytes: view.total(|stats| &stats.retained_bytes)
                + view.total(|stats| &stats.queues_bytes),
            packets_in: view.total(|stats| &stats.packets_in_total),
            packets_out,
            publishes_in: publishes(|stats| &stats.publishes_in_total),
            publishes_out,
            dropped: view
                .total_named(|name| name.starts_with("dropped_") && name.ends_with("_total")),
            payload_in_bytes: view.sum(|stats| stats.payload_in_bytes.sum()),
            payload_out_bytes: view.total(|stats| &stats.payload_bytes_out_total),
            bytes_in: view.total(|stats| &stats.bytes_in_total),
            bytes_out: view.total(|stats| &stats.bytes_out_total),
            sockets: view.total(|stats| &stats.accepted_total),
            connects: connects + refused,
            heap_bytes: ProcessMemory::read().map(|memory| memory.anonymous_bytes),
        }
    }

    /// The values that do not depend on earlier readings.
    fn values(&self) -> Vec<(String, String)> {
        let disconnected = self.clients_total.saturating_sub(self.clients_connected);
        let plain_subscriptions = self.subscriptions.saturating_sub(self.shared_subscriptions);
        let mut values = vec![
            ("version".to_owned(), format!("tacho version {}", env!("CARGO_PKG_VERSION"))),
            ("uptime".to_owned(), format!("{} seconds", self.uptime_s)),
        ];
        for (name, value) in [
            ("clients/total", self.clients_total),
            ("clients/connected", self.clients_connected),
            ("clients/active", self.clients_connected),
            ("clients/disconnected", disconnected),
            ("clients/inactive", disconnected),
            ("clients/expired", self.clients_expired),
            ("messages/received", self.packets_in),
            ("messages/sent", self.packets_out),
            ("messages/stored", self.stored),
            ("store/messages/count", self.stored),
            ("store/messages/bytes", self.stored_bytes),
            ("publish/messages/received", self.publishes_in),
            ("publish/messages/sent", self.publishes_out),
            ("publish/messages/dropped", self.dropped),
            ("publish/bytes/received", self.payload_in_bytes),
            ("publish/bytes/sent", self.payload_out_bytes),
            ("bytes/received", self.bytes_in),
            ("bytes/sent", self.bytes_out),
            ("subscriptions/count", plain_subscriptions),
            ("shared_subscriptions/count", self.shared_subscriptions),
            ("retained messages/count", self.retained),
        ] {
            values.push((name.to_owned(), value.to_string()));
        }
        values
    }

    /// The counters of [`LOADS`].
    fn loads(&self) -> [u64; LOADS.len()] {
        [
            self.packets_in,
            self.packets_out,
            self.dropped,
            self.publishes_in,
            self.publishes_out,
            self.bytes_in,
            self.bytes_out,
            self.sockets,
            self.connects,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_published_and_what_is_gone_removed() {
        let mut sys = Sys::new(Duration::from_secs(10));
        let mut publish = |values: &[(&str, &str)]| -> Vec<(String, String)> {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let changed = sys.changed(values.iter().map(owned).collect());
            changed.iter().map(|one| (one.topic.to_string(), one.payload.to_string())).collect()
        };
        let own = |name: &str, value: &str| (format!("{PREFIX}{name}"), value.to_owned());
        assert_eq!(publish(&[("a", "1"), ("b", "2")]), [own("a", "1"), own("b", "2")]);
        assert_eq!(publish(&[("a", "1"), ("b", "3")]), [own("b", "3")]);
        assert_eq!(publish(&[("c", "4"), ("a", "1")]), [own("b", ""), own("c", "4")]);
    }

    #[test]
    fn topics_keep_their_order_and_values_are_plain_numbers() {
        let mut sys = Sys::new(Duration::from_secs(10));
        let readings = Readings {
            uptime_s: 61,
            clients_total: 5,
            clients_connected: 3,
            subscriptions: 7,
            shared_subscriptions: 2,
            bytes_in: 600,
            heap_bytes: Some(1 << 20),
            ..Readings::default()
        };
        let first = sys.values(&readings, Duration::ZERO);
        let later = Readings { clients_connected: 1, ..readings };
        let second = sys.values(&later, Duration::from_secs(60));
        let names = |values: &[(String, String)]| -> Vec<String> {
            values.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&first), names(&second));
        let value = |name: &str| {
            let found = second.iter().find(|(known, _)| known == name);
            found.unwrap_or_else(|| panic!("no {name}")).1.as_str()
        };
        for (name, expected) in [
            ("uptime", "61 seconds"),
            ("clients/total", "5"),
            ("clients/disconnected", "4"),
            ("clients/maximum", "3"),
            ("subscriptions/count", "5"),
            ("shared_subscriptions/count", "2"),
            ("heap/maximum", "1048576"),
            // 600 per minute, approached by 1 - 1/e after one time constant.
            ("load/bytes/received/1min", "379.27"),
            ("load/sockets/15min", "0.00"),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
    }
}
