//! What agents and controllers say to each other. Both have the same version, which is checked
//! when an agent is hired.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tacho_bus::{Bus, BusError, Bytes, LinkEnds, Name, Subject, Table};

use super::figures::AgentCounters;

/// An agent whose card was not renewed for so long is gone.
const LEASE: Duration = Duration::from_secs(4);
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
    Prepare { assignment: Vec<u8>, clock_shift_ns: i64, cores: Vec<usize> },
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

/// The link of a run to an agent, from the agent's side.
pub(super) fn link_ends(run: &Name, agent: &Name) -> Result<LinkEnds, BusError> {
    let subject = |way: &str| Subject::parse(&format!("tacho.run.{run}.{agent}.{way}"));
    Ok(LinkEnds { own: subject("down")?, other: subject("up")? })
}
