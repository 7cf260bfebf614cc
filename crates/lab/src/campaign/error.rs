//! Why a campaign cannot begin or go on.

use tacho_record::{Obstacle, OutputError};
use tacho_scenario::ScenarioError;

/// A campaign that cannot begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CampaignError {
    /// The process was asked to stop.
    #[error("{0}")]
    Stopped(String),
    /// A broker cannot be started or reached, or went away.
    #[error("{0}")]
    Target(String),
    /// A setting makes no sense.
    #[error("{0}")]
    Setting(String),
    /// A scenario makes no sense.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// This machine can run nothing of the campaign.
    #[error("this machine can run none of the {points}")]
    Infeasible {
        /// What the campaign consists of.
        points: &'static str,
        /// What the machine lacks for all of them.
        obstacle: Box<Obstacle>,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The generator or a command of the user's failed.
    #[error("{0}")]
    Failed(String),
}
