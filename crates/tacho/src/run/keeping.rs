//! Whether a run outlives its controller.

use std::sync::Arc;

use tacho_lab::agents::Fleet;
use tacho_lab::run::ResumeState;

/// Whether a run outlives its controller.
#[derive(Debug, Default)]
pub(crate) enum Keeping {
    /// It ends with it.
    #[default]
    No,
    /// Another controller can take it up, if its agents and brokers are not of its own.
    Kept,
    /// This controller takes it up, with these agents.
    TakenUp(Box<ResumeState>, Arc<Fleet>),
}

impl Keeping {
    /// What the controller before has left.
    pub(crate) fn resumed(&self) -> Option<&ResumeState> {
        match self {
            Self::TakenUp(state, _) => Some(state),
            Self::No | Self::Kept => None,
        }
    }
}
