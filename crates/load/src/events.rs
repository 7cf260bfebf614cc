//! The engine's reports: phase changes, one interval per second, totals of each measured window.
//!
//! All times are CLOCK_MONOTONIC nanoseconds unless a name ends in another unit; all histograms
//! hold microseconds with three significant digits.

mod actions;
mod begun;
mod delivery;
mod failure;
mod figures;
mod login;
mod shares;

pub use actions::{ActionCounts, ActionTotals};
pub use begun::{BegunPhase, LoadBegun};
pub use delivery::{Counters, Delivery, Gap, Violations};
pub(crate) use failure::is_temporary;
pub use failure::{ConnectCause, ConnectError, Failure, OversizedPacket};
pub use figures::{
    GroupInterval, GroupTotals, Outcomes, SharedTotals, TargetInterval, TargetTotals,
};

pub use login::{JudgedLogin, LoginCounts, LoginFigures, LoginTotals};
pub use shares::{LostPart, ShareTotals};

use serde::{Deserialize, Serialize};

pub use crate::histogram::{Histogram, histogram};
use crate::plan::ClientIndex;

/// One report of a running engine.
#[derive(Debug, Clone)]
pub enum Event {
    /// A phase began.
    Phase {
        /// Its kind.
        kind: PhaseKind,
        /// Position in [`Plan::phases`](crate::Plan::phases).
        index: usize,
        /// When.
        at_ns: u64,
    },
    /// The first load of a divided run is about to be ordered: from here on another controller
    /// could take the run up.
    Loading(Box<LoadBegun>),
    /// All events before this were of a controller that is gone; this one has taken the run up.
    TakenUp {
        /// When.
        at_ns: u64,
    },
    /// One second of the run (the last interval of a phase may be shorter).
    Interval(Box<IntervalSnapshot>),
    /// A client failed, partly or completely; the others continue.
    Failed {
        /// The client.
        client: ClientIndex,
        /// What happened.
        why: Failure,
    },
    /// A client's connection ended or could not be opened; the client reconnects.
    Interrupted {
        /// The client.
        client: ClientIndex,
        /// What happened.
        why: Failure,
    },
    /// One of the plan's [actions](crate::Plan::actions) started.
    ActionStarted {
        /// Its position in the plan.
        action: usize,
        /// When.
        at_ns: u64,
        /// Connected clients that it affects.
        clients: u64,
    },
    /// A process of a divided run was lost, and the run goes on without its part.
    ShareLost(Box<LostPart>),
    /// A measured window is complete: its drain has ended.
    Measured(Box<Totals>),
    /// The run is over; no event follows.
    Finished(Box<Summary>),
}

/// The kinds of [`Phase`](crate::Phase).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PhaseKind {
    /// Clients connect.
    Connect,
    /// Clients subscribe.
    Subscribe,
    /// Absent clients disconnect and leave their sessions behind.
    Offline,
    /// The readiness probe.
    Probe,
    /// Load, not measured.
    WarmUp,
    /// Load, measured.
    Measure,
    /// Absent clients reconnect to their sessions.
    Resume,
    /// Messages in flight are awaited.
    Drain,
    /// Clients disconnect.
    Disconnect,
}

impl PhaseKind {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 9] = [
        Self::Connect,
        Self::Subscribe,
        Self::Offline,
        Self::Probe,
        Self::WarmUp,
        Self::Measure,
        Self::Resume,
        Self::Drain,
        Self::Disconnect,
    ];

    /// The phase of that [name](Self::name).
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

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

/// One interval, all threads merged.
#[derive(Debug, Clone)]
pub struct IntervalSnapshot {
    /// Phase of the interval; an interval never spans two.
    pub phase: PhaseKind,
    /// Position of that phase in the plan.
    pub phase_index: usize,
    /// Start of the interval.
    pub start_ns: u64,
    /// Its length.
    pub len_ns: u64,
    /// Clients connected at its end.
    pub connected: u64,
    /// Counts, by the time of each occurrence.
    pub counters: Counters,
    /// Intended time to receipt, for messages received in this interval. During `Measure` and
    /// `Drain` it includes only messages whose intended time lies in the measured window; before,
    /// only those of the warm-up. The same holds for the other histograms.
    pub e2e: Histogram,
    /// Written to received.
    pub service: Histogram,
    /// Intended time to written.
    pub send_delay: Histogram,
    /// PUBLISH written to PUBACK or PUBCOMP received.
    pub ack: Histogram,
    /// PUBLISH written to an acknowledgement with an error, or to the end of the connection.
    pub ack_failed: Histogram,
    /// Connects, from the start of the TCP connection to CONNACK; counted when they end, like
    /// `subscribe`.
    pub connect: Outcomes,
    /// SUBSCRIBEs, to SUBACK; failed unless all filters were granted.
    pub subscribe: Outcomes,
    /// Logins by a schedule that ended; `None` if the plan has none.
    pub logins: Option<Box<LoginTotals>>,
    /// Bytes read from all connections.
    pub bytes_in: u64,
    /// Bytes written to all connections.
    pub bytes_out: u64,
    /// Round trips of PINGREQ and PINGRESP on dedicated connections, all brokers together, if the
    /// plan requests them.
    pub rtt: Histogram,
    /// Each group, in the plan's order.
    pub groups: Vec<GroupInterval>,
    /// Each broker, in order of first appearance in the plan.
    pub targets: Vec<TargetInterval>,
    /// Resource usage of each generator thread in the interval.
    pub threads: Vec<ThreadUsage>,
    /// Changes of the counts of [actions](crate::Plan::actions) in the interval, by their position
    /// in the plan; actions without changes are omitted. [Added up](ActionCounts::add), they give
    /// the counts so far.
    pub actions: Vec<(usize, ActionCounts)>,
    /// The part of each process; none of a run that is not divided.
    pub shares: Vec<ShareTotals>,
}

