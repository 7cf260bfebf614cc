//! Sequences of ordinary runs: ladders, searches and suites. Knows no brokers and no sockets.

mod parent;
mod recommend;

pub use parent::{Campaign, Place, target_failed};
pub use recommend::{Interpolated, LoadPoint, interpolate};
