//! Runs of the program `tacho` that several test binaries make; `program` is its path.

pub mod persistent;
mod points;
pub mod small;
pub mod storms;
mod verdicts;

pub use points::assert_points_of_steps;
pub use verdicts::{assert_code, code_of, is_fair, rows};
