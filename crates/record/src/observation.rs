//! Observations of findings, as data: `report` has the words.

use serde::{Deserialize, Serialize};

use crate::direction::Direction;
use crate::disturbance::Disturbance;
use crate::verdict::Verdict;

/// An observation with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Observation {
    /// An interface was as busy as it can be.
    NetworkBusy {
        /// Name of the interface.
        interface: Option<String>,
        /// Its host.
        host: String,
        /// Its traffic.
        bytes_per_s: f64,
        /// Which way.
        direction: Direction,
        /// Share of its capacity.
        percent: f64,
    },
    /// An interface carried as many bytes as the stated limit of its host's network allows.
    NetworkLimitReached {
        /// Name of the interface.
        interface: Option<String>,
        /// Its host.
        host: String,
        /// Its traffic.
        bytes_per_s: f64,
        /// Which way.
        direction: Direction,
        /// Share of the limit.
        percent: f64,
    },
    /// An interface carried as many packets as the stated limit of its host's network allows.
    PacketLimitReached {
        /// Name of the interface.
        interface: Option<String>,
        /// Its host.
        host: String,
        /// Its traffic.
        packets_per_s: f64,
        /// Which way.
        direction: Direction,
        /// Share of the limit.
        percent: f64,
    },
    /// Something on the way is narrower than the interface.
    NetworkNarrow {
        /// Name of the interface.
        interface: Option<String>,
        /// Its host.
        host: String,
        /// Its outgoing traffic.
        bytes_per_s: f64,
        /// TCP segments that were repeated.
        retransmits_per_s: f64,
    },
    /// An interface dropped packets.
    NetworkDrops {
        /// Name of the interface.
        interface: Option<String>,
        /// Its host.
        host: String,
        /// How many.
        packets_per_s: f64,
    },
    /// TCP repeated segments.
    Retransmits {
        /// The host.
        host: String,
        /// How many.
        segments_per_s: f64,
        /// Broker and generator share a machine, so it was on loopback.
        one_machine: bool,
    },
    /// Connections did not fit into the listen queue.
    ListenOverflow {
        /// The host.
        host: String,
    },
    /// Most of the latency is the way to the broker.
    RoundTrip {
        /// Median round trip.
        round_trip_us: u64,
        /// Median latency.
        latency_us: u64,
    },
    /// A plateau at 40 ms.
    DelayedAcknowledgements {
        /// Share of the latencies there.
        percent: f64,
        /// Is the broker known to be mosquitto?
        #[serde(default)]
        is_mosquitto: bool,
    },
    /// A plateau at 200 ms.
    RetransmissionTimeouts {
        /// Share of the latencies there.
        percent: f64,
    },
    /// The first second was much slower than the others.
    ColdStart {
        /// Its p99.
        first_us: u64,
        /// The usual one.
        others_us: u64,
    },
    /// Connections were tried again by TCP.
    ConnectionRetries {
        /// How long one took.
        took_us: u64,
    },
    /// A host's clock is known too badly.
    ClockError {
        /// The monitor.
        source: String,
        /// Its error.
        error_us: f64,
    },
    /// A hypervisor gave the machine's time to others.
    Steal {
        /// Share of the time.
        percent: f64,
    },
    /// Other programs used the machine.
    OtherPrograms {
        /// One core = 100.
        percent: f64,
    },
    /// The broker's cores were busier than the broker.
    ForeignLoad {
        /// The cores.
        busy_percent: f64,
        /// The broker.
        broker_percent: f64,
    },
    /// Shared subscriptions were served unevenly.
    UnfairGroups {
        /// How many.
        unfair: u64,
        /// Of how many.
        groups: u64,
        /// The worst one.
        filter: String,
        /// Messages of its member that got the fewest.
        received_min: u64,
        /// Messages of its member that got the most.
        received_max: u64,
        /// Its Gini coefficient.
        gini: f64,
    },
    /// A monitor was silent for a part of a window.
    MonitorGap {
        /// The monitor.
        monitor: String,
        /// Seconds that it covered.
        covered_s: f64,
        /// Length of the window.
        window_s: f64,
    },
    /// A monitor had errors.
    MonitorErrors {
        /// The monitor.
        monitor: String,
        /// How many.
        errors: u64,
        /// The last one.
        last: String,
    },
    /// Rows of a monitor were dropped.
    MonitorDropped {
        /// The monitor.
        monitor: String,
        /// How many.
        rows: u64,
    },
    /// An output did not get all records. It has nothing to do with what was measured.
    OutputLost {
        /// The output, without its options.
        output: String,
        /// Records that did not arrive.
        lost: u64,
        /// Of how many.
        of: u64,
        /// The last error.
        last: String,
    },
    /// The hypervisor or other programs disturbed the window.
    Disturbed {
        /// How, and what became of it.
        disturbance: Disturbance,
        /// The program that used most of the broker's cores.
        program: Option<String>,
    },
    /// A row says nothing about the broker and was measured again.
    Repeated {
        /// Its label.
        label: String,
        /// Its verdict.
        verdict: Verdict,
    },
    /// A ladder ended where it was asked to.
    LadderStopped {
        /// At this step.
        label: String,
        /// The condition.
        condition: String,
    },
    /// The broker sent packets that are larger than clients accept; those clients were closed.
    PacketTooLarge {
        /// How many clients.
        clients: u64,
        /// The first of them.
        client: String,
        /// Type of its packet, such as `PUBLISH`.
        packet: String,
        /// Size of its packet, as announced.
        announced_bytes: u64,
        /// The largest packet that it accepts.
        limit_bytes: u64,
    },
    /// Incomplete packets of the broker exceeded the generator's budget; clients were closed.
    ReceiveBudget {
        /// How many clients.
        clients: u64,
        /// The first of them.
        client: String,
        /// Type of its packet, such as `PUBLISH`.
        packet: String,
        /// Size of its packet, as announced.
        announced_bytes: u64,
        /// The budget of the client's generator thread.
        budget_bytes: u64,
    },
    /// Logins were decided wrongly.
    LoginsMisjudged {
        /// Wrong credentials that were accepted.
        accepted: u64,
        /// Right ones that were refused.
        refused: u64,
        /// The first of them, with its client.
        first: String,
    },
    /// Right logins were refused because the generator's address is banned.
    LoginsBanned {
        /// How many.
        count: u64,
    },
    /// The broker's CPU is not observed, so that an objective was left out.
    CpuNotObserved,
}
