//! What to run: a fully resolved, pure-data description of clients, streams and phases.
//!
//! Everything that a scenario leaves to variables or templates is spelled out here: every
//! client has its identifier, every stream its topic. Numbers of streams and clients are their
//! positions: stream 0 is the first stream of the first client of the first group, and so on.

use std::sync::Arc;

use tacho_codec::{QoS, RetainHandling, Version};

mod action;
mod check;
mod expect;
mod life;
mod pace;
mod ports;
mod target;

pub use action::{Action, Deed};
pub use check::PlanError;
pub use expect::{Bridge, SharedGroup};
pub use life::{DeclaredLoss, Offline, Reconnect, Will};
pub(crate) use pace::jmeter_delay_ms;
pub use pace::{Arrivals, CatchUp, Pace, PhasePolicy, Rate, RateFrom, Scale, Trace};
pub use tacho_net::local_port_range;
pub use target::{Target, Transport};

use crate::payload::Template;

/// Position of a client in the plan, counted through all groups in order.
pub type ClientIndex = u32;

/// Position of a publish stream in the plan, counted through all clients in order. It is what
/// the payload header carries as the publisher.
pub type StreamIndex = u32;

/// A run, resolved.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Identifies the run in every payload (the low 24 bits are used), so that messages left
    /// over from another run are recognised.
    pub run_id: u32,
    /// Seed of the payload fill and of random phases.
    pub seed: u64,
    /// Generator threads, at least 1.
    pub threads: usize,
    /// Thread `i` is pinned to `cpus[i % cpus.len()]`; empty pins nothing.
    pub cpus: Vec<usize>,
    /// How threads wait for the next due message.
    pub timing: Timing,
    /// Where clients connect; client `i` takes `targets[i % targets.len()]` unless its group
    /// has targets of its own.
    pub targets: Vec<Target>,
    /// Source addresses to connect from, taken in turn; empty leaves the choice to the system.
    pub sources: Vec<std::net::IpAddr>,
    /// The clients.
    pub groups: Vec<Group>,
    /// Messages that the brokers pass on to each other by their own configuration.
    pub bridges: Vec<Bridge>,
    /// Which receiver must get which stream; [`Plan::derive_routes`] computes it from the
    /// filters. A message that arrives without a route is reported as unexpected.
    pub routes: Vec<Route>,
    /// What to do, in this order.
    pub phases: Vec<Phase>,
    /// What happens to clients while a window is measured; at most [`Action::MAX`].
    pub actions: Vec<Action>,
    /// Measure the round trip to every target this often, on a connection of its own by PINGREQ
    /// and PINGRESP; `None` does not.
    pub rtt_every_ns: Option<u64>,
    /// A message written more than this after its intended time counts as an overrun;
    /// [`Plan::OVERRUN_AFTER_NS`] is the usual value.
    pub overrun_after_ns: u64,
}

/// How a generator thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timing {
    /// Sleep until the next message is due (a precise timer).
    #[default]
    Sleep,
    /// Never sleep. Needs a core per thread; busy time then excludes idle spinning.
    Spin,
    /// Look at schedules and sockets twice in a millisecond, so that one write takes what came due
    /// for a connection. Costs the least; all latencies are late by up to that.
    Batch,
}

