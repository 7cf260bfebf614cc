//! What the engine reports: phase changes, per-second intervals, totals of each measured step.
//!
//! All times are CLOCK_MONOTONIC nanoseconds unless a name ends in another unit; all histograms
//! hold microseconds with three significant digits.

use tacho_codec::ReasonCode;

mod actions;
mod figures;

pub use actions::{ActionCounts, ActionTotals};
pub use figures::{
    GroupInterval, GroupTotals, Outcomes, SharedTotals, TargetInterval, TargetTotals,
};

use crate::plan::{ClientIndex, Receiver, StreamIndex};

/// A latency histogram: microseconds, three significant digits, growing by itself.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// An empty [`Histogram`].
pub fn histogram() -> Histogram {
    // Invariant: 3 is within the 0..=5 that the constructor accepts.
    Histogram::new(3).expect("three significant digits are supported")
}

/// One report of a running engine.
#[derive(Debug, Clone)]
pub enum Event {
    /// A phase began.
    Phase {
        /// Which.
        kind: PhaseKind,
        /// Position in [`Plan::phases`](crate::Plan::phases).
        index: usize,
        /// When.
        at_ns: u64,
    },
    /// The last second (the last one of a phase may be shorter).
    Interval(Box<IntervalSnapshot>),
    /// Something went wrong for one client; the others go on.
    Failed {
        /// The client.
        client: ClientIndex,
        /// What happened.
        why: Failure,
    },
    /// The connection of a client ended, or could not be opened; the client tries again.
    Interrupted {
        /// The client.
        client: ClientIndex,
        /// What happened.
        why: Failure,
    },
    /// One of the plan's [actions](crate::Plan::actions) began.
    Acted {
        /// Its position in the plan.
        action: usize,
        /// When.
        at_ns: u64,
        /// Clients that were connected and that it concerns.
        clients: u64,
    },
    /// A measured window is complete: its drain has ended.
    Measured(Box<Totals>),
    /// The run is over; no event follows.
    Finished(Box<Summary>),
}

/// The kinds of [`Phase`](crate::Phase).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhaseKind {
    /// Connections are opened.
    Connect,
    /// Subscriptions are made.
    Subscribe,
    /// Clients leave their sessions for later.
    Offline,
    /// Paths are probed.
    Probe,
    /// Load without measuring.
    WarmUp,
    /// Load, measured.
    Measure,
    /// Clients come back to their sessions.
    Resume,
    /// Waiting for what is under way.
    Drain,
    /// Connections are closed.
    Disconnect,
}

impl PhaseKind {
    /// Lower-case name for reports, e.g. `warm-up`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Subscribe => "subscribe",
            Self::Offline => "offline",
            Self::Probe => "probe",
            Self::WarmUp => "warm-up",
            Self::Measure => "measure",
            Self::Resume => "resume",
            Self::Drain => "drain",
            Self::Disconnect => "disconnect",
        }
    }
}

/// Why a client failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The connection could not be opened: TCP, TLS or WebSocket.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// No CONNACK in time.
    #[error("no CONNACK within {waited_ms} ms")]
    ConnectTimeout {
        /// Time waited.
        waited_ms: u64,
    },
    /// The broker refused the connection.
    #[error("the broker refused the connection: {0}")]
    Refused(ReasonCode),
    /// The broker refused a topic filter.
    #[error("the broker refused the filter {filter}: {reason}")]
    SubscribeRefused {
        /// The filter.
        filter: String,
        /// The SUBACK's code.
        reason: ReasonCode,
    },
    /// No SUBACK in time.
    #[error("no SUBACK within {waited_ms} ms")]
    SubscribeTimeout {
        /// Time waited.
        waited_ms: u64,
    },
    /// The broker sent DISCONNECT.
    #[error("the broker disconnected the client: {0}")]
    Disconnected(ReasonCode),
    /// The broker closed the connection without a DISCONNECT.
    #[error("the broker closed the connection")]
    Closed,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The broker sent something that MQTT forbids.
    #[error("the broker broke the protocol: {0}")]
    Protocol(String),
    /// No PINGRESP in time.
    #[error("no answer to PINGREQ")]
    PingTimeout,
    /// The client came back to its session, and the broker had none.
    #[error("the broker has lost the client's session")]
    SessionLost,
    /// The broker refused a PUBLISH (reported once per client and reason).
    #[error("the broker refused a message: {0}")]
    PublishRefused(ReasonCode),
}

