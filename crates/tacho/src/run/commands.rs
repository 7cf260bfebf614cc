//! Runs the commands of a scenario's timed actions. Only files of the user have any: what comes
//! with the program runs none.

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tacho_lab::output::RunDirectory;
use tacho_lab::run::{CommandDone, Commands, RunConfig};
use tacho_lab::scenario::{Action, Deed};
use tacho_load::PhaseKind;

use super::attached;
use super::group::{Cut, Group};

/// How often to see whether the run is over while a command's time has not come.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs commands on a thread of its own, one after the other: it is also whose end ends them.
/// Dropping it ends the command that is running.
#[derive(Debug)]
pub(super) struct Runner {
    phases: Option<Sender<PhaseKind>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A command before its time has come.
struct Planned {
    /// Position in the scenario's schedule.
    scheduled: usize,
    after: Duration,
    text: String,
    timeout: Duration,
    log: File,
    log_name: String,
}

impl Runner {
    /// The commands of a run; `None` when it has none.
    pub(super) fn of(
        config: &RunConfig,
        directory: &RunDirectory,
        (pid, port): (Option<u32>, u16),
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Self>, String> {
        let mut planned = Vec::new();
        for (number, scheduled) in config.scenario.schedule().iter().enumerate() {
            let Deed::Run(text) = &scheduled.action.deed else { continue };
            let log_name = format!("command-{}.log", planned.len() + 1);
            let path = directory.file(&log_name);
            let log = File::create(&path)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            let dir = directory.path().display().to_string();
            let pid = pid.map_or_else(String::new, |pid| pid.to_string());
            planned.push(Planned {
                scheduled: number,
                after: scheduled.after,
                text: text
                    .replace("{dir}", &dir)
                    .replace("{port}", &port.to_string())
                    .replace("{pid}", &pid),
                timeout: scheduled.action.timeout.map_or(Action::TIMEOUT, |timeout| timeout.0),
                log,
                log_name,
            });
        }
        if planned.is_empty() {
            return Ok(None);
        }
        let (phases, inbox) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let ends = [Arc::clone(&over), Arc::clone(stop)];
        let commands = Arc::clone(&config.commands);
        let work = move || go_on(planned, &inbox, &ends, &commands);
        let thread = Builder::new()
            .name("commands".into())
            .spawn(work)
            .map_err(|error| format!("no thread: {error}"))?;
        Ok(Some(Self { phases: Some(phases), over, thread: Some(thread) }))
    }

    /// A phase of the run began.
    pub(super) fn phase(&self, kind: PhaseKind) {
        if let Some(phases) = &self.phases {
            // The thread has ended with its last command.
            let _ = phases.send(kind);
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.phases = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

fn go_on(
    planned: Vec<Planned>,
    inbox: &Receiver<PhaseKind>,
    ends: &[Arc<AtomicBool>],
    commands: &Commands,
) {
    let is_over = || ends.iter().any(|end| end.load(Ordering::Relaxed));
    loop {
        match inbox.recv() {
            Ok(PhaseKind::Measure) => break,
            Ok(_) => {}
            Err(_) => return,
        }
    }
    let start = Instant::now();
    for command in planned {
        let due = start + command.after;
        while Instant::now() < due {
            let left = due.saturating_duration_since(Instant::now());
            match inbox.recv_timeout(left.min(LOOK_EVERY)) {
                Err(RecvTimeoutError::Disconnected) => return,
                _ if is_over() => return,
                _ => {}
            }
        }
        commands.began(command.scheduled, Commands::now_ns());
        commands.done(command.run(&is_over));
    }
}

impl Planned {
    fn run(self, is_over: &dyn Fn() -> bool) -> CommandDone {
        let (at_ns, begun) = (Commands::now_ns(), Instant::now());
        let (exit_code, error) = match self.start() {
            Ok(group) => match group.wait(begun + self.timeout, is_over) {
                Ok(status) => (status.code(), String::new()),
                Err(Cut::TooLong) => (None, "ended: it took too long".to_owned()),
                Err(Cut::Over) => (None, "ended: the run was over".to_owned()),
                Err(Cut::Unknown(error)) => (None, format!("cannot be watched: {error}")),
            },
            Err(error) => (None, format!("cannot be started: {error}")),
        };
        let took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (scheduled, output) = (self.scheduled, self.log_name);
        CommandDone { scheduled, at_ns, took_ns, exit_code, output, error }
    }

    fn start(&self) -> io::Result<Group> {
        let wrapped = format!("sh -c {}", attached::quoted(&self.text));
        let mut command: Command = attached::command(&wrapped)
            .map_err(|failure| io::Error::other(failure.message.clone()))?;
        command.stdin(Stdio::null()).stdout(self.log.try_clone()?).stderr(self.log.try_clone()?);
        Group::start(&mut command)
    }
}
