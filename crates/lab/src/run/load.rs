//! Where the load is made.

use std::sync::atomic::AtomicBool;

use tacho_load::{Engine, Plan, StartError};
use tacho_record::{AgentRecord, Remark};

use super::resume::ResumeState;

use crate::agents::{AgentSample, DividedRun, Fleet, FleetError, KeptRun, RunTicket};

/// Why no load is made.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Here(#[from] StartError),
    #[error(transparent)]
    Divided(#[from] FleetError),
}

/// The load: made here, or by agents.
pub(super) enum Load {
    Here(Engine),
    Divided(DividedRun),
}

impl Load {
    pub(super) fn start(
        plan: Plan,
        fleet: Option<&Fleet>,
        stop: &AtomicBool,
    ) -> Result<Self, LoadError> {
        let Some(fleet) = fleet else {
            return Ok(Self::Here(Engine::start(plan)?));
        };
        Ok(Self::Divided(fleet.start(plan, stop)?))
    }

    /// Takes up a run that another controller has begun.
    pub(super) fn take_up(
        plan: Plan,
        fleet: Option<&Fleet>,
        state: &ResumeState,
        stop: &AtomicBool,
    ) -> Result<Self, LoadError> {
        let nothing =
            || FleetError::NotTakenUp { why: "the run has no agents, or no load".to_owned() };
        let (fleet, since) = fleet.zip(state.since()).ok_or_else(nothing)?;
        Ok(Self::Divided(fleet.take_up(plan, state.ticket(), since, stop)?))
    }

    /// By which another controller could take it up.
    pub(super) fn ticket(&self, fleet: Option<&Fleet>) -> Option<RunTicket> {
        match (self, fleet) {
            (Self::Divided(run), Some(fleet)) => fleet.ticket(run),
            _ => None,
        }
    }

    /// What lets another controller take it up; returned once.
    pub(super) const fn take_kept(&mut self) -> Option<KeptRun> {
        match self {
            Self::Here(_) => None,
            Self::Divided(run) => run.take_kept(),
        }
    }

    pub(super) const fn engine(&self) -> &Engine {
        match self {
            Self::Here(engine) => engine,
            Self::Divided(run) => run.engine(),
        }
    }

    /// What each agent has used so far; empty where the load is made here.
    pub(super) fn samples(&self) -> Vec<AgentSample> {
        match self {
            Self::Here(_) => Vec::new(),
            Self::Divided(run) => run.samples(),
        }
    }

    /// Ends it; returns what the record says about the agents.
    pub(super) fn end(self, fleet: Option<&Fleet>) -> (Vec<AgentRecord>, Option<Remark>) {
        let (Self::Divided(run), Some(fleet)) = (&self, fleet) else { return (Vec::new(), None) };
        let records = fleet.records(run);
        let count = records.len() as u64;
        // Between two agents both errors count.
        let mut errors: Vec<u64> = records.iter().map(|record| record.clock.error_us).collect();
        errors.sort_unstable_by(|a, b| b.cmp(a));
        let clock_error_us = errors.iter().take(2).sum();
        (records, Some(Remark::Agents { count, clock_error_us }))
    }
}
