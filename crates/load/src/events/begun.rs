//! Phases that have begun.

use serde::{Deserialize, Serialize};

use super::{Event, PhaseKind};

/// A phase that has begun, or will at a time that is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunPhase {
    /// Its kind.
    pub kind: PhaseKind,
    /// Position in [`Plan::phases`](crate::Plan::phases).
    pub index: usize,
    /// When.
    pub at_ns: u64,
}

impl BegunPhase {
    pub(crate) const fn event(self) -> Event {
        let Self { kind, index, at_ns } = self;
        Event::Phase { kind, index, at_ns }
    }
}

/// The phases of a run up to its first load, which is fixed from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBegun {
    /// When the first connect phase began.
    pub connect_start_ns: u64,
    /// The phases before the load, and those of the load.
    pub phases: Vec<BegunPhase>,
}

impl LoadBegun {
    /// When the phase with this position begins; 0 without one.
    pub(crate) fn start_of(&self, index: usize) -> u64 {
        self.phases.iter().find(|phase| phase.index == index).map_or(0, |phase| phase.at_ns)
    }
}
