//! Runs that wait for this machine, and the one that has it. Each is a process of its own, which
//! goes on without the console; its directory says all, so that the next console finds it again.
//!
//! A run is started at most once: its process waits until the directory has its number, and ends
//! without having begun should the console end before.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tacho_record::{RunDirectory, Timestamp};
use thiserror::Error;

use crate::launch::Launched;
use crate::machine_lock::{MachineHolder, MachineLock};
use crate::page_key::PageKey;
use crate::process::ProcessId;
use crate::run_state::RunState;
use crate::running::Running;
use crate::toolbox::Toolbox;

/// What the run says, on both of its outputs.
pub(crate) const LOG: &str = "console.log";
/// Requests that wait; further ones are refused.
const WAITING_MAX: usize = 100;
/// Time between two looks at the run that goes on.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Runs of one second and one name.
const SAME_NAME_MAX: usize = 1000;

/// Why a request was not taken, or not taken back.
#[derive(Debug, Error)]
pub(crate) enum QueueError {
    /// Too many wait.
    #[error("{WAITING_MAX} runs are waiting: cancel one, or wait")]
    Full,
    /// It does not wait.
    #[error("the run is not waiting in the queue")]
    NotWaiting,
    /// It does not go on.
    #[error("the run is not running")]
    NotRunning,
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The queue with its thread, which ends with it; runs that go on do not.
pub(crate) struct RunQueue {
    shared: Arc<QueueShared>,
    thread: Option<JoinHandle<()>>,
}

struct QueueShared {
    folder: PathBuf,
    toolbox: Arc<dyn Toolbox>,
    key: PageKey,
    lines: Mutex<QueueLines>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueLines {
    waiting: VecDeque<String>,
    current: Option<CurrentRun>,
    number: u64,
    is_ending: bool,
}

/// The run that has its turn.
struct CurrentRun {
    id: String,
    process: ProcessId,
    /// Absent where an earlier console started it.
    child: Option<Child>,
}

/// A directory for a run that is about to wait; removed unless it does.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) id: String,
    pub(crate) directory: PathBuf,
    is_kept: bool,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

impl RunQueue {
    /// Finds what waits and goes on among `ids`, the runs of `folder`, and goes on with that.
    /// `look` is called now and then, and after each change.
    pub(crate) fn start(
        folder: &Path,
        (toolbox, key): (Arc<dyn Toolbox>, PageKey),
        ids: &[String],
        look: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let lines = Mutex::new(found(folder, ids));
        let folder = folder.to_owned();
        let shared = Arc::new(QueueShared { folder, toolbox, key, lines, changed: Condvar::new() });
        let own = Arc::clone(&shared);
        // Not the thread that serves: its priority, which is the lowest, would be that of runs.
        let thread = std::thread::Builder::new().name("tacho-queue".to_owned());
        let thread = thread.spawn(move || own.work(&look))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// A new directory for a run called `name`.
    ///
    /// # Errors
    /// When too many runs wait, or the directory cannot be made.
    pub(crate) fn reserve(&self, name: &str) -> Result<Reserved, QueueError> {
        if self.shared.lock().waiting.len() >= WAITING_MAX {
            return Err(QueueError::Full);
        }
        let base = RunDirectory::run_name(Timestamp::now(), name);
        for number in 1..=SAME_NAME_MAX {
            let id = if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let directory = self.shared.folder.join(&id);
            match fs::create_dir(&directory) {
                Ok(()) => return Ok(Reserved { id, directory, is_kept: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists).into())
    }

    /// Puts a run at the end.
    ///
    /// # Errors
    /// When too many runs wait, or its directory cannot be written to.
    pub(crate) fn add(
        &self,
        mut reserved: Reserved,
        mut launched: Launched,
    ) -> Result<String, QueueError> {
        let mut lines = self.shared.lock();
        if lines.waiting.len() >= WAITING_MAX {
            return Err(QueueError::Full);
        }
        lines.number += 1;
        launched.number = lines.number;
        launched.accepted = Timestamp::now().rfc3339();
        launched.write(&reserved.directory)?;
        reserved.is_kept = true;
        lines.waiting.push_back(reserved.id.clone());
        drop(lines);
        self.shared.changed.notify_all();
        Ok(reserved.id.clone())
    }

    /// Takes a run out of the queue; its directory stays.
    ///
    /// # Errors
    /// When it does not wait.
    pub(crate) fn cancel(&self, id: &str) -> Result<(), QueueError> {
        let mut lines = self.shared.lock();
        let place = lines.waiting.iter().position(|waiting| waiting == id);
        let place = place.ok_or(QueueError::NotWaiting)?;
        let directory = self.shared.folder.join(id);
        let launched = Launched::read(&directory).ok_or(QueueError::NotWaiting)?;
        Launched { is_canceled: true, ..launched }.write(&directory)?;
        lines.waiting.remove(place);
        Ok(())
    }

    /// Asks a run to end as Ctrl-C does, also one that was started elsewhere.
    ///
    /// # Errors
    /// When it does not go on, or may not be signalled.
    pub(crate) fn stop(&self, id: &str) -> Result<(), QueueError> {
        let directory = self.shared.folder.join(id);
        let running = Running::read(&directory).map(|running| running.process);
        // Until it says so itself, as while it waits for the machine.
        let starting = || Launched::read(&directory)?.process.filter(|process| process.is_alive());
        let process = running.or_else(starting).ok_or(QueueError::NotRunning)?;
        process.interrupt().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => QueueError::NotRunning,
            _ => QueueError::Io(error),
        })
    }

    /// Runs that wait, in order.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.shared.lock().waiting.iter().cloned().collect()
    }

