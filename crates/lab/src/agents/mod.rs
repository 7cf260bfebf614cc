//! Load from several processes or machines: agents, and the fleet that a run makes of them.
//!
//! An [`Agent`] waits on a [`Bus`](tacho_bus::Bus) until a controller hires it for a run; a
//! [`Fleet`] is the controller's side. A run on a fleet is an ordinary run whose generator threads
//! are elsewhere ([`tacho_load::division`]): the controller divides the plan, each agent runs its
//! threads, and reports come back every second and are merged without loss.
//!
//! ```text
//! agent:  card in the table `agents` (lease)          <- Fleet::gather, `tacho agents`
//!         tacho.agent.NAME.clock, .hire, .attach      <- clock exchanges, hire, taking a run up
//!         tacho.run.RUN.ATTEMPT.NAME.down / .up       <-> assignment, orders, reports (a link)
//!         log `run-RUN`: all reports until the end of the first load
//!                                       the run's controller: key in the table `runs` (lease)
//! ```
//!
//! An agent whose controller is silent goes on for a bounded time under load, if the run is one
//! that another controller can take up; otherwise it stops at once, as it does when it learns that
//! its controller lives and has given it up. A run that loses an agent under load goes on without
//! its share and says so, or ends, as its settings say; the share is never moved. How soon a silent
//! side counts as lost is [`SILENCE`].

mod agent;
mod card;
mod clock;
mod figures;
mod fleet;
mod job;
mod lease;
mod limits;
mod outlet;
mod protocol;

use std::time::Duration;

pub use agent::{Agent, AgentError, AgentSettings};
pub use card::{AgentCard, Labels};
pub use clock::{ClockOffset, clock_offset};
pub(crate) use figures::{AgentSample, AgentUsage};
pub use fleet::{DividedRun, Fleet, FleetError, RunTicket, Wanted, Weights, agents};
pub(crate) use fleet::{KeptRun, Since};
pub use limits::{AgentLimits, AllowedTarget};

/// After this time without a sign of it the other side of a run is lost.
pub const SILENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
