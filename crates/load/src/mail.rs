//! Messages between the controller and the generator threads, and among the threads.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::events::{ActionCounts, Failure, Histogram, PhaseKind, ThreadUsage};
use crate::plan::{ClientIndex, Receiver, Scale, StreamIndex};
use crate::recorder::Sample;
use crate::verifier::{Books, StreamEnds};

/// To a generator thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Mail {
    /// From the controller: enter a phase at its start time. Phases arrive in order.
    Enter(Enter),
    /// From the controller: discard phases that have not begun, and stop publishing at this time.
    Cut(u64),
    /// From the controller: give up clients that have waited longer than this for CONNACK or
    /// SUBACK.
    GiveUp { timeout_ns: u64 },
    /// From the controller: report [`ReportBody::Status`].
    ReportStatus,
    /// From the controller: stop sending, and report [`ReportBody::Ends`].
    ReportEnds,
    /// From the controller: close the books of the window, and report them.
    Settle(#[serde(with = "crate::wire::shared_slice")] Arc<[StreamEnds]>),
    /// From the controller: end.
    Stop,
    /// From another thread: settled deliveries of a stream in closed mode, by its number on the
    /// receiving thread.
    Credit { stream: u32, deliveries: u64 },
    /// From another thread: a probe of a stream arrived, by its number on the receiving thread.
    Probed { stream: u32, receiver: Receiver },
}

/// The start of a phase.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Enter {
    pub(crate) index: usize,
    pub(crate) start_ns: u64,
    pub(crate) task: Task,
}

/// The task of a phase.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
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
    /// When it ends, where that is fixed; the largest number otherwise.
    pub(crate) const fn end_ns(&self) -> u64 {
        match self {
            Self::Load { end_ns, .. } => *end_ns,
            _ => u64::MAX,
        }
    }

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
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) thread: usize,
    pub(crate) body: ReportBody,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ReportBody {
    /// An interval is over.
    Interval(Box<Interval>),
    /// A client failed.
    Failed { client: ClientIndex, why: Failure },
    /// A client lost its connection and reconnects.
    Interrupted { client: ClientIndex, why: Failure },
    /// An action starts, on this many connected clients of the thread.
    ActionStarted { action: u32, clients: u64 },
    /// The thread has finished the phase with this index.
    Done { index: usize },
    /// Response to `ReportStatus`.
    Status(Status),
    /// Response to `ReportEnds`: the streams of this thread.
    Ends(Vec<(StreamIndex, StreamEnds)>),
    /// Response to `Settle`.
    Books(Box<Books>),
    /// The thread has ended.
    Ended(Box<Ended>),
    /// A round trip to a broker.
    Rtt(RoundTrip),
    /// Why the round trips to some broker cannot be measured for now.
    RttFailed(String),
    /// Mail for a thread of another process, which the controller passes on.
    Forward { thread: usize, mail: Box<Mail> },
    /// The process of this thread is lost, with all its threads.
    Lost(LostShare),
    /// The thread failed.
    Broken(String),
}

/// A PINGREQ and its PINGRESP.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RoundTrip {
    /// Position of the broker in the plan's targets.
    pub(crate) target: usize,
    /// When the PINGRESP arrived.
    pub(crate) at_ns: u64,
    pub(crate) took_ns: u64,
}

/// One interval of one thread.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Interval {
    pub(crate) index: usize,
    pub(crate) kind: PhaseKind,
    /// Number of the interval within the phase.
    pub(crate) number: u64,
    pub(crate) start_ns: u64,
    pub(crate) len_ns: u64,
    pub(crate) sample: Sample,
    pub(crate) usage: ThreadUsage,
    /// Changes of the counts of actions, by their position.
    pub(crate) actions: Vec<(usize, ActionCounts)>,
}

/// The progress of a thread.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Deliveries expected of messages sent since the books were closed.
    pub(crate) expected: u64,
    /// Deliveries received since then.
    pub(crate) received: u64,
    /// Unacknowledged messages, and streams with unsent messages that are due.
    pub(crate) outstanding: u64,
    /// Deliveries of probes still missing, and expected in total.
    pub(crate) probes_missing: u64,
    pub(crate) probes_expected: u64,
    /// A stream without its probe.
    pub(crate) unprobed: Option<StreamIndex>,
}

/// The last report of a thread.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    #[serde(with = "crate::histogram::form")]
    pub(crate) connect: Histogram,
    #[serde(with = "crate::histogram::form")]
    pub(crate) handshake: Histogram,
    #[serde(with = "crate::histogram::form")]
    pub(crate) suback: Histogram,
    pub(crate) connected: u64,
    /// When the last first CONNACK arrived; 0 if none did.
    pub(crate) connected_ns: u64,
    pub(crate) subscribed: u64,
}

/// Threads that another process ran, and that are gone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LostShare {
    pub(crate) name: String,
    pub(crate) threads: usize,
    pub(crate) why: String,
}

/// An order of the controller to one thread of a share, or to all of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) thread: Option<usize>,
    pub(crate) mail: Mail,
}

/// What becomes of a run that loses a process after its load has begun. One that loses a process
/// before has not measured anything, and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    /// It goes on with what is left. Streams to and from the lost clients are in no books.
    #[default]
    Continue,
    /// It ends.
    End,
}

/// Sends an encoded order to the process of a share; false if it is gone.
pub type SendOrder = Box<dyn Fn(&[u8]) -> bool + Send>;