/// Resource usage of one generator thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// CPU to which it is pinned.
    pub cpu: Option<usize>,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time of the thread, spinning included.
    pub cpu_ns: u64,
    /// Time spent spinning: awake, with nothing to read or write.
    pub spin_ns: u64,
    /// Rests taken: turns after which the thread waited to serve what comes next in a batch.
    pub rests: u64,
}

impl ThreadUsage {
    /// Share of the wall time in which the thread worked, 0 to 1; spinning is no work.
    pub fn busy(&self) -> f64 {
        self.share(self.cpu_ns.saturating_sub(self.spin_ns))
    }

    /// Share of the wall time in which the thread spun, 0 to 1.
    pub fn spun(&self) -> f64 {
        self.share(self.cpu_ns.min(self.spin_ns))
    }

    fn share(&self, ns: u64) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { ns as f64 / self.wall_ns as f64 }
    }
}

/// The results of one measured window.
#[derive(Debug, Clone)]
pub struct Totals {
    /// Position of its `Measure` phase in the plan.
    pub phase_index: usize,
    /// Start of the window.
    pub start_ns: u64,
    /// Length of the window.
    pub len_ns: u64,
    /// Counts inside the window; divide by its length for rates.
    pub counters: Counters,
    /// Verdict on the messages intended for the window, including those that arrived during the
    /// drain.
    pub delivery: Delivery,
    /// Verdict on messages outside the window: warm-up since the last window.
    pub outside: Delivery,
    /// Breaches of the QoS contract, inside and outside the window.
    pub violations: Violations,
    /// Deliveries of QoS 1 and 2 that never arrived although the publisher had received the PUBACK
    /// or PUBCOMP of their message, inside and outside the window.
    pub acknowledged_lost: u64,
    /// The same, if deliveries still arrived when the drain ended: they may have been in flight.
    pub acknowledged_pending: u64,
    /// Runs of lost messages, at most [`Totals::GAPS_MAX`].
    pub gaps: Vec<Gap>,
    /// Number of runs beyond that limit.
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
    /// Logins by a schedule; `None` if the plan has none.
    pub logins: Option<Box<LoginTotals>>,
    /// Clients connected at the window's end.
    pub connected: u64,
    /// Bytes read from all connections.
    pub bytes_in: u64,
    /// Bytes written to all connections.
    pub bytes_out: u64,
    /// Round trips to all brokers, if the plan requests them.
    pub rtt: Histogram,
    /// Each group, in the plan's order.
    pub groups: Vec<GroupTotals>,
    /// Each broker, in order of first appearance in the plan.
    pub targets: Vec<TargetTotals>,
    /// Distribution of each shared group's messages.
    pub shared: Vec<SharedTotals>,
    /// The fewest and the most deliveries of the window to one receiver; `None` without receivers.
    pub received_min_max: Option<(u64, u64)>,
    /// Results of the plan's actions, in the plan's order.
    pub actions: Vec<ActionTotals>,
    /// Whether everything was delivered and acknowledged before the timeout of the drain.
    pub drained: bool,
    /// Resource usage of each generator thread during the window.
    pub threads: Vec<ThreadUsage>,
    /// The part of each process; none of a run that is not divided.
    pub shares: Vec<ShareTotals>,
}

impl Totals {
    /// Upper bound of `gaps`.
    pub const GAPS_MAX: usize = 10_000;
}

/// The results of the run as a whole.
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
    /// Why the round trips to some broker could not be measured, if the plan requests them.
    pub rtt_failure: Option<String>,
    /// Number of [`Event::Failed`].
    pub failures: u64,
    /// Start of the TCP connect to CONNACK.
    pub connect: Histogram,
    /// TCP connection established to the end of the TLS and WebSocket handshakes; empty for plain
    /// TCP.
    pub handshake: Histogram,
    /// SUBSCRIBE to SUBACK.
    pub suback: Histogram,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// All phases have run.
    #[error("completed")]
    Completed,
    /// [`Engine::abort`](crate::Engine::abort) was called.
    #[error("aborted")]
    Aborted,
    /// No client could connect; the last reason.
    #[error("no client could connect: {0}")]
    Unreachable(String),
    /// Some receivers got no probe message in time.
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
        /// Topic of an affected stream.
        first_topic: String,
    },
    /// All clients lost their connection; the last reason.
    #[error("all clients lost their connection: {0}")]
    AllLost(String),
    /// A generator thread failed.
    #[error("a generator thread failed: {0}")]
    Thread(String),
    /// A process that ran a part of the threads was lost.
    #[error("{name}, which ran {threads} of {of} generator threads, was lost: {why}")]
    ShareLost {
        /// Its name.
        name: String,
        /// Threads that it ran.
        threads: usize,
        /// Threads of the run.
        of: usize,
        /// What happened.
        why: String,
    },
}
