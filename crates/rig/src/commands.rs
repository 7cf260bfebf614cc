//! Runs shell commands at planned moments.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::attached;
use crate::error::RigError;
use crate::group::{Cut, ProcessGroup};

/// Time between two looks whether the run is over while no command is due.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A command and when to run it.
#[derive(Clone, Debug)]
pub struct TimedCommand {
    /// The caller's number of it.
    pub number: usize,
    /// When, after [`CommandRunner::begin`].
    pub after: Duration,
    /// The shell command.
    pub text: String,
    /// How long it may take.
    pub timeout: Duration,
    /// The file for its output.
    pub log: PathBuf,
}

/// A change of a command's state.
#[derive(Debug)]
pub enum CommandEvent {
    /// It is about to be started.
    Began {
        /// The caller's number of it.
        number: usize,
    },
    /// It is over.
    Ended {
        /// The caller's number of it.
        number: usize,
        /// How long it took.
        took: Duration,
        /// How it ended.
        end: CommandEnd,
    },
}

/// How a command ended.
#[derive(Debug)]
pub enum CommandEnd {
    /// By itself; its exit code, or `None` after a signal.
    Exited(Option<i32>),
    /// It was ended at its timeout.
    TimedOut,
    /// It was ended with the run.
    RunOver,
    /// The system does not report its status.
    Unknown(io::Error),
    /// It could not be started.
    NotStarted(io::Error),
}

/// Runs commands on a thread of its own, one after the other. The kernel ends a running command
/// with that thread. Dropping the runner ends the command that is running.
#[derive(Debug)]
pub struct CommandRunner {
    begin: Option<Sender<()>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CommandRunner {
    /// A runner of `commands`, ordered by time, whose events go to `report` on its thread; `None`
    /// without commands. `stop` ends it too.
    ///
    /// # Errors
    /// When a command's log cannot be written or no thread be started.
    pub fn new(
        commands: Vec<TimedCommand>,
        stop: &Arc<AtomicBool>,
        report: impl FnMut(CommandEvent) + Send + 'static,
    ) -> Result<Option<Self>, RigError> {
        if commands.is_empty() {
            return Ok(None);
        }
        let planned: Vec<Planned> =
            commands.into_iter().map(Planned::open).collect::<Result<_, _>>()?;
        let (begin, begun) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let ends = [Arc::clone(&over), Arc::clone(stop)];
        let work = move || run_all(planned, &begun, &ends, report);
        let thread =
            Builder::new().name("commands".into()).spawn(work).map_err(RigError::Thread)?;
        Ok(Some(Self { begin: Some(begin), over, thread: Some(thread) }))
    }

    /// The times of all commands count from now. Only the first call counts.
    pub fn begin(&self) {
        if let Some(begin) = &self.begin {
            // The thread has ended with its last command.
            let _ = begin.send(());
        }
    }
}

impl Drop for CommandRunner {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.begin = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

/// A command whose log is open.
struct Planned {
    command: TimedCommand,
    log: File,
}

fn run_all(
    planned: Vec<Planned>,
    begun: &Receiver<()>,
    ends: &[Arc<AtomicBool>],
    mut report: impl FnMut(CommandEvent),
) {
    let is_over = || ends.iter().any(|end| end.load(Ordering::Relaxed));
    if begun.recv().is_err() {
        return;
    }
    let start = Instant::now();
    for Planned { command, log } in planned {
        let due = start + command.after;
        while Instant::now() < due {
            let left = due.saturating_duration_since(Instant::now());
            match begun.recv_timeout(left.min(LOOK_EVERY)) {
                Err(RecvTimeoutError::Disconnected) => return,
                _ if is_over() => return,
                _ => {}
            }
        }
        let number = command.number;
        report(CommandEvent::Began { number });
        let started = Instant::now();
        let end = match spawn(&command.text, &log) {
            Ok(group) => wait(group, started + command.timeout, &is_over),
            Err(error) => CommandEnd::NotStarted(error),
        };
        report(CommandEvent::Ended { number, took: started.elapsed(), end });
    }
}

impl Planned {
    fn open(command: TimedCommand) -> Result<Self, RigError> {
        let log = File::create(&command.log)
            .map_err(|error| RigError::Write { path: command.log.clone(), error })?;
        Ok(Self { command, log })
    }
}

fn spawn(text: &str, log: &File) -> io::Result<ProcessGroup> {
    let wrapped = format!("sh -c {}", attached::quoted(text));
    let mut command: Command = attached::command(&wrapped).map_err(io::Error::other)?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
    ProcessGroup::start(&mut command)
}

fn wait(group: ProcessGroup, deadline: Instant, is_over: &dyn Fn() -> bool) -> CommandEnd {
    match group.wait(deadline, is_over) {
        Ok(status) => CommandEnd::Exited(status.code()),
        Err(Cut::Deadline) => CommandEnd::TimedOut,
        Err(Cut::Cancelled) => CommandEnd::RunOver,
        Err(Cut::Unknown(error)) => CommandEnd::Unknown(error),
    }
}