/// Clients that connect the same way and publish the same kinds of streams.
#[derive(Debug, Clone)]
pub struct Group {
    /// Name for reports.
    pub name: String,
    /// Targets of this group only; empty means the plan's.
    pub targets: Vec<Target>,
    /// Protocol version.
    pub version: Version,
    /// Begin without the session of an earlier run, if there is one. With 3.x and a session
    /// that outlives its connection that takes a connection of its own before the first one.
    pub clean_start: bool,
    /// How long sessions outlive their connections, in seconds; 0 ends them together. 3.x knows
    /// no such time: anything but 0 asks for a session that stays (clean session 0), and so does
    /// `clean_start: false`.
    pub session_expiry_s: u32,
    /// Keep-alive in seconds; 0 turns it off.
    pub keep_alive_s: u16,
    /// Connections opened per second by the whole group; `None` opens them all at once.
    pub connects_per_s: Option<f64>,
    /// Connections closed per second at the end; `None` closes them all at once.
    pub disconnects_per_s: Option<f64>,
    /// QoS 1 and 2 messages one client may have unacknowledged at a time (the broker's receive
    /// maximum may lower it). Messages beyond it wait, and their send delay grows.
    pub inflight_max: u16,
    /// Messages of one client that may wait for the inflight window before further ones are
    /// dropped and counted.
    pub waiting_max: u32,
    /// Will of the clients that have a [`Client::will_topic`].
    pub will: Option<Will>,
    /// All clients leave during the load and come back.
    pub offline: Option<Offline>,
    /// All clients leave in [`Phase::Offline`] and come back to their sessions in
    /// [`Phase::Resume`].
    pub absent: bool,
    /// Answer requests with their own payload, each to its response topic, with its correlation
    /// data and at the QoS at which it came.
    pub answers: bool,
    /// What follows an unexpected end of a connection; without it the client has failed.
    pub reconnect: Option<Reconnect>,
    /// Losses of messages to these clients that are no violation.
    pub expect_losses: Option<DeclaredLoss>,
    /// The kinds of streams that clients of this group publish.
    pub publish: Vec<PublishBlock>,
    /// The clients.
    pub clients: Vec<Client>,
}

/// One virtual client.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// Client identifier.
    pub id: String,
    /// User name, if any.
    pub username: Option<String>,
    /// Password, if any.
    pub password: Option<Vec<u8>>,
    /// Topic of its will, if the group has one.
    pub will_topic: Option<String>,
    /// What it publishes.
    pub streams: Vec<Stream>,
    /// What it subscribes to.
    pub subscriptions: Vec<Subscription>,
}

/// What streams of one kind have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishBlock {
    /// QoS of the PUBLISH.
    pub qos: QoS,
    /// Retain flag of the PUBLISH.
    pub retain: bool,
    /// What messages consist of.
    pub payload: Payload,
    /// When messages are due.
    pub pace: Pace,
}

/// What messages consist of. Whatever it is, each message carries run, stream, sequence number
/// and intended time, and every byte is checked on receipt.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// The binary header and random bytes, see [`payload`](crate::payload).
    Random {
        /// Size, header included; at least [`Plan::PAYLOAD_BYTES_MIN`].
        bytes: u32,
    },
    /// The binary header and zeros.
    Zeros {
        /// Size, header included; at least [`Plan::PAYLOAD_BYTES_MIN`].
        bytes: u32,
    },
    /// Text with a printable header: fixed, with fields, from a file or from rows of a table.
    Text(Arc<Template>),
    /// As JMeter's MQTT samplers write it: the time of sending in milliseconds and
    /// `ts_sep_flag`, then random text from JMeter's alphabet. The random text begins with the
    /// printable header.
    Jmeter {
        /// Size of the random text; at least [`Plan::TEXT_BYTES_MIN`].
        bytes: u32,
        /// Write the time and its separator in front: 24 more bytes.
        timestamp: bool,
    },
}

impl Payload {
    /// Size of the largest message of `client` to `topic`.
    pub fn bytes_max(&self, client: &str, topic: &str) -> usize {
        match self {
            Self::Random { bytes } | Self::Zeros { bytes } => *bytes as usize,
            Self::Text(template) => template.bytes_max(client, topic),
            Self::Jmeter { bytes, timestamp } => {
                *bytes as usize + if *timestamp { crate::payload::JMETER_STAMP_BYTES } else { 0 }
            }
        }
    }
}

