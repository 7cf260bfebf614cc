//! Runs the commands of a scenario's timed actions. Only files of the user have any: what comes
//! with the program runs none.

use std::fs::File;
use std::io;
use std::process::{Child, Command, Stdio};
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

/// How often to see whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

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
            match inbox.recv_timeout(left.min(LOOK_EVERY * 10)) {
                Err(RecvTimeoutError::Disconnected) => return,
                _ if is_over() => return,
                _ => {}
            }
        }
        commands.done(command.run(&is_over));
    }
}

impl Planned {
    fn run(self, is_over: &dyn Fn() -> bool) -> CommandDone {
        let (at_ns, begun) = (Commands::now_ns(), Instant::now());
        let (exit_code, error) = match self.start() {
            Ok(child) => wait(child, begun + self.timeout, is_over),
            Err(error) => (None, format!("cannot be started: {error}")),
        };
        let took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (scheduled, output) = (self.scheduled, self.log_name);
        CommandDone { scheduled, at_ns, took_ns, exit_code, output, error }
    }

    fn start(&self) -> io::Result<Child> {
        let wrapped = format!("sh -c {}", quoted(&self.text));
        let mut command: Command = attached::command(&wrapped)
            .map_err(|failure| io::Error::other(failure.message.clone()))?;
        command.stdin(Stdio::null()).stdout(self.log.try_clone()?).stderr(self.log.try_clone()?);
        // A group of its own, so that what it starts ends with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn()
    }
}

/// Waits for the end of a command; its exit code, or why there is none.
fn wait(mut child: Child, deadline: Instant, is_over: &dyn Fn() -> bool) -> (Option<i32>, String) {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return (status.code(), String::new()),
            Ok(None) => {}
            Err(error) => return (None, format!("cannot be watched: {error}")),
        }
        let why = match (Instant::now() >= deadline, is_over()) {
            (true, _) => "ended: it took too long",
            (_, true) => "ended: the run was over",
            _ => {
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
        };
        end(&mut child);
        return (None, why.to_owned());
    }
}

/// Ends a command and what it started.
fn end(child: &mut Child) {
    let raw = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = raw {
        // It leads a group of its own, see `start`.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
