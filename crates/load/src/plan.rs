//! The plan: a fully resolved, pure-data description of clients, streams and phases.
//!
//! Variables and templates of scenarios are already expanded: every client has its identifier,
//! every stream its topic. Streams and clients are numbered by position: stream 0 is the first
//! stream of the first client of the first group, and so on.

use serde::{Deserialize, Serialize};
use tacho_access::TokenClaims;
use tacho_codec::{QoS, RetainHandling, Version};
use tacho_net::tls::TlsIdentity;

mod action;
mod authentication;
mod check;
mod expect;
mod life;
mod login;
mod pace;
mod ports;
mod receive;
mod target;

pub use crate::index::{ClientIndex, StreamIndex};
pub use action::{Action, ActionKind};
pub use authentication::{Authentication, TokenLogin, TokenPlace};
pub use check::{PlanError, check_text};
pub use expect::{Bridge, SharedGroup};
pub use life::{DeclaredLoss, Offline, Reconnect, Will};
pub use login::{Login, LoginKind};
pub(crate) use pace::jmeter_delay_ms;
pub use pace::{Arrivals, CatchUp, Pace, PhasePolicy, Rate, RateFrom, Scale, Trace};
pub use tacho_net::local_port_range;
pub use target::{Target, Transport};

use crate::payload::Payload;

/// A resolved run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Identifies the run in every payload (low 24 bits), so that messages of other runs are
    /// recognised.
    pub run_id: u32,
    /// Seed of the payload fill and of random phases.
    pub seed: u64,
    /// Generator threads, at least 1.
    pub threads: usize,
    /// Thread `i` is pinned to `cpus[i % cpus.len()]`; empty pins nothing.
    pub cpus: Vec<usize>,
    /// How threads wait for the next due message.
    pub timing: Timing,
    /// Broker addresses; client `i` connects to `targets[i % targets.len()]` unless its group has
    /// targets of its own.
    pub targets: Vec<Target>,
    /// Source addresses of connections, used in turn; empty leaves the choice to the system.
    pub sources: Vec<std::net::IpAddr>,
    /// The clients.
    pub groups: Vec<Group>,
    /// Bridges that the brokers have by their own configuration.
    pub bridges: Vec<Bridge>,
    /// The streams that each receiver must receive; [`Plan::derive_routes`] computes them from the
    /// filters. A message without a route is reported as unexpected.
    #[serde(skip)]
    pub routes: Vec<Route>,
    /// The phases of the run, in order.
    pub phases: Vec<Phase>,
    /// Actions on clients during the measured window; at most [`Action::MAX`].
    pub actions: Vec<Action>,
    /// Budget in bytes for incomplete packets from brokers, over all clients;
    /// [`Plan::receive_bytes_of_machine`] suggests one. A client whose packet exceeds it fails.
    pub receive_bytes_max: u64,
    /// Interval at which the round trip to every target is measured by PINGREQ and PINGRESP, on a
    /// dedicated connection; `None` disables it.
    pub rtt_every_ns: Option<u64>,
    /// A message written more than this behind schedule counts as an overrun;
    /// [`Plan::OVERRUN_AFTER_NS`] is the usual value.
    pub overrun_after_ns: u64,
}

/// How a generator thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Timing {
    /// Sleep until the next message is due (a precise timer).
    #[default]
    Sleep,
    /// Never sleep. Requires a core per thread; busy time excludes spinning.
    Spin,
    /// Sleep until shortly before the next message is due, then spin; spin as well while answers
    /// are likely, and at most [`Timing::SPIN_BUDGET_PERCENT`] of the time. Requires a core per
    /// thread; busy time excludes spinning.
    SleepAndSpin,
    /// Serve schedules and sockets twice per millisecond, so that one write carries all messages
    /// due for a connection. Uses the least CPU; all latencies increase by up to that interval.
    Batch,
}

impl Timing {
    /// Share of its core that a thread may spin with [`Timing::SleepAndSpin`], in percent.
    pub const SPIN_BUDGET_PERCENT: u8 = 95;
}

