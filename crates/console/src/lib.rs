//! Pages of runs: [`Live`] shows one while it runs and can stop it; [`Console`] starts, queues,
//! lists and compares those of a folder, which a [`Toolbox`] makes. [`MetricsPage`] offers a text
//! to Prometheus. [`MachineLock`] keeps a second load off the machine.
//!
//! A thread of its own with a current-thread runtime serves them, at the lowest priority and away
//! from the cores of brokers and generator where there are others. A run never waits for it: news
//! goes into a bounded queue; events that do not fit are dropped and counted.

mod access;
mod address;
mod api;
mod broker_door;
mod console;
mod error;
mod files;
mod gate;
mod guard;
mod hub;
mod launch;
mod live;
mod machine_lock;
mod metrics_page;
mod news;
mod page;
mod page_key;
mod past_course;
mod process;
mod progress_file;
mod queue;
mod regular;
mod relay;
mod request;
mod run_state;
mod running;
mod runs;
mod server;
mod shell;
mod source_file;
mod stop;
mod table;
mod tags;
mod told;
mod toolbox;
mod trends;
mod uploads;
mod watchers;
mod whole_file;

pub use access::AccessError;
pub use address::{Listen, parse_address};
pub use broker_door::{BrokerDoor, BrokerDoorError};
pub use console::{Console, ConsoleSettings};
pub use error::ConsoleError;
pub use live::{Live, LiveRun, LiveSettings, Outlook};
pub use machine_lock::{MachineHolder, MachineLock, MachineLockError};
pub use metrics_page::MetricsPage;
pub use news::{RunAbout, ThresholdAbout};
pub use process::ProcessId;
pub use progress_file::{ProgressFile, RunProgress, StepProgress};
pub use running::{Running, RunningFile};
pub use source_file::SourceFile;
pub use stop::Stop;
pub use toolbox::{
    RepeatFrom, ToolInspection, ToolOffer, ToolPreview, ToolProblem, ToolRemark, ToolRepeat,
    ToolText, Toolbox,
};
