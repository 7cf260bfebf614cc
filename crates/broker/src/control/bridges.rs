//! What HTTP, `/metrics` and `$SYS` say of bridges, where there are any.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use tacho_net::clock;

use super::exposition::{Exposition, Kind};
use crate::bridge::{Bridges, Figures, LinkStatus, State, Status};

type Pick = fn(&Figures) -> u64;

/// A figure of a bridge or one of its connections: its name in answers and metrics, what it is, and
/// where it is found.
struct Figure {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    pick: Pick,
}

const fn counter(name: &'static str, help: &'static str, pick: Pick) -> Figure {
    Figure { name, help, kind: Kind::Counter, pick }
}

const fn gauge(name: &'static str, help: &'static str, pick: Pick) -> Figure {
    Figure { name, help, kind: Kind::Gauge, pick }
}

const FIGURES: [Figure; 7] = [
    counter("reconnects", "Connections made after one was lost.", |f| f.reconnects),
    counter("sent", "PUBLISH packets sent, repetitions included.", |f| f.sent),
    counter("received", "PUBLISH packets received, repetitions included.", |f| f.received),
    counter(
        "acknowledged",
        "Messages of QoS 1 and 2 whose exchange the other broker has ended well.",
        |f| f.acknowledged,
    ),
    gauge("buffered_messages", "Messages that wait, those in flight not counted.", |f| {
        f.buffered_messages
    }),
    gauge("buffered_bytes", "Bytes of messages that wait.", |f| f.buffered_bytes),
    gauge("inflight", "Messages sent and not acknowledged yet.", |f| f.inflight),
];

/// Messages that were dropped, by the reason.
const DROPPED: [(&str, Pick); 5] = [
    ("expired", |f| f.dropped_expired),
    ("full", |f| f.dropped_full),
    ("refused", |f| f.dropped_refused),
    ("too_large", |f| f.dropped_too_large),
    ("unmapped", |f| f.dropped_unmapped),
];

/// The answer to `/bridges`.
#[derive(Serialize)]
pub(super) struct Answer {
    bridges: Vec<Row>,
}

/// A bridge.
#[derive(Serialize)]
struct Row {
    name: String,
    remote: String,
    state: &'static str,
    connected: usize,
    #[serde(flatten)]
    figures: Flat,
    connections: Vec<Connection>,
}

/// One of its connections.
#[derive(Serialize)]
struct Connection {
    /// Counted from 1, as in its client identifier.
    connection: usize,
    state: &'static str,
    /// Seconds for which it has been in this state; absent before the first attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(flatten)]
    figures: Flat,
}

/// All figures side by side.
struct Flat(Figures);

impl Serialize for Flat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for figure in &FIGURES {
            map.serialize_entry(figure.name, &(figure.pick)(&self.0))?;
        }
        for (reason, pick) in DROPPED {
            map.serialize_entry(&format!("dropped_{reason}"), &pick(&self.0))?;
        }
        map.end()
    }
}

impl Answer {
    pub(super) fn of(bridges: &Bridges) -> Self {
        let now_ns = clock::now_ns();
        Self {
            bridges: bridges.status().into_iter().map(|status| Row::of(status, now_ns)).collect(),
        }
    }
}

impl Row {
    fn of(status: Status, now_ns: u64) -> Self {
        let connection = |(at, link): (usize, LinkStatus)| Connection {
            connection: at + 1,
            state: link.state.name(),
            for_s: (link.since_ns > 0)
                .then(|| now_ns.saturating_sub(link.since_ns) / 1_000_000_000),
            problem: link.problem,
            figures: Flat(link.figures),
        };
        Self {
            name: status.name,
            remote: status.remote,
            state: status.state.name(),
            connected: status.connected,
            figures: Flat(status.figures),
            connections: status.links.into_iter().enumerate().map(connection).collect(),
        }
    }
}

/// All metrics of bridges. It only reads atomics.
pub(super) fn write(exposition: &mut Exposition, bridges: &Bridges) {
    if bridges.is_empty() {
        return;
    }
    let all = bridges.status();
    let mut family = |name: &str, help: &str, kind: Kind, value: &dyn Fn(&Status) -> u64| {
        let mut family = exposition.family(&format!("tacho_bridge_{name}"), help, kind);
        for status in &all {
            family.sample(&[("bridge", &status.name)], value(status));
        }
    };
    let help = "Connections of the bridge, by the configuration.";
    family("connections", help, Kind::Gauge, &|status| status.links.len() as u64);
    let help = "Connections of the bridge that are up.";
    family("connections_up", help, Kind::Gauge, &|status| status.connected as u64);
    for figure in &FIGURES {
        let name = match figure.kind {
            Kind::Counter => format!("{}_total", figure.name),
            _ => figure.name.to_owned(),
        };
        family(&name, figure.help, figure.kind, &|status| (figure.pick)(&status.figures));
    }
    let help = "Messages dropped: they waited too long, there was no room, the other broker refused \
                them or does not take as large ones, or no rule makes a message of them.";
    let mut family = exposition.family("tacho_bridge_dropped_total", help, Kind::Counter);
    for status in &all {
        for (reason, pick) in DROPPED {
            let labels: [(&str, &dyn std::fmt::Display); 2] =
                [("bridge", &status.name), ("reason", &reason)];
            family.sample(&labels, pick(&status.figures));
        }
    }
}

/// Topics of `$SYS`, always the same ones in the same order, and their payloads.
pub(super) fn figures(bridges: &Bridges) -> Vec<(String, String)> {
    let mut values = Vec::new();
    for status in bridges.status() {
        let Status { name, state, figures, .. } = status;
        // What mosquitto says of its bridges: 1 or 0.
        let up = u8::from(state == State::Up);
        values.push((format!("connection/{name}/state"), up.to_string()));
        values.push((format!("bridges/{name}/state"), state.name().to_owned()));
        values.push((format!("bridges/{name}/connections"), status.links.len().to_string()));
        values.push((format!("bridges/{name}/connected"), status.connected.to_string()));
        for figure in &FIGURES {
            let value = (figure.pick)(&figures).to_string();
            values.push((format!("bridges/{name}/{}", figure.name), value));
        }
        values.push((format!("bridges/{name}/dropped"), figures.dropped().to_string()));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_every_figure_once() {
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
            state: State::Partly,
            connected: 1,
            figures,
            links: vec![
                link(State::Up, None, 1_000_000_000),
                link(State::Down, Some("refused"), 0),
            ],
        };
        let json = serde_json::to_value(Row::of(status, 5_500_000_000)).unwrap();
        assert_eq!((&json["state"], &json["connected"]), (&"partly".into(), &1.into()));
        assert_eq!((&json["sent"], &json["dropped_refused"]), (&7.into(), &2.into()));
        let [one, two] = [0, 1].map(|at| &json["connections"][at]);
        assert_eq!((&one["for_s"], &two["problem"]), (&4.into(), &"refused".into()));
        assert!(one.get("problem").is_none() && two.get("for_s").is_none());
        assert_eq!(two["connection"], 2);
        // Nothing that a bridge counts is left out.
        let all = Figures {
            reconnects: 1,
            sent: 1,
            received: 1,
            acknowledged: 1,
            dropped_expired: 1,
            dropped_full: 1,
            dropped_refused: 1,
            dropped_too_large: 1,
            dropped_unmapped: 1,
            buffered_messages: 1,
            buffered_bytes: 1,
            inflight: 1,
        };
        let map = serde_json::to_value(Flat(all)).unwrap();
        assert_eq!(map.as_object().unwrap().len(), 12);
        assert!(map.as_object().unwrap().values().all(|value| *value == 1));
    }
}