impl Failure {
    /// Is the client of no use any more? Refused filters and messages leave it connected.
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::SubscribeRefused { .. } | Self::SessionLost | Self::PublishRefused(_))
    }
}

/// Counts by the time at which things happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages that the schedule made due (closed mode: same as `attempted`).
    pub offered: u64,
    /// Messages the generator got round to: written, or held back by the inflight window.
    pub attempted: u64,
    /// PUBLISH packets written, each message once (retransmissions are not counted again).
    pub sent: u64,
    /// Messages acknowledged: PUBACK, or PUBCOMP at QoS 2. QoS 0 has none.
    pub acked: u64,
    /// Messages whose PUBACK or PUBREC carried an error.
    pub refused: u64,
    /// Verified first deliveries. Duplicates are not in here.
    pub received: u64,
    /// Messages written later than the plan's `overrun_after_ns` behind their time.
    pub overrun: u64,
    /// Messages never sent: skipped by the catch-up policy, or more than `waiting_max` waited
    /// for the inflight window, or their client was not connected, or the drain ended.
    pub dropped: u64,
    /// Messages of QoS 1 and 2 whose acknowledgement never came, because the connection ended
    /// and its session with it.
    pub unanswered: u64,
    /// Connections that ended unexpectedly after CONNACK.
    pub disconnects: u64,
    /// CONNACKs of clients that had been connected before.
    pub reconnects: u64,
}

impl Counters {
    /// Adds `other`, field by field.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.attempted += other.attempted;
        self.sent += other.sent;
        self.acked += other.acked;
        self.refused += other.refused;
        self.received += other.received;
        self.overrun += other.overrun;
        self.dropped += other.dropped;
        self.unanswered += other.unanswered;
        self.disconnects += other.disconnects;
        self.reconnects += other.reconnects;
    }
}

/// What happened in one interval, all threads together.
#[derive(Debug, Clone)]
pub struct IntervalSnapshot {
    /// Phase to which the interval belongs; intervals never span two.
    pub phase: PhaseKind,
    /// Position of that phase in the plan.
    pub phase_index: usize,
    /// Start of the interval.
    pub start_ns: u64,
    /// Its length.
    pub len_ns: u64,
    /// Clients connected at its end.
    pub connected: u64,
    /// Counts by the time at which things happened.
    pub counters: Counters,
    /// Intended time to receipt, for messages received in this interval. During `Measure` and
    /// `Drain` only messages whose intended time lies in the measured window are in here;
    /// before, only those of the warm-up. The same holds for the other histograms.
    pub e2e: Histogram,
    /// Written to received.
    pub service: Histogram,
    /// Intended time to written.
    pub send_delay: Histogram,
    /// PUBLISH written to PUBACK or PUBCOMP received.
    pub ack: Histogram,
    /// PUBLISH written to an acknowledgement with an error, or to the end of the connection.
    pub ack_failed: Histogram,
    /// Connects, from the start of the TCP connection to CONNACK. By the time at which they
    /// ended, as `subscribe` too.
    pub connect: Outcomes,
    /// SUBSCRIBEs, to SUBACK; one that grants less than all its filters has failed.
    pub subscribe: Outcomes,
    /// Bytes read from all connections.
    pub bytes_in: u64,
    /// Bytes written to all connections.
    pub bytes_out: u64,
    /// Round trip of PINGREQ and PINGRESP on connections of their own, all brokers together, if
    /// the plan asks for it.
    pub rtt: Histogram,
    /// Each group, in the plan's order.
    pub groups: Vec<GroupInterval>,
    /// Each broker, in order of appearance in the plan.
    pub targets: Vec<TargetInterval>,
    /// What each generator thread used in the interval.
    pub threads: Vec<ThreadUsage>,
    /// What came of [actions](crate::Plan::actions) in the interval, by their position in the plan:
    /// of those only that something came of. To be [added up](ActionCounts::add).
    pub actions: Vec<(usize, ActionCounts)>,
}

