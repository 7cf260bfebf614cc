//! Pages of the control plane: a run while it runs, and past runs.
//!
//! A thread of its own with a current-thread runtime serves them, at the lowest priority and away
//! from the cores of brokers and generator where there are others. The run never waits for it: its
//! news goes into a bounded queue, and what does not fit is counted.

mod arguments;
mod files;
mod guard;
mod hub;
mod list_page;
mod live;
mod news;
mod page;
mod past;
mod running;
mod serve_command;
mod server;

pub(crate) use arguments::UiArguments;
pub(crate) use live::{Live, Stop};
pub(crate) use news::RunNews;
pub(crate) use running::{Running, RunningFile};
pub(crate) use serve_command::{ServeArguments, serve};
