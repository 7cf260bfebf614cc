//! Tacho's laboratory: scenarios, runs, verdicts, the run record and its renderings.
//!
//! ```text
//! scenario file -> Scenario -> load::Plan -> load::Engine -> events + samples
//!     -> Collector -> RunRecord (judged) -> summary.json, report.html, table on the terminal
//! ```
//!
//! - [`scenario`]: files, variables, checks; errors point at the line.
//! - [`needs`]: what a scenario takes of the machine that generates its load.
//! - [`calibration`]: what the generator can do on this machine.
//! - [`doctor`]: what the system's settings allow of it.
//! - [`plan`](mod@plan): every client and topic spelled out for the load generator.
//! - [`run`](mod@run): drives the generator, samples broker and host, collects.
//! - [`record`]: the run record, a versioned contract.
//! - [`verdict`]: what a run is worth.
//! - [`compare`]: what differs between runs, and whether that is more than noise.
//! - [`published`]: results of others to stand beside ours.
//! - [`output`]: the files of a run directory.
//! - [`report`]: the record for people.
//! - [`results`]: documents about measurements with several brokers.
//!
//! Nothing here opens a socket or starts a process: the caller says where the broker is.

pub mod calibration;
pub mod campaign;
pub mod capacity;
mod clock;
mod command_line;
pub mod compare;
pub mod doctor;
pub mod environment;
mod files;
pub mod findings;
pub mod format;
pub mod jmx;
pub mod needs;
pub mod output;
pub mod past;
pub mod plan;
mod probe;
pub mod published;
pub mod record;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod threshold;
pub mod verdict;

pub use clock::Timestamp;