/// Verdict on messages, by the window in which their intended time lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivery {
    /// Messages sent.
    pub sent: u64,
    /// Deliveries they had to cause (a shared group counts once).
    pub expected: u64,
    /// Of these, deliveries that came.
    pub received: u64,
    /// Of these, deliveries that did not come: `expected - received`.
    pub lost: u64,
    /// Of the lost, those that the plan declared: they are no violation.
    pub declared_lost: u64,
    /// Of the lost, those after which nothing else of their stream came: the broker may have
    /// lost them or still have them.
    pub undelivered: u64,
    /// Further copies of messages already received.
    pub duplicates: u64,
    /// Of the duplicates, those with the DUP flag set.
    pub duplicates_flagged: u64,
    /// First deliveries that came after a later message of the same stream (shared groups have
    /// no order between members and are not judged).
    pub out_of_order: u64,
    /// Messages of this run at a receiver that has no route for their stream, messages of
    /// other runs, and messages without our header.
    pub unexpected: u64,
    /// Messages with our header and a wrong size or fill, or from a stream that does not exist.
    pub corrupted: u64,
    /// Deliveries after the drain that had already counted them as lost.
    pub late: u64,
    /// Wills of the plan's clients that arrived.
    pub wills: u64,
    /// Deliveries with an intended time in the future: clocks disagree. They are in no
    /// histogram.
    pub negative: u64,
}

impl Delivery {
    /// Adds `other`, field by field.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.expected += other.expected;
        self.received += other.received;
        self.lost += other.lost;
        self.declared_lost += other.declared_lost;
        self.undelivered += other.undelivered;
        self.duplicates += other.duplicates;
        self.duplicates_flagged += other.duplicates_flagged;
        self.out_of_order += other.out_of_order;
        self.unexpected += other.unexpected;
        self.corrupted += other.corrupted;
        self.late += other.late;
        self.wills += other.wills;
        self.negative += other.negative;
    }
}

/// Breaches of the QoS contract, judged by effective QoS: each is an error, not a statistic.
/// Messages to or from a client whose connection failed are not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Violations {
    /// Lost at effective QoS 1 or 2. When the drain ended while messages were still arriving,
    /// those that were [undelivered](Delivery::undelivered) are not in here: a slow broker has
    /// broken no promise.
    pub lost: u64,
    /// Duplicated at effective QoS 0 or 2.
    pub duplicates: u64,
    /// First deliveries out of order.
    pub out_of_order: u64,
    /// Damaged.
    pub corrupted: u64,
}

impl Violations {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.lost + self.duplicates + self.out_of_order + self.corrupted
    }

    /// Adds `other`, field by field.
    pub fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.out_of_order += other.out_of_order;
        self.corrupted += other.corrupted;
    }
}

/// A run of messages that a receiver did not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The publisher stream.
    pub stream: StreamIndex,
    /// Who missed them.
    pub receiver: Receiver,
    /// First missing sequence number.
    pub first_seq: u64,
    /// How many are missing.
    pub count: u64,
    /// Sequence numbers from the first to the last missing one. The same as `count`, except
    /// where a receiver missed so many messages that old runs were merged.
    pub span: u64,
    /// The plan declares that they may be lost: no violation.
    pub declared: bool,
    /// How many of them their publisher had the last acknowledgement for.
    pub acknowledged: u64,
}

/// What one generator thread used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadUsage {
    /// CPU it was pinned to.
    pub cpu: Option<usize>,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time of the thread, idle spinning included.
    pub cpu_ns: u64,
    /// Wall time spent spinning with nothing to do (spin timing only).
    pub idle_spin_ns: u64,
}

impl ThreadUsage {
    /// Share of the wall time in which the thread was busy, 0 to 1.
    ///
    /// Idle spinning is known in wall time, in which the thread need not have had its core all
    /// along; so it is taken from the wall time, and the CPU time is an upper bound.
    pub fn busy(&self) -> f64 {
        if self.wall_ns == 0 {
            return 0.0;
        }
        let busy_ns = self.cpu_ns.min(self.wall_ns.saturating_sub(self.idle_spin_ns));
        busy_ns as f64 / self.wall_ns as f64
    }
}

