//! Pages of runs: [`Live`] shows one while it runs and can stop it, [`PastRunsPage`] lists past
//! ones. [`MetricsPage`] offers a text to Prometheus. [`MachineLock`] keeps a second load off the
//! machine.
//!
//! A thread of its own with a current-thread runtime serves them, at the lowest priority and away
//! from the cores of brokers and generator where there are others. A run never waits for it: news
//! goes into a bounded queue; events that do not fit are dropped and counted.

mod address;
mod error;
mod files;
mod guard;
mod hub;
mod list_page;
mod live;
mod machine_lock;
mod metrics_page;
mod news;
mod page;
mod past;
mod past_page;
mod process;
mod regular;
mod running;
mod server;
mod stop;
mod watchers;

pub use address::{Listen, parse_address};
pub use error::ConsoleError;
pub use live::{Live, LiveRun, LiveSettings, Outlook};
pub use machine_lock::{MachineHolder, MachineLock, MachineLockError};
pub use metrics_page::MetricsPage;
pub use news::{RunAbout, ThresholdAbout};
pub use past_page::PastRunsPage;
pub use process::ProcessId;
pub use running::{Running, RunningFile};
pub use stop::Stop;
