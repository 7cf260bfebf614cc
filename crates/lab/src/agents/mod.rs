//! Load from several processes or machines: agents, and the fleet that a run makes of them.
//!
//! An [`Agent`] waits on a [`Bus`](tacho_bus::Bus) until a controller hires it for a run; a
//! [`Fleet`] is the controller's side. A run on a fleet is an ordinary run whose generator threads
//! are elsewhere ([`tacho_load::division`]): the controller divides the plan, each agent runs its
//! threads, and reports come back every second and are merged without loss.
//!
//! ```text
//! agent:  card in the table `agents` (lease)          <- Fleet::gather, `tacho agents`
//!         tacho.agent.NAME.clock, .hire  (requests)   <- clock exchanges, hire
//!         tacho.run.RUN.NAME.down / .up  (a link)    <-> assignment, orders, reports
//! ```
//!
//! Nothing goes on alone: an agent whose link is lost stops its load at once. A run that loses an
//! agent under load goes on without its share and says so, or ends, as its settings say; the share
//! is never moved. How soon a silent side counts as lost is [`SILENCE`].

mod agent;
mod card;
mod clock;
mod figures;
mod fleet;
mod job;
mod limits;
mod protocol;

use std::time::Duration;

pub use agent::{Agent, AgentError, AgentSettings};
pub use card::{AgentCard, Labels};
pub use clock::{ClockOffset, clock_offset};
pub(crate) use figures::{AgentSample, AgentUsage};
pub use fleet::{DividedRun, Fleet, FleetError, Wanted, Weights, agents};
pub use limits::{AgentLimits, AllowedTarget};

/// After this time without a sign of it the other side of a run is lost.
pub const SILENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
