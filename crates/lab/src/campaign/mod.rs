//! Sequences of ordinary runs: ladders, searches and suites. Knows no brokers and no sockets.

mod recommend;
mod steps;

pub use recommend::{Interpolated, LoadPoint, interpolate};
pub use steps::{StepSpec, number, shown, unit_of};