/// One publisher stream: a client that publishes to one topic.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Topic name.
    pub topic: String,
    /// Index into [`Group::publish`].
    pub block: usize,
    /// Its messages are requests (5.0 only): groups that [answer](Group::answers) do so here.
    pub response_topic: Option<String>,
}

impl Stream {
    /// A stream whose messages nobody answers.
    pub fn new(topic: impl Into<String>, block: usize) -> Self {
        Self { topic: topic.into(), block, response_topic: None }
    }
}

/// One topic filter of a client.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// Topic filter as sent; `$share/group/filter` for a shared one.
    pub filter: String,
    /// Maximum QoS asked for.
    pub qos: QoS,
    /// Do not send back what the client itself published (5.0 only).
    pub no_local: bool,
    /// Which retained messages the broker sends (5.0 only).
    pub retain_handling: RetainHandling,
}

impl Subscription {
    /// A filter without options.
    pub fn new(filter: impl Into<String>, qos: QoS) -> Self {
        let retain_handling = RetainHandling::Always;
        Self { filter: filter.into(), qos, no_local: false, retain_handling }
    }
}

/// One expectation: a receiver that must get every message of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    /// The publisher stream.
    pub stream: StreamIndex,
    /// Who must get it.
    pub receiver: Receiver,
    /// Effective QoS asked for: the lower one of the PUBLISH and the subscription. What the
    /// broker grants in its SUBACK may lower it further.
    pub qos: QoS,
    /// More than one filter of the receiver matches, so that the broker may deliver more than
    /// one copy; duplicates are then counted but are no violation.
    pub overlapping: bool,
}

/// Who receives: a client by its own filters, or a shared group as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Receiver {
    /// A client with a plain subscription.
    Client(ClientIndex),
    /// A shared group: exactly one of its members gets each message. Numbered by first
    /// appearance of the pair (group name, filter) in the plan, see [`Plan::shared_groups`].
    Shared(u32),
}

/// One step of the run. Phases run one after another; the engine reports each change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Phase {
    /// Open connections at each group's rate and wait for every CONNACK.
    Connect {
        /// A client without CONNACK is given up after this, counted from its own connect.
        timeout_ns: u64,
    },
    /// Subscribe and wait for every SUBACK.
    Subscribe {
        /// A client without SUBACK is given up after this, counted from its own SUBSCRIBE.
        timeout_ns: u64,
    },
    /// The clients of groups that are [absent](Group::absent) disconnect.
    Offline,
    /// One probe message per stream, repeated each second, until all receivers got it.
    Probe {
        /// The run fails when a receiver got none within this time.
        timeout_ns: u64,
    },
    /// Publish without measuring.
    WarmUp {
        /// Length.
        duration_ns: u64,
        /// Multiplies the rate of all open streams.
        scale: Scale,
    },
    /// Publish and measure. A phase with the same scale as the one before it goes on with the
    /// same schedule, without a break.
    Measure {
        /// Length of the window.
        duration_ns: u64,
        /// Multiplies the rate of all open streams.
        scale: Scale,
    },
    /// Stop publishing; those who were absent connect again, at their group's rate. Stands
    /// between a `Measure` and its `Drain`.
    Resume {
        /// An attempt to connect is given up after this.
        timeout_ns: u64,
    },
    /// Stop publishing and wait for outstanding messages, at most this long; then
    /// [`Event::Measured`](crate::Event::Measured) reports the window before it. A `Measure`
    /// without a `Drain` behind it gets one of zero length.
    Drain {
        /// Longest wait.
        timeout_ns: u64,
    },
    /// DISCONNECT all clients and close their connections.
    Disconnect,
}

impl Default for Plan {
    /// One thread, no clients, no phases.
    fn default() -> Self {
        Self {
            run_id: 0,
            seed: 1,
            threads: 1,
            cpus: Vec::new(),
            timing: Timing::Sleep,
            targets: Vec::new(),
            sources: Vec::new(),
            groups: Vec::new(),
            bridges: Vec::new(),
            routes: Vec::new(),
            phases: Vec::new(),
            actions: Vec::new(),
            rtt_every_ns: None,
            overrun_after_ns: Self::OVERRUN_AFTER_NS,
        }
    }
}

