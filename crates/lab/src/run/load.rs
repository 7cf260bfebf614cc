//! Where the load is made.

use std::sync::atomic::AtomicBool;

use tacho_load::{Engine, Plan, StartError};
use tacho_record::Remark;

use crate::agents::{DividedRun, Fleet, FleetError};

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

    pub(super) const fn engine(&self) -> &Engine {
        match self {
            Self::Here(engine) => engine,
            Self::Divided(run) => run.engine(),
        }
    }

    /// Ends it; returns what the record says about the agents.
    pub(super) fn end(self, fleet: Option<&Fleet>) -> Option<Remark> {
        let (Self::Divided(run), Some(fleet)) = (&self, fleet) else { return None };
        let count = fleet.cards().count() as u64;
        // An agent that does not answer any more is lost, and the run has ended because of it.
        let clock_error_us = fleet.clock_error_ns(run).ok()?.div_ceil(1_000);
        Some(Remark::Agents { count, clock_error_us })
    }
}