    /// The run that has its turn.
    pub(crate) fn current(&self) -> Option<String> {
        self.shared.lock().current.as_ref().map(|current| current.id.clone())
    }

    /// The program that has this machine, where it is not the run that has its turn.
    pub(crate) fn held_by(&self) -> Option<MachineHolder> {
        let own = self.shared.lock().current.as_ref().map(|current| current.process);
        holder().filter(|holder| own != Some(holder.process))
    }
}

impl Drop for RunQueue {
    fn drop(&mut self) {
        self.shared.lock().is_ending = true;
        self.shared.changed.notify_all();
        // The last to let go may be the thread itself, while it looks.
        let is_other =
            |thread: &JoinHandle<()>| thread.thread().id() != std::thread::current().id();
        if let Some(thread) = self.thread.take().filter(is_other) {
            let _ = thread.join();
        }
    }
}

impl QueueShared {
    fn lock(&self) -> MutexGuard<'_, QueueLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, look: &dyn Fn()) {
        loop {
            let mut lines = self.lock();
            if lines.is_ending {
                return;
            }
            self.step(&mut lines);
            drop(lines);
            look();
            let lines = self.lock();
            if !lines.is_ending {
                // Poisoned or not: the next look is at the state itself.
                drop(self.changed.wait_timeout(lines, LOOK_EVERY));
            }
        }
    }

    /// Lets the next run begin where the one before has ended.
    fn step(&self, lines: &mut QueueLines) {
        if lines.current.as_mut().is_some_and(CurrentRun::has_ended) {
            lines.current = None;
        }
        if lines.current.is_some() || lines.waiting.is_empty() || holder().is_some() {
            return;
        }
        let Some(id) = lines.waiting.pop_front() else { return };
        match self.launch(&id) {
            Ok(child) => {
                let process = ProcessId::of(child.id());
                lines.current = Some(CurrentRun { id, process, child: Some(child) });
            }
            Err(error) => self.note_failure(&id, &error),
        }
    }

    fn launch(&self, id: &str) -> io::Result<Child> {
        let directory = self.folder.join(id);
        let launched = Launched::read(&directory)
            .ok_or_else(|| io::Error::other("its request.json cannot be read"))?;
        let log = File::create(directory.join(LOG))?;
        let whole = std::path::absolute(&directory)?;
        let mut command = self.toolbox.program()?;
        command.args(&launched.arguments).arg("--dir").arg(whole).arg("--for-console");
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C at the console's terminal is about the console.
        let mut child = command.process_group(0).spawn()?;
        let process = Some(ProcessId::of(child.id()));
        // It begins only when it is told to: a run that no file knows, since this process ended
        // here, would be started again by the next console.
        if let Err(error) = (Launched { process, ..launched }).write(&directory) {
            let _ = child.kill().and_then(|()| child.wait());
            return Err(error);
        }
        if let Some(mut input) = child.stdin.take() {
            // Fails only where it has ended, which the next look sees.
            let _ = writeln!(input, "{}", self.key.token(id));
        }
        Ok(child)
    }

    /// Says in the run's directory why it did not begin.
    fn note_failure(&self, id: &str, error: &io::Error) {
        let directory = self.folder.join(id);
        // Where not even this can be written, the run stays as it is and is not tried again.
        let _ = File::create(directory.join(LOG))
            .and_then(|mut log| writeln!(log, "error: the run could not be started: {error}"));
        if let Some(launched) = Launched::read(&directory) {
            let process = Some(ProcessId { pid: 0, started_ticks: Some(0) });
            let _ = Launched { process, ..launched }.write(&directory);
        }
    }
}

impl CurrentRun {
    fn has_ended(&mut self) -> bool {
        match &mut self.child {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => !self.process.is_alive(),
        }
    }
}

/// The program that has this machine.
fn holder() -> Option<MachineHolder> {
    MachineLock::holder(&MachineLock::path()?)
}

/// What waits and goes on, as an earlier console left it.
fn found(folder: &Path, ids: &[String]) -> QueueLines {
    let mut lines = QueueLines::default();
    let mut waiting = Vec::new();
    for id in ids {
        let directory = folder.join(id);
        let Some(launched) = Launched::read(&directory) else { continue };
        lines.number = lines.number.max(launched.number);
        match (launched.state(), launched.process) {
            // It may have begun just when the console ended.
            (RunState::Queued, _) if Running::read(&directory).is_none() => {
                waiting.push((launched.number, id.clone()));
            }
            (RunState::Running, Some(process)) => {
                lines.current = Some(CurrentRun { id: id.clone(), process, child: None });
            }
            _ => {}
        }
    }
    waiting.sort();
    lines.waiting = waiting.into_iter().map(|(_, id)| id).collect();
    lines
}
