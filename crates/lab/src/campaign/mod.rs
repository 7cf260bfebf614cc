//! Sequences of ordinary runs: ladders, suites, and what searches and comparisons share with them.
//!
//! [`Campaign`] makes one record out of the records of the runs. [`Driver`] makes the runs, one
//! after another, on a [`Bench`], which has the brokers.

mod bench;
mod driver;
mod error;
mod ladder;
mod parent;
mod recommend;
mod subject;
mod suite;

pub use bench::{Bench, CampaignNews, Performance, StepNumber};
pub use driver::{CampaignAbout, CampaignEnd, Driver, Finished, MadeRun, Step, first_feasible};
pub use error::CampaignError;
pub use ladder::{LadderRequest, Rung, run_ladder};
pub use parent::{Campaign, Place, target_failed};
pub use recommend::{Interpolated, LoadPoint, interpolate};
pub use subject::Subject;
pub use suite::{SuiteRow, run_suite};
