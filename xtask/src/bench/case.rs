//! The cases of the benchmark.

use super::attack::Attack;
use super::connects::{self, Way};
use super::figures::grouped;
use super::login::Method;
use super::routing::{RoutedSizes, Routing, RoutingCase};

/// One workload on one broker.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) kind: Kind,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// The echo floor at this many frames per second in, between the halves of the sockets.
    Floor { rate: u64, sockets: usize },
    /// A scenario against a broker.
    Load { subject: Subject, load: Load },
    /// Memory per idle connection.
    Idle { subject: Subject },
    /// Cost of a message among many filters.
    Routing(RoutingCase),
    /// Time and memory of a million subscriptions.
    Subscriptions,
    /// Repeated messages to 10,000 subscribers, with a scenario beside them.
    Burst,
    /// A scenario, with 100 pairs beside it whose figures they are.
    Beside { subject: Subject, load: Load },
    /// Latency of a disk sync.
    Disk,
    /// Bytes that a journal writes per byte of payload under a scenario.
    WrittenBytes { load: Load },
    /// Bytes that a journal writes for messages to a thousand sessions.
    FanOutBytes,
    /// A million messages for offline sessions, a kill, and their delivery.
    Offline,
    /// A scenario against so many shards, on cores of their own.
    Scaled { load: Load, shards: usize },
    /// A scenario while clients break the rules.
    Abuse { load: Load, clients: usize },
    /// A scenario while clients hold unfinished packets, which then leave.
    Partial { load: Load, clients: usize },
    /// An honest client while others attack the broker, or a bare forwarder instead.
    Attack { attack: Attack, bare: bool },
    /// A scenario while clients with many subscriptions, plain or shared, leave at once.
    Leaving { load: Load, shared: bool },
    /// Connections, as many as possible or thousands at once.
    Connects { subject: Subject, way: Way, load: Load },
    /// Logins, at a moderate rate or as many as possible.
    Login { method: Method, load: Load },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Tacho {
        shards: usize,
    },
    /// One shard and a data directory.
    Durable,
    Mosquitto,
    /// Another broker, by its key in `cargo xtask results`.
    Peer(&'static str),
    /// No broker: what passing messages on costs at least.
    Forwarder,
}

/// A scenario with its variables.
#[derive(Clone)]
pub(super) struct Load {
    pub(super) scenario: &'static str,
    pub(super) vars: Vec<(&'static str, String)>,
}

impl Case {
    /// Whether it measures Tacho, not a peer or the machine.
    pub(super) fn is_of_tacho(&self) -> bool {
        match &self.kind {
            Kind::Floor { .. } | Kind::Disk => false,
            Kind::Load { subject, .. }
            | Kind::Idle { subject }
            | Kind::Beside { subject, .. }
            | Kind::Connects { subject, .. } => subject.is_of_tacho(),
            Kind::Attack { bare, .. } => !bare,
            Kind::Login { method, .. } => method.is_of_tacho(),
            _ => true,
        }
    }

    /// The same case under the name of the program compared with.
    pub(super) fn of_other_program(&self) -> Self {
        Self { name: format!("{}@other", self.name), ..self.clone() }
    }