/// Clients with the same connection parameters and kinds of streams.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Group {
    /// Name for reports.
    pub name: String,
    /// Targets of this group only; empty means the plan's.
    pub targets: Vec<Target>,
    /// Protocol version.
    #[serde(with = "crate::wire::version")]
    pub version: Version,
    /// Discard the session of an earlier run. With 3.x and a session that outlives its connection,
    /// this takes an additional connection before the first one.
    pub clean_start: bool,
    /// Session expiry interval in seconds; 0 ends sessions with their connections. 3.x has no
    /// expiry interval: any other value requests a persistent session (clean session 0), and so
    /// does `clean_start: false`.
    pub session_expiry_s: u32,
    /// How the clients prove who they are.
    #[serde(with = "authentication::form")]
    pub authentication: Authentication,
    /// Keep-alive in seconds; 0 disables it.
    pub keep_alive_s: u16,
    /// Connections opened per second by the whole group; `None` opens them all at once.
    pub connects_per_s: Option<f64>,
    /// Connections closed per second at the end; `None` closes them all at once.
    pub disconnects_per_s: Option<f64>,
    /// Inflight window of one client: unacknowledged messages of QoS 1 and 2 (the broker's receive
    /// maximum may lower it). Further messages wait, and their send delay grows.
    pub inflight_max: u16,
    /// Messages of one client that may wait for the inflight window; further ones are dropped and
    /// counted.
    pub waiting_max: u32,
    /// Will of the clients that have a [`Client::will_topic`].
    pub will: Option<Will>,
    /// All clients disconnect during the load and return to their sessions.
    pub offline: Option<Offline>,
    /// All clients disconnect in [`Phase::Offline`] and return to their sessions in
    /// [`Phase::Resume`].
    pub absent: bool,
    /// Answer each request with its own payload, to its response topic, with its correlation data
    /// and at its QoS.
    pub answers: bool,
    /// The Maximum Packet Size in bytes that CONNECT announces (5.0), and the largest packet that
    /// these clients accept; `None` announces nothing, see [`Plan::packet_bytes_accepted`].
    pub packet_size_max: Option<u32>,
    /// How clients reconnect after an unexpected end of their connection; without it they fail.
    pub reconnect: Option<Reconnect>,
    /// Declared losses of messages to these clients, which are no violation.
    pub expect_losses: Option<DeclaredLoss>,
    /// The clients do nothing but log in, again and again.
    pub login: Option<Login>,
    /// The kinds of streams of this group's clients.
    pub publish: Vec<PublishBlock>,
    /// The clients.
    pub clients: Vec<Client>,
}

/// One virtual client.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Client {
    /// Client identifier.
    pub id: String,
    /// User name, if any.
    pub username: Option<String>,
    /// Password, if any.
    pub password: Option<Vec<u8>>,
    /// Its own certificate, where it is not that of the [`Transport`].
    #[serde(skip)]
    pub identity: Option<TlsIdentity>,
    /// What its tokens claim, if its group logs in by tokens.
    #[serde(skip)]
    pub claims: Option<TokenClaims>,
    /// Topic of its will, if the group has one.
    pub will_topic: Option<String>,
    /// Its publisher streams.
    pub streams: Vec<Stream>,
    /// Its subscriptions.
    pub subscriptions: Vec<Subscription>,
}

/// The common properties of streams of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishBlock {
    /// QoS of the PUBLISH.
    #[serde(with = "crate::wire::qos")]
    pub qos: QoS,
    /// Retain flag of the PUBLISH.
    pub retain: bool,
    /// Payload of the messages.
    pub payload: Payload,
    /// When messages are due.
    pub pace: Pace,
}

/// One publisher stream: a client that publishes to one topic.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stream {
    /// Topic name.
    pub topic: String,
    /// Index into [`Group::publish`].
    pub block: usize,
    /// Its messages are requests (5.0 only), which groups that [answer](Group::answers) answer to
    /// this topic.
    pub response_topic: Option<String>,
}

impl Stream {
    /// A stream without a response topic.
    pub fn new(topic: impl Into<String>, block: usize) -> Self {
        Self { topic: topic.into(), block, response_topic: None }
    }
}

/// One topic filter of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Subscription {
    /// Topic filter as sent; `$share/group/filter` for a shared one.
    pub filter: String,
    /// Maximum QoS asked for.
    #[serde(with = "crate::wire::qos")]
    pub qos: QoS,
    /// No Local: exclude the client's own messages (5.0 only).
    pub no_local: bool,
    /// Which retained messages the broker sends (5.0 only).
    #[serde(with = "crate::wire::retain_handling")]
    pub retain_handling: RetainHandling,
}

impl Subscription {
    /// A filter without options.
    pub fn new(filter: impl Into<String>, qos: QoS) -> Self {
        let retain_handling = RetainHandling::Always;
        Self { filter: filter.into(), qos, no_local: false, retain_handling }
    }
}

/// An expectation: the receiver must receive every message of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    /// The publisher stream.
    pub stream: StreamIndex,
    /// The receiver.
    pub receiver: Receiver,
    /// Requested effective QoS: the lower one of PUBLISH and subscription. The SUBACK may lower it
    /// further.
    pub qos: QoS,
    /// Several filters of the receiver match, so that the broker may deliver several copies;
    /// duplicates are counted but are no violation.
    pub overlapping: bool,
}

/// A receiver: a client by its own filters, or a shared group as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Receiver {
    /// A client with a plain subscription.
    Client(ClientIndex),
    /// A shared group: exactly one member receives each message. Numbered by first appearance of
    /// the pair (group name, filter) in the plan, see [`Plan::shared_groups`].
    Shared(u32),
}

