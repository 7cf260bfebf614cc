//! The state of bridges for HTTP, `/metrics` and `$SYS`.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use tacho_net::clock;

use super::exposition::{Exposition, Kind};
use crate::bridge::{BridgeDirectory, Figures, LinkStatus, State, Status};

type Pick = fn(&Figures) -> u64;

/// A counter or gauge of a bridge or one of its links: name in answers and metrics, help text, and
/// where to read it.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    pick: Pick,
}

const fn counter(name: &'static str, help: &'static str, pick: Pick) -> Metric {
    Metric { name, help, kind: Kind::Counter, pick }
}

const fn gauge(name: &'static str, help: &'static str, pick: Pick) -> Metric {
    Metric { name, help, kind: Kind::Gauge, pick }
}

const METRICS: [Metric; 8] = [
    counter("reconnects", "Connections made after one was lost.", |f| f.reconnects),
    counter(
        "ack_timeouts",
        "Connections given up because a message was not acknowledged in time.",
        |f| f.ack_timeouts,
    ),
    counter("sent", "PUBLISH packets sent, retransmissions included.", |f| f.sent),
    counter("received", "PUBLISH packets received, retransmissions included.", |f| f.received),
    counter("acknowledged", "QoS 1 and 2 messages that the remote broker has acknowledged.", |f| {
        f.acknowledged
    }),
    gauge("buffered_messages", "Queued messages, without those in flight.", |f| {
        f.buffered_messages
    }),
    gauge("buffered_bytes", "Bytes of queued messages.", |f| f.buffered_bytes),
    gauge("inflight", "Messages in flight.", |f| f.inflight),
];

/// Dropped messages by reason.
const DROPPED: [(&str, Pick); 6] = [
    ("expired", |f| f.dropped_expired),
    ("full", |f| f.dropped_full),
    ("looped", |f| f.dropped_looped),
    ("refused", |f| f.dropped_refused),
    ("too_large", |f| f.dropped_too_large),
    ("unmapped", |f| f.dropped_unmapped),
];

/// The answer to `/bridges`.
#[derive(Serialize)]
pub(super) struct BridgeList {
    bridges: Vec<BridgeRow>,
}

/// A bridge.
#[derive(Serialize)]
struct BridgeRow {
    name: String,
    remote: String,
    /// What an operator wants of it.
    mode: &'static str,
    /// `file`, which the API does not change, or `api`.
    source: &'static str,
    state: &'static str,
    connected: usize,
    #[serde(flatten)]
    figures: FlatFigures,
    connections: Vec<LinkRow>,
}

/// One of its links.
#[derive(Serialize)]
struct LinkRow {
    /// Starts at 1, as in its client identifier.
    connection: usize,
    state: &'static str,
    /// Seconds since it entered this state; absent before the first attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(flatten)]
    figures: FlatFigures,
}

/// All metrics of a bridge or link as keys of one object.
struct FlatFigures(Figures);

impl Serialize for FlatFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for metric in &METRICS {
            map.serialize_entry(metric.name, &(metric.pick)(&self.0))?;
        }
        for (reason, pick) in DROPPED {
            map.serialize_entry(&format!("dropped_{reason}"), &pick(&self.0))?;
        }
        map.end()
    }
}

impl BridgeList {
    pub(super) fn new(bridges: &BridgeDirectory) -> Self {
        let now_ns = clock::now_ns();
        Self {
            bridges: bridges
                .status()
                .into_iter()
                .map(|status| BridgeRow::new(status, now_ns))
                .collect(),
        }
    }
}

impl BridgeRow {
    fn new(status: Status, now_ns: u64) -> Self {
        let connection = |(at, link): (usize, LinkStatus)| LinkRow {
            connection: at + 1,
            state: link.state.name(),
            for_s: (link.since_ns > 0)
                .then(|| now_ns.saturating_sub(link.since_ns) / 1_000_000_000),
            problem: link.problem,
            figures: FlatFigures(link.figures),
        };
        Self {
            name: status.name,
            remote: status.remote,
            mode: status.mode.name(),
            source: if status.is_stored { "api" } else { "file" },
            state: status.state.name(),
            connected: status.connected,
            figures: FlatFigures(status.figures),
            connections: status.links.into_iter().enumerate().map(connection).collect(),
        }
    }
}