    /// Whether it runs in this round; long cases with stable results run once.
    pub(super) fn is_due(&self, round: usize) -> bool {
        let once = matches!(self.kind, Kind::Offline | Kind::FanOutBytes);
        !once || round == 1
    }
}

impl Load {
    /// Whether its duration is a variable.
    pub(super) fn has_length(&self) -> bool {
        self.scenario != "persistent"
    }
}

pub(super) const FAN_OUT: &str = "bench/scenarios/fan-out.toml";
pub(super) const CLOSED: &str = "bench/scenarios/closed.toml";

/// Every case, in the order of the first round.
pub(super) fn all() -> Vec<Case> {
    let tacho = Subject::Tacho { shards: 1 };
    let two_shards = Subject::Tacho { shards: 2 };
    let mut cases = vec![floor(20), floor(60)];
    for tps_k in [20, 60] {
        for qos in [0, 1] {
            cases.push(symmetric(tacho, qos, tps_k));
            cases.push(symmetric(Subject::Mosquitto, qos, tps_k));
        }
    }
    for qos in [0, 1] {
        cases.push(symmetric(two_shards, qos, 60));
    }
    cases.push(symmetric(tacho, 1, 30));
    cases.push(symmetric(tacho, 2, 30));
    for subject in [tacho, Subject::Mosquitto] {
        for qos in [0, 1] {
            cases.push(fan_out(subject, qos, 100));
            cases.push(closed(subject, qos));
        }
    }
    cases.extend([0, 1].map(|qos| symmetric(Subject::Forwarder, qos, 60)));
    cases.extend(with_forwarder_alone());
    cases.extend([tacho, Subject::Mosquitto].map(idle));
    cases.push(Case {
        name: "tacho_abuse_20k".to_owned(),
        what: "symmetric, QoS 1, 20K TPS, while 1,000 bad clients try".to_owned(),
        kind: Kind::Abuse { load: symmetric_load(1, 20), clients: 1_000 },
    });
    cases.push(Case {
        name: "tacho_partial_20k".to_owned(),
        what: "symmetric, QoS 1, 20K TPS, while 1,000 clients stop within a PUBLISH of 1 MB"
            .to_owned(),
        kind: Kind::Partial { load: symmetric_load(1, 20), clients: 1_000 },
    });
    cases.extend([false, true].map(leaving));
    for attack in Attack::ALL {
        cases.extend([false, true].map(|bare| attacked(attack, bare)));
    }
    cases.extend(Way::ALL.into_iter().flat_map(connects));
    cases.extend(Method::ALL.into_iter().flat_map(logins));
    cases.push(fan_in());
    cases.push(Case {
        name: "tacho_burst_10k".to_owned(),
        what: "1 publisher to 10,000 subscribers, QoS 1, and 100 pairs beside".to_owned(),
        kind: Kind::Burst,
    });
    cases.extend(routing());
    cases.push(Case {
        name: "tacho_subscribe_1m".to_owned(),
        what: "1,000,000 subscriptions of 1,000 clients: time and memory".to_owned(),
        kind: Kind::Subscriptions,
    });
    cases
}

/// Where Tacho is compared with a bare forwarder alone, since no other broker keeps up.
pub(super) fn with_forwarder_alone() -> Vec<Case> {
    let both = [Subject::Tacho { shards: 1 }, Subject::Forwarder];
    let fan_outs = [0, 1].map(|qos| both.map(|subject| fan_out(subject, qos, 160)));
    fan_outs.into_iter().flatten().chain(both.map(fan_out_beside)).collect()
}

/// Connections one after the other and at once, with Tacho and with mosquitto.
fn connects(way: Way) -> Vec<Case> {
    let (what, clients) = (way.what(), grouped(way.storm_clients() as f64));
    let brokers = [Subject::Tacho { shards: 1 }, Subject::Mosquitto];
    let case = |subject: Subject, storm, what: String, scenario, vars| Case {
        name: format!("{}_connect_{storm}{}", subject.name(), way.name()),
        what,
        kind: Kind::Connects { subject, way, load: Load { scenario, vars } },
    };
    let each = |subject| {
        let most = format!("connections by {what}, as many as possible");
        let storm = format!("{clients} clients come back at once by {what}, 50 pairs beside");
        [
            case(subject, "", most, "login", Way::one_by_one()),
            case(subject, "storm_", storm, connects::STORM, way.storm()),
        ]
    };
    brokers.into_iter().flat_map(each).collect()
}

/// As many logins as possible, and at a moderate rate.
fn logins(method: Method) -> [Case; 2] {
    let case = |suffix, rate: u64, how: String| {
        // Users that log in once are more than their logins.
        let (users, warmup) = if method.is_once() { (15_000, "0s") } else { (50, "4s") };
        let vars = vec![
            ("users", users.to_string()),
            ("rate", rate.to_string()),
            ("warmup", warmup.to_owned()),
            ("drain", "2s".to_owned()),
        ];
        Case {
            name: format!("{}_{suffix}", method.name()),
            what: format!("logins by {}, {how}", method.what()),
            kind: Kind::Login { method, load: Load { scenario: "login", vars } },
        }
    };
    let paced = method.paced_per_s();
    [
        case("most", method.most_per_s(), "as many as possible".to_owned()),
        case("paced", paced, format!("{paced} per second")),
    ]
}

fn leaving(shared: bool) -> Case {
    let (name, what) = if shared { ("_shared", "shared ") } else { ("", "") };
    Case {
        name: format!("tacho_leaving_20k{name}"),
        what: format!(
            "symmetric, QoS 1, 20K TPS, while 1,000 clients with 1,000 {what}subscriptions leave"
        ),
        kind: Kind::Leaving { load: symmetric_load(1, 20), shared },
    }
}

fn attacked(attack: Attack, bare: bool) -> Case {
    let (subject, beside) = if bare { ("forwarder", "a bare forwarder, ") } else { ("tacho", "") };
    Case {
        name: format!("{subject}_attack_{}", attack.name()),
        what: format!("{beside}100 messages/s of an honest client while: {}", attack.what()),
        kind: Kind::Attack { attack, bare },
    }
}

fn fan_in() -> Case {
    let vars = vec![
        ("target_throughput", "15000".to_owned()),
        ("ramp_up", "1s".to_owned()),
        ("warmup", "2s".to_owned()),
    ];
    Case {
        name: "tacho_fanin_qos1_30k".to_owned(),
        what: "2,000 publishers, a shared group of 5 per 100, QoS 1, 30K TPS".to_owned(),
        kind: Kind::Load {
            subject: Subject::Tacho { shards: 1 },
            load: Load { scenario: "fan-in", vars },
        },
    }
}

fn routing() -> [Case; 4] {
    let case = |name: &str, what: &str, routing| Case {
        name: format!("tacho_routes_{name}"),
        what: format!("20K publishes/s among 100,000 filters: {what}"),
        kind: Kind::Routing(RoutingCase { routing, sizes: RoutedSizes::USUAL }),
    };
    [
        case("exact", "exact, 10,000 topics", Routing::Exact),
        case("wildcards", "30 % with +, 10 % with #, 10,000 topics", Routing::Wildcards),
        case("unseen", "the same, every topic new", Routing::Unseen),
        case("churn", "exact, 1,000 subscriptions change per second", Routing::Churn),
    ]
}

pub(super) fn floor(tps_k: u64) -> Case {
    Case {
        name: format!("floor_{tps_k}k"),
        what: format!("128-byte frames echoed without a broker, {tps_k}K in + out per second"),
        kind: Kind::Floor { rate: tps_k * 500, sockets: 2_000 },
    }
}

pub(super) fn symmetric(subject: Subject, qos: u8, tps_k: u64) -> Case {
    Case {
        name: format!("{}_qos{qos}_{tps_k}k", subject.name()),
        what: format!("symmetric 1000 to 1000, 128 B, QoS {qos}, {tps_k}K TPS (in + out)"),
        kind: Kind::Load { subject, load: symmetric_load(qos, tps_k) },
    }
}

fn idle(subject: Subject) -> Case {
    Case {
        name: format!("{}_idle_10k", subject.name()),
        what: "10,000 connections, without a subscription and with one each: memory".to_owned(),
        kind: Kind::Idle { subject },
    }
}

pub(super) fn symmetric_load(qos: u8, tps_k: u64) -> Load {
    let throughput = (tps_k * 500).to_string();
    let vars = vec![
        ("qos", qos.to_string()),
        ("target_throughput", throughput),
        ("ramp_up", "1s".to_owned()),
        ("warmup", "2s".to_owned()),
    ];
    Load { scenario: "symmetric", vars }
}

/// So many thousand deliveries per second.
pub(super) fn fan_out(subject: Subject, qos: u8, out_k: u64) -> Case {
    let rate = if out_k == 100 { String::new() } else { out_k.to_string() };
    Case {
        name: format!("{}_fanout{rate}_qos{qos}", subject.name()),
        what: format!("10 publishers to 2,000 subscribers each, QoS {qos}, {out_k}K out/s"),
        kind: Kind::Load { subject, load: fan_out_load(qos, out_k) },
    }
}

fn fan_out_load(qos: u8, out_k: u64) -> Load {
    let per_s = (out_k * 1_000 / 2_000).to_string();
    let vars = vec![("qos", qos.to_string()), ("target_throughput", per_s)];
    Load { scenario: FAN_OUT, vars }
}

/// 100 pairs beside a fan-out that nearly fills the core of a forwarder.
fn fan_out_beside(subject: Subject) -> Case {
    Case {
        name: format!("{}_beside_fanout", subject.name()),
        what: "100 pairs at QoS 1 beside a fan-out of 150K out/s at QoS 0".to_owned(),
        kind: Kind::Beside { subject, load: fan_out_load(0, 150) },
    }
}

fn closed(subject: Subject, qos: u8) -> Case {
    let vars = vec![("qos", qos.to_string())];
    Case {
        name: format!("{}_closed_qos{qos}", subject.name()),
        what: format!("closed mode, window 16, 100 to 100, QoS {qos}"),
        kind: Kind::Load { subject, load: Load { scenario: CLOSED, vars } },
    }
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Tacho { shards: 1 } => "tacho",
            Self::Tacho { .. } => "tacho2",
            Self::Durable => "durable",
            Self::Mosquitto => "mosquitto",
            Self::Peer(key) => key,
            Self::Forwarder => "forwarder",
        }
    }

    fn is_of_tacho(self) -> bool {
        match self {
            Self::Tacho { .. } | Self::Durable => true,
            Self::Mosquitto | Self::Peer(_) | Self::Forwarder => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bench::login;

    #[test]
    fn names_are_unique_and_those_of_logins_are_found_together() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        let logins = names.iter().filter(|name| name.contains(login::PART));
        assert_eq!(logins.count(), 2 * Method::ALL.len());
    }
}
