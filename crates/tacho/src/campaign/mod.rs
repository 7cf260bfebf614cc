//! Many runs under one name: `tacho ladder`, `tacho capacity`, and suites.

mod capacity;
mod driver;
mod ladder;
mod suite;

pub(crate) use capacity::{CapacityArguments, capacity};
pub(crate) use driver::{Driver, Step};
pub(crate) use ladder::{LadderArguments, ladder};
pub(crate) use suite::suite;
