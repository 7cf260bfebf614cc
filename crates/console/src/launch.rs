//! Runs that the console was asked for: `request.json` in the directory of each.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::process::ProcessId;
use crate::regular;
use crate::request::RunRequest;
use crate::run_state::RunState;
use crate::whole_file::write_whole;

/// Name of the file.
const FILE: &str = "request.json";
/// A larger file was written by another program.
const BYTES_MAX: u64 = 1 << 20;

/// A run that the console was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Launched {
    pub(crate) request: RunRequest,
    /// The words of the command line, without the program.
    pub(crate) arguments: Vec<String>,
    /// They are those of an earlier run's record, and say more than the request.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) is_recorded: bool,
    /// When it was asked for, RFC 3339 in UTC.
    pub(crate) accepted: String,
    /// Orders requests, also those of the same moment.
    pub(crate) number: u64,
    /// What runs it, once it was started.
    pub(crate) process: Option<ProcessId>,
    /// It was taken out of the queue.
    pub(crate) is_canceled: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Launched {
    /// That of the run in `directory`; none where the console was not asked for it.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let text = regular::read(&directory.join(FILE), BYTES_MAX).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes it in one step.
    ///
    /// # Errors
    /// When the directory cannot be written to.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        write_whole(&directory.join(FILE), &serde_json::to_vec_pretty(self)?)
    }

    /// What it is doing, as far as that does not stand in other files of its directory.
    pub(crate) fn state(&self) -> RunState {
        match self.process {
            _ if self.is_canceled => RunState::Canceled,
            None => RunState::Queued,
            Some(process) if process.is_alive() => RunState::Running,
            Some(_) => RunState::Broken,
        }
    }

    /// The scenario, or the uploaded file that is run.
    pub(crate) fn scenario(&self) -> String {
        self.request.scenario.clone().unwrap_or_else(|| {
            let path = self.arguments.get(1).map(String::as_str).unwrap_or_default();
            path.rsplit('/').next().unwrap_or_default().to_owned()
        })
    }
}
