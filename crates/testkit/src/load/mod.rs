//! Runs of the load generator against a small broker with faults.

mod faulty_broker;
mod scene;

pub use faulty_broker::{Behaviour, Fault, FaultyBroker, with_fault};
pub use scene::{Outcome, Scene, collect, open, run};
