//! Sequences of ordinary runs: ladders, searches and suites. Knows no brokers and no sockets.

mod parent;
mod recommend;
mod steps;
mod text;

pub use parent::{Campaign, Place, Results, recommendation_text, target_failed};
pub use recommend::{Interpolated, LoadPoint, interpolate};
pub use steps::{StepSpec, number, shown, unit_of};
pub use text::{campaign_text, capacity_text, step_line};