/// The metrics of all bridges. It only reads atomics.
pub(super) fn write(exposition: &mut Exposition, bridges: &BridgeDirectory) {
    let all = bridges.status();
    if all.is_empty() {
        return;
    }
    let mut family = |name: &str, help: &str, kind: Kind, value: &dyn Fn(&Status) -> u64| {
        let mut family = exposition.family(&format!("tacho_bridge_{name}"), help, kind);
        for status in &all {
            family.sample(&[("bridge", &status.name)], value(status));
        }
    };
    let help = "Configured connections of the bridge.";
    family("connections", help, Kind::Gauge, &|status| status.links.len() as u64);
    let help = "Connections of the bridge that are up.";
    family("connections_up", help, Kind::Gauge, &|status| status.connected as u64);
    for metric in &METRICS {
        let name = match metric.kind {
            Kind::Counter => format!("{}_total", metric.name),
            _ => metric.name.to_owned(),
        };
        family(&name, metric.help, metric.kind, &|status| (metric.pick)(&status.figures));
    }
    let help = "Messages dropped: expired, buffer full, refused by the remote broker or too large \
                for it, or no rule maps them.";
    let mut family = exposition.family("tacho_bridge_dropped_total", help, Kind::Counter);
    for status in &all {
        for (reason, pick) in DROPPED {
            let labels: [(&str, &dyn std::fmt::Display); 2] =
                [("bridge", &status.name), ("reason", &reason)];
            family.sample(&labels, pick(&status.figures));
        }
    }
}

/// `$SYS` topics and their payloads, always in the same order.
pub(super) fn sys_values(bridges: &BridgeDirectory) -> Vec<(String, String)> {
    let mut values = Vec::new();
    for status in bridges.status() {
        let Status { name, state, figures, .. } = status;
        // As mosquitto publishes it: 1 or 0.
        let up = u8::from(state == State::Up);
        values.push((format!("connection/{name}/state"), up.to_string()));
        values.push((format!("bridges/{name}/state"), state.name().to_owned()));
        values.push((format!("bridges/{name}/connections"), status.links.len().to_string()));
        values.push((format!("bridges/{name}/connected"), status.connected.to_string()));
        for metric in &METRICS {
            let value = (metric.pick)(&figures).to_string();
            values.push((format!("bridges/{name}/{}", metric.name), value));
        }
        values.push((format!("bridges/{name}/dropped"), figures.dropped().to_string()));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::BridgeMode;

    #[test]
    fn answers_contain_every_metric_once() {
        let figures = Figures { sent: 7, dropped_refused: 2, ..Figures::default() };
        let link = |state, problem: Option<&str>, since_ns| LinkStatus {
            state,
            since_ns,
            problem: problem.map(str::to_owned),
            figures,
        };
        let status = Status {
            name: "b".to_owned(),
            remote: "mqtt://r:1883".to_owned(),
            mode: BridgeMode::Paused,
            is_stored: true,
            state: State::Partly,
            connected: 1,
            figures,
            links: vec![
                link(State::Up, None, 1_000_000_000),
                link(State::Down, Some("refused"), 0),
            ],
        };
        let json = serde_json::to_value(BridgeRow::new(status, 5_500_000_000)).unwrap();
        assert_eq!((&json["mode"], &json["source"]), (&"paused".into(), &"api".into()));
        assert_eq!((&json["state"], &json["connected"]), (&"partly".into(), &1.into()));
        assert_eq!((&json["sent"], &json["dropped_refused"]), (&7.into(), &2.into()));
        let [one, two] = [0, 1].map(|at| &json["connections"][at]);
        assert_eq!((&one["for_s"], &two["problem"]), (&4.into(), &"refused".into()));
        assert!(one.get("problem").is_none() && two.get("for_s").is_none());
        assert_eq!(two["connection"], 2);
        // All counters of a bridge are exported.
        let all = Figures {
            reconnects: 1,
            ack_timeouts: 1,
            sent: 1,
            received: 1,
            acknowledged: 1,
            dropped_expired: 1,
            dropped_full: 1,
            dropped_looped: 1,
            dropped_refused: 1,
            dropped_too_large: 1,
            dropped_unmapped: 1,
            buffered_messages: 1,
            buffered_bytes: 1,
            inflight: 1,
        };
        let map = serde_json::to_value(FlatFigures(all)).unwrap();
        assert_eq!(map.as_object().unwrap().len(), 14);
        assert!(map.as_object().unwrap().values().all(|value| *value == 1));
    }
}