impl Group {
    /// Do its sessions outlive their connections?
    pub fn is_persistent(&self) -> bool {
        self.session_expiry_s > 0 || !self.version.is_v5() && !self.clean_start
    }
}

impl Default for Group {
    /// Clients of MQTT 5.0 with clean start that connect all at once and do nothing.
    fn default() -> Self {
        Self {
            name: String::new(),
            targets: Vec::new(),
            version: Version::V5,
            clean_start: true,
            session_expiry_s: 0,
            keep_alive_s: 60,
            connects_per_s: None,
            disconnects_per_s: None,
            inflight_max: 100,
            waiting_max: 100_000,
            will: None,
            offline: None,
            absent: false,
            answers: false,
            reconnect: None,
            expect_losses: None,
            publish: Vec::new(),
            clients: Vec::new(),
        }
    }
}

impl Plan {
    /// Smallest payload: the header.
    pub const PAYLOAD_BYTES_MIN: u32 = 24;
    /// Smallest random text: the printable header.
    pub const TEXT_BYTES_MIN: u32 = crate::payload::PRINTABLE_BYTES as u32;
    /// Usual threshold for an overrun: 1 ms.
    pub const OVERRUN_AFTER_NS: u64 = 1_000_000;

    /// All clients with their group, in order of [`ClientIndex`].
    pub fn clients(&self) -> impl Iterator<Item = (&Group, &Client)> {
        self.groups.iter().flat_map(|group| group.clients.iter().map(move |client| (group, client)))
    }

    /// All streams with their client and block, in order of [`StreamIndex`].
    ///
    /// # Panics
    /// When a stream names a block that its group does not have; [`Plan::check`] refuses such
    /// plans.
    pub fn streams(&self) -> impl Iterator<Item = (ClientIndex, &Stream, &PublishBlock)> {
        (0..).zip(self.clients()).flat_map(|(index, (group, client))| {
            client.streams.iter().map(move |stream| (index, stream, &group.publish[stream.block]))
        })
    }

    /// Where the client with this index, a member of `group`, connects to.
    pub fn target_of<'a>(&'a self, group: &'a Group, client: ClientIndex) -> Option<&'a Target> {
        let targets = if group.targets.is_empty() { &self.targets } else { &group.targets };
        targets.get(client as usize % targets.len().max(1))
    }

    /// Number of clients.
    pub fn client_count(&self) -> usize {
        self.groups.iter().map(|group| group.clients.len()).sum()
    }

    /// Messages per second that the open streams are due to publish at [`Scale::ONE`].
    pub fn offered_in_per_s(&self) -> f64 {
        self.streams().map(|(_, _, block)| block.pace.per_second().unwrap_or(0.0)).sum()
    }

    /// Deliveries per second that the open streams are due to cause at [`Scale::ONE`].
    pub fn offered_out_per_s(&self) -> f64 {
        let rates: Vec<f64> =
            self.streams().map(|(_, _, block)| block.pace.per_second().unwrap_or(0.0)).collect();
        let absent: Vec<bool> = match self.phases.contains(&Phase::Offline) {
            true => self.clients().map(|(group, _)| group.absent).collect(),
            false => Vec::new(),
        };
        // What is for those who are away is not due while it is published.
        let is_due = |route: &&Route| match route.receiver {
            Receiver::Client(client) => !absent.get(client as usize).copied().unwrap_or(false),
            Receiver::Shared(_) => true,
        };
        let due = self.routes.iter().filter(is_due);
        // Nothing added up is -0.
        due.map(|route| rates[route.stream as usize]).sum::<f64>() + 0.0
    }
}

#[cfg(test)]
pub(crate) mod tests;
