//! The HTTP API of the console, `/api/v1`.

mod again;
mod answers;
mod broker;
mod chores;
mod control;
mod files;
mod look;
mod operations;
mod start;
mod state;
mod trash;

pub(crate) use answers::ApiError;
pub(crate) use operations::{BASE, router};
pub(crate) use state::Api;
