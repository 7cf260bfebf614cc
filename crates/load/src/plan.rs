//! What to run: a fully resolved, pure-data description of clients, streams and phases.
//!
//! Everything that a scenario leaves to variables or templates is spelled out here: every
//! client has its identifier, every stream its topic. Numbers of streams and clients are their
//! positions: stream 0 is the first stream of the first client of the first group, and so on.

use tacho_codec::{QoS, Version};

mod check;
mod expect;
mod target;

pub use check::PlanError;
pub use expect::SharedGroup;
pub use target::{Target, Transport};

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
    /// Which receiver must get which stream; [`Plan::derive_routes`] computes it from the
    /// filters. A message that arrives without a route is reported as unexpected.
    pub routes: Vec<Route>,
    /// What to do, in this order.
    pub phases: Vec<Phase>,
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
    /// Clean start (5.0) or clean session (3.x).
    pub clean_start: bool,
    /// Session expiry interval in seconds (5.0 only); 0 ends the session with the connection.
    pub session_expiry_s: u32,
    /// Keep-alive in seconds; 0 turns it off.
    pub keep_alive_s: u16,
    /// Connections opened per second by the whole group; `None` opens them all at once.
    pub connects_per_s: Option<f64>,
    /// QoS 1 and 2 messages one client may have unacknowledged at a time (the broker's receive
    /// maximum may lower it). Messages beyond it wait, and their send delay grows.
    pub inflight_max: u16,
    /// Messages of one client that may wait for the inflight window before further ones are
    /// dropped and counted.
    pub waiting_max: u32,
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
    /// What it publishes.
    pub streams: Vec<Stream>,
    /// What it subscribes to.
    pub subscriptions: Vec<Subscription>,
}

/// What streams of one kind have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishBlock {
    /// QoS of the PUBLISH.
    pub qos: QoS,
    /// Retain flag of the PUBLISH.
    pub retain: bool,
    /// Payload size in bytes, header included; at least [`Plan::PAYLOAD_BYTES_MIN`].
    pub payload_bytes: u32,
    /// When messages are due.
    pub pace: Pace,
}

/// One publisher stream: a client that publishes to one topic.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Topic name.
    pub topic: String,
    /// Index into [`Group::publish`].
    pub block: usize,
}

/// One topic filter of a client.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// Topic filter as sent; `$share/group/filter` for a shared one.
    pub filter: String,
    /// Maximum QoS asked for.
    pub qos: QoS,
}

/// When the messages of a stream are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// An absolute schedule that does not look at the broker.
    Open {
        /// Rate of each stream.
        rate: Rate,
        /// Where in its period a stream starts.
        phase: PhasePolicy,
        /// What happens to messages whose time has passed.
        catch_up: CatchUp,
    },
    /// As fast as the broker lets it: at most `window` messages per stream under way, counted
    /// by verified deliveries at QoS 0 and by acknowledgements at QoS 1 and 2.
    Closed {
        /// Messages under way per stream, at least 1.
        window: u32,
    },
}

/// An exact rate: `messages` per `per_ns` nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Messages, at least 1.
    pub messages: u64,
    /// Nanoseconds, at least 1.
    pub per_ns: u64,
}

impl Rate {
    /// One message every `period_ns` nanoseconds.
    pub const fn every_ns(period_ns: u64) -> Self {
        Self { messages: 1, per_ns: period_ns }
    }

    /// `total` messages per second divided evenly over `streams` streams, exactly.
    pub const fn per_second_shared(total: u64, streams: u64) -> Self {
        Self { messages: total, per_ns: streams * 1_000_000_000 }
    }

    /// Messages per second.
    pub fn per_second(self) -> f64 {
        self.messages as f64 * 1e9 / self.per_ns as f64
    }
}

/// Where in its period the first message of a stream lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PhasePolicy {
    /// Stream `i` of `n` of its block starts at `i * period / n`.
    #[default]
    Uniform,
    /// Seeded random in `[0, period)`.
    Random,
    /// All streams at once: bursts.
    Aligned,
}

/// What an open stream does with messages whose time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// Send them all, late; latency counts from the intended time.
    #[default]
    CatchUp,
    /// Send the latest one and count the others as dropped.
    Skip,
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

/// A factor on rates, as a fraction so that rates stay exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Numerator, at least 1.
    pub num: u64,
    /// Denominator, at least 1.
    pub den: u64,
}

impl Scale {
    /// The rates as planned.
    pub const ONE: Self = Self { num: 1, den: 1 };
}

impl Plan {
    /// Smallest payload: the header.
    pub const PAYLOAD_BYTES_MIN: u32 = 24;
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
        self.routes.iter().map(|route| rates[route.stream as usize]).sum()
    }
}

impl Pace {
    /// Rate of one stream; `None` in closed mode.
    pub fn per_second(self) -> Option<f64> {
        match self {
            Self::Open { rate, .. } => Some(rate.per_second()),
            Self::Closed { .. } => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
