//! What agents and controllers say to each other. Both have the same version, which is checked
//! when an agent is hired.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tacho_bus::{Bus, BusError, Bytes, LinkEnds, LogLimits, Name, Subject, Table};

use super::figures::AgentCounters;
use crate::environment::fnv1a;

/// An agent whose card was not renewed for so long is gone.
pub(super) const LEASE: Duration = Duration::from_secs(4);
/// How often an agent renews its card.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(1);

/// A request for an agent's services.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hire {
    /// Names the run, and the subjects of its links.
    pub(super) run: Name,
    /// The controller's version.
    pub(super) version: String,
}

/// The answer: hired, or why not.
pub(super) type Hired = Result<(), String>;

/// How an agent goes on without its controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Keep {
    /// Position of the agent in the run.
    pub(super) share: u16,
    /// For so long.
    pub(super) within_ms: u64,
}

/// A request of a controller that takes up a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Attach {
    pub(super) run: Name,
    pub(super) version: String,
    /// Counts the controllers of the run; one that comes later is the one that lives.
    pub(super) attempt: u32,
    /// What the agent was given, by its [`mark`].
    pub(super) assignment: u64,
}

/// The answer: how many pieces the agent has put into the log, or why it does not work for this
/// controller. What it reports from here on comes over the link.
pub(super) type Attached = Result<u64, String>;

/// A part of what an agent has reported, as the log of a run has it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPiece<'a> {
    pub(super) share: u16,
    /// From 0, without gaps; one that was added twice has the same number twice.
    pub(super) number: u64,
    /// What is reported at once ends with it.
    pub(super) last: bool,
    #[serde(borrow)]
    pub(super) bytes: &'a [u8],
}

/// The controller of a run, as the table of runs has it while it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    pub(super) attempt: u32,
    pub(super) host: String,
    pub(super) process: u32,
}

/// Limit on the log of a run; beyond it the run cannot be taken up.
const LOG_BYTES_MAX: u64 = 1 << 30;
/// Limit on the age of what a log has, so that one that is never collected empties itself: the
/// longest that an agent works for a run unless it is told otherwise.
const LOG_AGE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// What the log of a run keeps.
pub(super) const LOG_LIMITS: LogLimits =
    LogLimits { bytes_max: LOG_BYTES_MAX, age_max: Some(LOG_AGE_MAX) };

/// The log with the reports of a run.
pub(super) fn log_name(run: &Name) -> Result<Name, BusError> {
    Name::parse(&format!("run-{run}"))
}

/// The controllers of all runs that could be taken up.
pub(super) fn runs(bus: &dyn Bus) -> Result<Box<dyn Table>, BusError> {
    bus.table(&Name::parse("runs")?, Some(LEASE))
}

/// Tells assignments apart, by their identity, that are not the same by mistake.
pub(super) fn mark(identity: &[u8]) -> u64 {
    fnv1a(identity)
}

/// The answer to a request for the agent's clock: its own clock when the request arrived, and
/// when the answer left.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ClockReading {
    pub(super) received_ns: u64,
    pub(super) answered_ns: u64,
}

/// From the controller, over the link.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToAgent {
    /// Start the threads of this assignment, on these cores if there are any, by a clock that is
    /// so much ahead of the agent's.
    Prepare {
        assignment: Vec<u8>,
        clock_shift_ns: i64,
        cores: Vec<usize>,
        /// Where another controller could take the run up; otherwise the load ends with this one.
        keep: Option<Keep>,
    },
    /// An order for the threads.
    Order(Vec<u8>),
}

/// From an agent, over the link.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToController {
    /// The threads wait for orders.
    Ready,
    /// The agent does not take the assignment.
    Refused(String),
    /// What the threads report.
    Reports(Vec<u8>),
    /// What process and machine have used.
    Counters(AgentCounters),
    /// The agent has stopped its load.
    Failed(String),
}

pub(super) fn encode(value: &impl Serialize) -> Bytes {
    // Invariant: these types consist of numbers, texts and lists.
    postcard::to_allocvec(value).expect("a message can be encoded").into()
}

/// Reads what the other side sent; `None` if it is of another form.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// The cards of all agents.
pub(super) fn table(bus: &dyn Bus) -> Result<Box<dyn Table>, BusError> {
    bus.table(&Name::parse("agents")?, Some(LEASE))
}

/// Where an agent answers requests of this kind.
pub(super) fn agent_subject(agent: &Name, what: &str) -> Result<Subject, BusError> {
    Subject::parse(&format!("tacho.agent.{agent}.{what}"))
}

/// The link of a run's controller, counted by attempts, to an agent, from the agent's side.
pub(super) fn link_ends(run: &Name, attempt: u32, agent: &Name) -> Result<LinkEnds, BusError> {
    let subject = |way: &str| Subject::parse(&format!("tacho.run.{run}.{attempt}.{agent}.{way}"));
    Ok(LinkEnds { own: subject("down")?, other: subject("up")? })
}