/// Everything about one measured window.
#[derive(Debug, Clone)]
pub struct Totals {
    /// Position of its `Measure` phase in the plan.
    pub phase_index: usize,
    /// Start of the window.
    pub start_ns: u64,
    /// Length of the window.
    pub len_ns: u64,
    /// Counts of what happened inside the window; divide by its length for rates.
    pub counters: Counters,
    /// Verdict on the messages intended for the window, also those that arrived during the
    /// drain.
    pub delivery: Delivery,
    /// Verdict on messages outside the window: warm-up since the last window.
    pub outside: Delivery,
    /// Breaches of the QoS contract, inside and outside the window.
    pub violations: Violations,
    /// Deliveries of QoS 1 and 2 that never came although the publisher had the PUBACK or PUBCOMP
    /// of their message, inside and outside the window.
    pub acknowledged_lost: u64,
    /// The same, when deliveries still came as the drain ended: they may have been on their way.
    pub acknowledged_pending: u64,
    /// Which messages were lost, at most [`Totals::GAPS_MAX`] runs.
    pub gaps: Vec<Gap>,
    /// Runs of lost messages that did not fit into `gaps`.
    pub gaps_cut: u64,
    /// Intended time to receipt, all messages of the window.
    pub e2e: Histogram,
    /// Written to received.
    pub service: Histogram,
    /// Intended time to written.
    pub send_delay: Histogram,
    /// PUBLISH written to PUBACK or PUBCOMP received, messages of the window.
    pub ack: Histogram,
    /// PUBLISH written to an acknowledgement with an error, or to the end of the connection.
    pub ack_failed: Histogram,
    /// Connects that ended inside the window.
    pub connect: Outcomes,
    /// SUBSCRIBEs that ended inside the window.
    pub subscribe: Outcomes,
    /// Clients connected at the window's end.
    pub connected: u64,
    /// Bytes read from all connections.
    pub bytes_in: u64,
    /// Bytes written to all connections.
    pub bytes_out: u64,
    /// Round trips to all brokers, if the plan asks for them.
    pub rtt: Histogram,
    /// Each group, in the plan's order.
    pub groups: Vec<GroupTotals>,
    /// Each broker, in order of appearance in the plan.
    pub targets: Vec<TargetTotals>,
    /// How each shared group's messages were spread.
    pub shared: Vec<SharedTotals>,
    /// Deliveries of the window to the receiver that got fewest and to the one that got most;
    /// `None` without receivers.
    pub received_min_max: Option<(u64, u64)>,
    /// What came of the plan's actions, in the plan's order.
    pub actions: Vec<ActionTotals>,
    /// Did the drain end with everything delivered and acknowledged, before its timeout?
    pub drained: bool,
    /// What each generator thread used during the window.
    pub threads: Vec<ThreadUsage>,
}

impl Totals {
    /// Upper bound of `gaps`.
    pub const GAPS_MAX: usize = 10_000;
}

/// How the run as a whole went.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Why it ended.
    pub end: End,
    /// Clients that reached CONNACK.
    pub connected: u64,
    /// From the first connect to the last CONNACK of the first connect phase.
    pub connect_span_ns: u64,
    /// Filters granted.
    pub subscribed: u64,
    /// Why no round trips to some broker were measured, though the plan asks for them.
    pub rtt_failure: Option<String>,
    /// [`Event::Failed`] reported.
    pub failures: u64,
    /// Start of the TCP connect to CONNACK.
    pub connect: Histogram,
    /// TCP connection established to TLS and WebSocket handshakes over; empty for plain TCP.
    pub handshake: Histogram,
    /// SUBSCRIBE to SUBACK.
    pub suback: Histogram,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// All phases were run.
    #[error("completed")]
    Completed,
    /// [`Engine::abort`](crate::Engine::abort) was called.
    #[error("aborted")]
    Aborted,
    /// No client could connect; the last reason.
    #[error("no client could connect: {0}")]
    Unreachable(String),
    /// Receivers that no probe message reached in time.
    #[error(
        "{missing} of {expected} deliveries of the readiness probe did not arrive within {waited_ms} ms, the first from {first_topic}"
    )]
    ProbeFailed {
        /// Deliveries missing.
        missing: u64,
        /// Deliveries expected.
        expected: u64,
        /// Time waited.
        waited_ms: u64,
        /// Topic of a stream concerned.
        first_topic: String,
    },
    /// All clients lost their connection; the last reason.
    #[error("all clients lost their connection: {0}")]
    AllLost(String),
    /// A generator thread failed.
    #[error("a generator thread failed: {0}")]
    Thread(String),
}
