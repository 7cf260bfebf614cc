//! Tacho's laboratory: what is measured, what is measured next, and what the figures mean.
//!
//! ```text
//! scenario -> load::Plan -> load::Engine -> events + samples -> Collector -> RunRecord (judged)
//! ```
//!
//! - [`plan`](mod@plan): every client and topic spelled out for the load generator.
//! - [`needs`](mod@needs): what a scenario needs of the machine that generates its load.
//! - [`fit`](mod@fit): all that this machine lacks for a scenario, before any load.
//! - [`calibration`]: what the generator can do on this machine.
//! - [`doctor`]: what the system's settings allow of it.
//! - [`run`](mod@run): drives the generator, samples broker and host, collects.
//! - [`points`]: a run's figures for outputs such as InfluxDB.
//! - [`spinning`]: whether the generator's threads may spin while they wait.
//! - [`verdict`] and [`findings`]: what a run is worth, and what a reader must know about it.
//! - [`campaign`] and [`capacity`]: ladders, suites and searches out of runs.
//! - [`compare`]: what differs between runs, and whether that is more than noise; repeats of sides
//!   in turns.
//! - [`repeats`](mod@repeats): one scenario several times, with statistics.
//!
//! Campaigns perform their runs on a [`Bench`](campaign::Bench), which has the brokers. Nothing
//! here opens an MQTT socket or renders: records go to the report.

pub mod agents;
pub mod calibration;
pub mod campaign;
pub mod capacity;
mod command_line;
pub mod compare;
pub mod doctor;
pub mod environment;
mod files;
pub mod findings;
pub mod fit;
pub mod needs;
pub mod plan;
pub mod points;
mod probe;
pub mod repeats;
pub mod run;
pub mod spinning;
pub mod verdict;

pub use command_line::{command_line, lacks_secret, secret_word};
