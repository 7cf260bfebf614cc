//! What outlives the controller of a run: the log of its reports, and a ticket by which another
//! controller finds it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use tacho_bus::{Bus, BusError, Name};

use super::{DividedRun, Fleet, FleetError};
use crate::agents::card::{AgentCard, boot};
use crate::agents::clock::ClockOffset;
use crate::agents::lease::{Lease, NoLease};
use crate::agents::protocol::{LOG_LIMITS, log_name};

/// By which another controller of this machine finds a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTicket {
    /// The run on the bus.
    pub(super) run: Name,
    /// Counts its controllers, from 0.
    pub(super) attempt: u32,
    /// The boot whose clock the run goes by.
    pub(super) boot: Option<String>,
    /// Its agents, in their order.
    pub(super) agents: Vec<TicketAgent>,
}

/// An agent of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TicketAgent {
    pub(super) card: AgentCard,
    /// What it adds to its clock.
    pub(super) clock: ClockOffset,
}

impl RunTicket {
    /// The ticket of the next controller.
    #[must_use]
    pub fn next(mut self) -> Self {
        self.attempt += 1;
        self
    }

    /// Whether the clock that the run goes by is this machine's, since it started.
    #[must_use]
    pub fn is_of_this_boot(&self) -> bool {
        self.boot.is_some() && self.boot == boot()
    }

    /// The agents' cards.
    pub(super) fn cards(&self) -> Vec<AgentCard> {
        self.agents.iter().map(|agent| agent.card.clone()).collect()
    }
}

/// The log of a run and the lease on it, while this controller has it.
pub(crate) struct KeptRun {
    bus: Arc<dyn Bus>,
    pub(super) run: Name,
    pub(super) attempt: u32,
    lease: Lease,
    /// Whether agents work for it.
    pub(super) is_worked_on: bool,
}

impl KeptRun {
    /// Creates the log of a new run, and takes the lease.
    pub(super) fn begin(
        bus: &Arc<dyn Bus>,
        run: &Name,
        stop: &AtomicBool,
    ) -> Result<Self, FleetError> {
        let kept = Self::hold(bus, run, 0, stop)?;
        let log = bus.log(&log_name(run)?, LOG_LIMITS);
        log.map_err(|error| FleetError::NotTakenUp {
            why: format!(
                "the bus keeps no log of the run: {error}; allow JetStream more storage, or use \
                 --resume-within 0s"
            ),
        })?;
        Ok(kept)
    }

    /// Takes the lease.
    pub(super) fn hold(
        bus: &Arc<dyn Bus>,
        run: &Name,
        attempt: u32,
        stop: &AtomicBool,
    ) -> Result<Self, FleetError> {
        let lease = Lease::take(&**bus, run, attempt, stop).map_err(|error| match error {
            NoLease::Bus(error) => FleetError::Bus(error),
            NoLease::Stopped => FleetError::Stopped,
            NoLease::System(error) => FleetError::System(error),
            NoLease::Held(held) => FleetError::NotTakenUp {
                why: format!(
                    "another controller still has the run: process {} on {}; it goes on there",
                    held.process, held.host
                ),
            },
        })?;
        Ok(Self { bus: Arc::clone(bus), run: run.clone(), attempt, lease, is_worked_on: true })
    }

    /// Whether another controller has taken the run up.
    pub(crate) fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    pub(super) fn worked_on(self, is_worked_on: bool) -> Self {
        Self { is_worked_on, ..self }
    }

    /// Whether agents have worked for this controller.
    pub(crate) const fn is_worked_on(&self) -> bool {
        self.is_worked_on
    }

    /// Deletes the log: the run has a record.
    pub(crate) fn collected(&self) -> Result<(), BusError> {
        self.bus.delete_log(&log_name(&self.run)?)
    }
}

impl fmt::Debug for KeptRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptRun").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Fleet {
    /// The ticket of a run that can be taken up.
    pub(crate) fn ticket(&self, run: &DividedRun) -> Option<RunTicket> {
        let kept = run.kept.as_ref()?;
        let agents = self.members.iter().map(|member| TicketAgent {
            card: member.card.clone(),
            clock: member.clock().applied(),
        });
        Some(RunTicket {
            run: kept.run.clone(),
            attempt: kept.attempt,
            boot: boot(),
            agents: agents.collect(),
        })
    }
}

impl DividedRun {
    /// What lets another controller take it up; returned once.
    pub(crate) const fn take_kept(&mut self) -> Option<KeptRun> {
        self.kept.take()
    }
}