/// One step of the run. Phases run one after another; the engine reports each change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Open connections at each group's rate and wait for every CONNACK.
    Connect {
        /// Timeout of each client for CONNACK, from its own connect.
        timeout_ns: u64,
    },
    /// Subscribe and wait for every SUBACK.
    Subscribe {
        /// Timeout of each client for SUBACK, from its own SUBSCRIBE.
        timeout_ns: u64,
    },
    /// The clients of [absent](Group::absent) groups disconnect.
    Offline,
    /// One probe message per stream, repeated every second until all receivers have received it.
    Probe {
        /// The run fails when a receiver has received none within this time.
        timeout_ns: u64,
    },
    /// Publish without measuring.
    WarmUp {
        /// Length.
        duration_ns: u64,
        /// Multiplies the rate of all open streams.
        scale: Scale,
    },
    /// Publish and measure. A phase with the same scale as its predecessor continues its schedule
    /// without a break.
    Measure {
        /// Length of the window.
        duration_ns: u64,
        /// Multiplies the rate of all open streams.
        scale: Scale,
    },
    /// Stop publishing; absent clients reconnect at their group's rate. Comes between a `Measure`
    /// and its `Drain`.
    Resume {
        /// Timeout of an attempt to connect.
        timeout_ns: u64,
    },
    /// Stop publishing and wait for messages in flight; then
    /// [`Event::Measured`](crate::Event::Measured) reports the preceding window. A `Measure`
    /// without a `Drain` gets one of zero length.
    Drain {
        /// Longest wait.
        timeout_ns: u64,
    },
    /// DISCONNECT all clients and close their connections.
    Disconnect,
}

impl Phase {
    /// Whether messages go by their schedules.
    pub(crate) const fn is_load(&self) -> bool {
        matches!(self, Self::WarmUp { .. } | Self::Measure { .. })
    }
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
            receive_bytes_max: Self::RECEIVE_BYTES_MAX,
            rtt_every_ns: None,
            overrun_after_ns: Self::OVERRUN_AFTER_NS,
        }
    }
}

impl Group {
    /// Whether its sessions outlive their connections.
    pub fn is_persistent(&self) -> bool {
        self.session_expiry_s > 0 || !self.version.is_v5() && !self.clean_start
    }
}

impl Default for Group {
    /// MQTT 5.0 with clean start, connecting all at once, without streams.
    fn default() -> Self {
        Self {
            name: String::new(),
            targets: Vec::new(),
            version: Version::V5,
            clean_start: true,
            session_expiry_s: 0,
            authentication: Authentication::Password,
            keep_alive_s: 60,
            connects_per_s: None,
            disconnects_per_s: None,
            inflight_max: 100,
            waiting_max: 100_000,
            will: None,
            offline: None,
            absent: false,
            answers: false,
            packet_size_max: None,
            reconnect: None,
            expect_losses: None,
            login: None,
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
        ClientIndex::all().zip(self.clients()).flat_map(|(index, (group, client))| {
            client.streams.iter().map(move |stream| (index, stream, &group.publish[stream.block]))
        })
    }

    /// The target of the client with this index, which belongs to `group`.
    pub fn target_of<'a>(&'a self, group: &'a Group, client: ClientIndex) -> Option<&'a Target> {
        let targets = if group.targets.is_empty() { &self.targets } else { &group.targets };
        targets.get(client.index() % targets.len().max(1))
    }

    /// Number of clients.
    pub fn client_count(&self) -> usize {
        self.groups.iter().map(|group| group.clients.len()).sum()
    }

    /// Messages per second due from open streams at [`Scale::ONE`].
    pub fn offered_in_per_s(&self) -> f64 {
        self.streams().map(|(_, _, block)| block.pace.per_second().unwrap_or(0.0)).sum()
    }

    /// Deliveries per second due from open streams at [`Scale::ONE`].
    pub fn offered_out_per_s(&self) -> f64 {
        let rates: Vec<f64> =
            self.streams().map(|(_, _, block)| block.pace.per_second().unwrap_or(0.0)).collect();
        let absent: Vec<bool> = match self.phases.contains(&Phase::Offline) {
            true => self.clients().map(|(group, _)| group.absent).collect(),
            false => Vec::new(),
        };
        // Messages to absent clients are not due while they are published.
        let is_due = |route: &&Route| match route.receiver {
            Receiver::Client(client) => !absent.get(client.index()).copied().unwrap_or(false),
            Receiver::Shared(_) => true,
        };
        let due = self.routes.iter().filter(is_due);
        // The sum of an empty iterator of f64 is -0.
        due.map(|route| rates[route.stream.index()]).sum::<f64>() + 0.0
    }
}

#[cfg(test)]
pub(crate) mod tests;
