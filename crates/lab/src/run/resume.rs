//! What a run leaves in its directory until it has a record, so that another controller can take it
//! up: `resume.json`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tacho_bus::BusError;
use tacho_load::division::LostThen;
use tacho_load::{LoadBegun, LostPart};
use tacho_record::{OutputError, RunDirectory, Timestamp};

use crate::agents::{KeptRun, RunTicket, Since};
use crate::command_line;

/// The file in the run's directory.
const FILE: &str = "resume.json";

/// Why a run cannot be taken up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// There is nothing to take up.
    #[error(
        "{} has no run that can be taken up: it has a record, or it ends with its controller (see \
         docs/agents.md)",
        path.display()
    )]
    None {
        /// The directory.
        path: PathBuf,
    },
    /// The file cannot be used.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// What another controller needs to know of a run beside what is in its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResumeState {
    version: String,
    /// The command that made the run, and the folder that it was given in.
    command: Vec<String>,
    folder: PathBuf,
    name: String,
    started_unix_ns: u64,
    started_ns: u64,
    run_id: u32,
    ticket: RunTicket,
    /// Absent before the load begins.
    begun: Option<LoadBegun>,
    lost: Vec<LostThen>,
}

impl ResumeState {
    /// A run that begins.
    pub(super) fn new(
        name: &str,
        (started, started_ns): (Timestamp, u64),
        run_id: u32,
        ticket: RunTicket,
    ) -> io::Result<Self> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command_line(),
            folder: std::env::current_dir()?,
            name: name.to_owned(),
            started_unix_ns: u64::try_from(started.unix_ns()).unwrap_or(u64::MAX),
            started_ns,
            run_id,
            ticket,
            begun: None,
            lost: Vec::new(),
        })
    }

    /// Reads what the run in `directory` has left.
    ///
    /// # Errors
    /// There is nothing, or this program on this machine cannot take the run up.
    pub fn read(directory: &Path) -> Result<Self, ResumeError> {
        let path = directory.join(FILE);
        let unusable = |why: String| ResumeError::Unusable { path: path.clone(), why };
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ResumeError::None { path: directory.to_owned() });
            }
            text => text.map_err(|error| unusable(error.to_string()))?,
        };
        let state: Self =
            serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
        let own = env!("CARGO_PKG_VERSION");
        if state.version != own {
            let why = format!("the run was begun by version {}, and this is {own}", state.version);
            return Err(unusable(why));
        }
        if !state.ticket.is_of_this_boot() {
            let why = "the run goes by the clock of another machine, or of this one before it \
                       started anew";
            return Err(unusable(why.to_owned()));
        }
        if state.begun.is_none() {
            let why = "its controller was gone before the load began: nothing was measured; start \
                       the run anew";
            return Err(unusable(why.to_owned()));
        }
        Ok(state)
    }

    /// The words of the command that made the run; secrets are left out.
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// The folder in which it was given.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Name of the run.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// By which its agents are found.
    #[must_use]
    pub const fn ticket(&self) -> &RunTicket {
        &self.ticket
    }

    pub(super) const fn run_id(&self) -> u32 {
        self.run_id
    }

    pub(super) const fn started(&self) -> (Timestamp, u64) {
        (Timestamp::from_unix_ns(self.started_unix_ns), self.started_ns)
    }

    /// The state as the next controller of the run has it.
    pub(super) fn next(mut self) -> Self {
        self.ticket = self.ticket.next();
        self
    }

    pub(super) fn since(&self) -> Option<Since> {
        Some(Since { begun: self.begun.clone()?, lost: self.lost.clone() })
    }
}

/// The file, kept up to date.
#[derive(Debug)]
pub(super) struct ResumeFile<'d> {
    directory: &'d RunDirectory,
    state: ResumeState,
}

impl<'d> ResumeFile<'d> {
    pub(super) fn write(
        directory: &'d RunDirectory,
        state: ResumeState,
    ) -> Result<Self, OutputError> {
        let file = Self { directory, state };
        file.save()?;
        Ok(file)
    }

    /// A new run begins: what an earlier one has left here is of no use any more.
    pub(super) fn forget(directory: &RunDirectory) -> Result<(), OutputError> {
        match fs::remove_file(directory.file(FILE)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(directory.error(FILE, source))
            }
            _ => Ok(()),
        }
    }

    /// The load is about to begin.
    pub(super) fn begin(&mut self, begun: &LoadBegun) -> Result<(), OutputError> {
        self.state.begun = Some(begun.clone());
        self.save()
    }

    /// An agent was lost.
    pub(super) fn lose(&mut self, part: &LostPart) -> Result<(), OutputError> {
        let LostPart { share, at_ns, why, .. } = part;
        self.state.lost.push(LostThen { share: *share, at_ns: *at_ns, why: why.clone() });
        self.save()
    }

    /// Whether the load has begun.
    pub(super) const fn has_begun(&self) -> bool {
        self.state.begun.is_some()
    }

    /// Replaces the file as a whole.
    fn save(&self) -> Result<(), OutputError> {
        let (path, part) = (self.directory.file(FILE), self.directory.file("resume.json.part"));
        let text = serde_json::to_vec_pretty(&self.state).map_err(io::Error::other);
        let written = text.and_then(|text| fs::write(&part, text));
        let saved = written.and_then(|()| fs::rename(&part, &path));
        saved.map_err(|source| self.directory.error(FILE, source))
    }
}

/// What a run has left for another controller, and its right to it.
#[derive(Debug)]
pub struct Left {
    kept: KeptRun,
    /// Another controller could go on: the agents may still make the load.
    is_open: bool,
}

impl Left {
    pub(super) const fn new(kept: KeptRun, is_open: bool) -> Self {
        Self { kept, is_open }
    }

    /// Whether the run, which has ended without its agents, can be taken up.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// The run has its record: deletes what was left of it, unless it can be taken up.
    ///
    /// # Errors
    /// The bus, or the file, could not be reached; the log empties itself after a day.
    pub fn clear(&self, directory: &RunDirectory) -> Result<(), BusError> {
        if self.is_open {
            return Ok(());
        }
        // Without the log it is of no use, and says so.
        let _ = fs::remove_file(directory.file(FILE));
        self.kept.collected()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_such_a_run_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = || ResumeState::read(folder.path()).expect_err("no run").to_string();
        let said = read();
        assert!(said.contains(&folder.path().display().to_string()), "{said}");
        assert!(said.contains("has no run that can be taken up"), "{said}");
        fs::write(folder.path().join(FILE), "{").expect("writes");
        assert!(read().contains("resume.json"), "{}", read());
    }
}
