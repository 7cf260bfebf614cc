//! What controller and generator threads tell each other.

use std::sync::Arc;

use crate::events::{ActionCounts, Failure, Histogram, PhaseKind, ThreadUsage};
use crate::plan::{ClientIndex, Receiver, Scale, StreamIndex};
use crate::recorder::Sample;
use crate::verifier::{Books, StreamEnds};

/// To a generator thread.
#[derive(Debug)]
pub(crate) enum Mail {
    /// From the controller: enter a phase at its time. Phases arrive in order.
    Enter(Enter),
    /// From the controller: forget phases that have not begun and stop publishing at this time.
    Cut(u64),
    /// From the controller: give up clients that have waited longer than this for CONNACK or
    /// SUBACK.
    GiveUp { timeout_ns: u64 },
    /// From the controller: report a [`Report::Status`].
    Tell,
    /// From the controller: report [`Report::Ends`].
    TellEnds,
    /// From the controller: close the books of the window and report them.
    Settle(Arc<[StreamEnds]>),
    /// From the controller: end.
    Stop,
    /// From another thread: deliveries of a closed stream.
    Credit { stream: u32, deliveries: u64 },
    /// From another thread: a probe arrived.
    Probed { stream: u32, receiver: Receiver },
}

/// A phase begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Enter {
    pub(crate) index: usize,
    pub(crate) start_ns: u64,
    pub(crate) task: Task,
}

/// What a phase does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    Connect,
    Subscribe,
    Offline,
    Probe,
    Load { end_ns: u64, scale: Scale, measure: bool },
    Resume,
    Drain,
    Disconnect,
}

impl Task {
    pub(crate) const fn kind(&self) -> PhaseKind {
        match self {
            Self::Connect => PhaseKind::Connect,
            Self::Subscribe => PhaseKind::Subscribe,
            Self::Offline => PhaseKind::Offline,
            Self::Probe => PhaseKind::Probe,
            Self::Load { measure: false, .. } => PhaseKind::WarmUp,
            Self::Load { measure: true, .. } => PhaseKind::Measure,
            Self::Resume => PhaseKind::Resume,
            Self::Drain => PhaseKind::Drain,
            Self::Disconnect => PhaseKind::Disconnect,
        }
    }
}

/// From a generator thread to the controller.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) thread: usize,
    pub(crate) body: ReportBody,
}

#[derive(Debug)]
pub(crate) enum ReportBody {
    /// An interval is over.
    Interval(Box<Interval>),
    /// Something went wrong for a client.
    Failed { client: ClientIndex, why: Failure },
    /// A client lost its connection and tries again.
    Interrupted { client: ClientIndex, why: Failure },
    /// An action begins, for so many connected clients here.
    Acted { action: u32, clients: u64 },
    /// The phase with this index has nothing left to do here.
    Done { index: usize },
    /// Answer to `Tell`.
    Status(Status),
    /// Answer to `TellEnds`: the streams of this thread.
    Ends(Vec<(StreamIndex, StreamEnds)>),
    /// Answer to `Settle`.
    Books(Box<Books>),
    /// The thread has ended.
    Ended(Box<Ended>),
    /// A round trip to a broker.
    Rtt { target: usize, at_ns: u64, took_ns: u64 },
    /// Why no round trips to some broker are measured for now.
    RttFailed(String),
    /// The thread could not run.
    Broken(String),
}

/// One interval of one thread.
#[derive(Debug)]
pub(crate) struct Interval {
    pub(crate) index: usize,
    pub(crate) kind: PhaseKind,
    /// Number of the interval within the phase.
    pub(crate) number: u64,
    pub(crate) start_ns: u64,
    pub(crate) len_ns: u64,
    pub(crate) sample: Sample,
    pub(crate) usage: ThreadUsage,
    /// What came of actions, by their position.
    pub(crate) actions: Vec<(usize, ActionCounts)>,
}

/// How far a thread is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Status {
    /// Deliveries that messages sent since the books were closed have to cause.
    pub(crate) expected: u64,
    /// Deliveries received since then.
    pub(crate) received: u64,
    /// Messages not acknowledged, and streams that have not sent all that was due.
    pub(crate) outstanding: u64,
    /// Deliveries of probes still missing, and how many there were to be.
    pub(crate) probes_missing: u64,
    pub(crate) probes_expected: u64,
    /// A stream without its probe.
    pub(crate) unprobed: Option<StreamIndex>,
}

/// What a thread says at its end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) connect: Histogram,
    pub(crate) handshake: Histogram,
    pub(crate) suback: Histogram,
    pub(crate) connected: u64,
    /// When the last client reached CONNACK; 0 if none did.
    pub(crate) connected_ns: u64,
    pub(crate) subscribed: u64,
}
