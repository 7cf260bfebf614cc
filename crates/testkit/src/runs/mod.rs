//! Runs of the program `tacho` that several test binaries make; `program` is its path.

pub mod persistent;
mod points;
pub mod small;
pub mod storms;
mod verdicts;

pub use points::assert_points_of_steps;
pub use verdicts::{assert_code, code_of, is_fair, rows};

/// The measurements of collectd in InfluxDB that the guide's dashboard reads, in their order.
pub const GUIDE_MEASUREMENTS: [&str; 7] = [
    "cpu_value",
    "interface_rx",
    "interface_tx",
    "load_longterm",
    "load_midterm",
    "load_shortterm",
    "memory_value",
];
