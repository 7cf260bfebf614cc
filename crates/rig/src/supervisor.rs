//! The supervisor: a process between Tacho and a shell command of the user, so that all processes
//! that the command starts end with the run, even when Tacho is killed and cannot end them.
//!
//! A command is often a shell that starts other programs. The supervisor outlives them all: it is
//! their subreaper, which makes every process that loses its parent a child of its own (Linux), and
//! it holds one end of a socket whose other end is Tacho's. It ends when the command has ended,
//! when Tacho asks, or when Tacho is gone, and before that ends every descendant that is left. On
//! other systems it ends the command's process group; processes that left the group remain.
//!
//! The socket is its standard input. It sends the command's process id and a line feed, then takes
//! orders of one byte.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, kill_process,
    kill_process_group, setrlimit,
};
use thiserror::Error;

use crate::attached;
use crate::descendants::descendants;
use crate::error::RigError;

/// The subcommand of this program that calls [`supervise`] with its argument.
pub const SUBCOMMAND: &str = "supervise";
/// Asks the command to end, with SIGTERM.
pub(crate) const TERMINATE: u8 = b't';
/// Ends everything at once, with SIGKILL.
pub(crate) const KILL: u8 = b'k';

/// How long descendants may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two looks whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Time between two collections of ended processes while the command runs.
const REAP_EVERY: Duration = Duration::from_secs(1);

/// Why a command could not be supervised.
#[derive(Debug, Error)]
pub enum SuperviseError {
    /// The kernel refuses to make this process a subreaper.
    #[error("cannot take over processes that lose their parent: {0}")]
    Subreaper(io::Error),
    /// The command could not be started.
    #[error(transparent)]
    Program(RigError),
    /// The system refuses to start the command.
    #[error("cannot start the command: {0}")]
    Start(io::Error),
    /// Descendants belong to other users.
    #[error(
        "{count} processes cannot be ended, since they run as another user: {first} and others"
    )]
    Remaining {
        /// How many.
        count: usize,
        /// Process id of one of them.
        first: i32,
    },
}

/// Runs the shell command `text` until it ends or Tacho does not want it any more; then no process
/// that it started is left. Returns the exit code for this process; a signal that ended the command
/// ends this process too.
///
/// # Errors
/// When the command cannot be started, or a process that it started not be ended.
pub fn supervise(text: &str) -> Result<u8, SuperviseError> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))
        .map_err(|error| SuperviseError::Subreaper(error.into()))?;
    let mut command = attached::command(text).map_err(SuperviseError::Program)?;
    let child =
        command.stdin(Stdio::null()).process_group(0).spawn().map_err(SuperviseError::Start)?;
    let input = io::stdin();
    let mut line = OrderLine { fd: input.as_fd(), is_open: true };
    // Fails when the input is no socket: then no one asks.
    let _ = rustix::io::write(line.fd, format!("{}\n", child.id()).as_bytes());
    let mut family = Family { command: Pid::from_child(&child), status: None };
    let gently = family.watch(&mut line);
    family.end(&mut line, gently)?;
    Ok(family.status.map_or(1, mirror))
}

/// The socket to Tacho.
struct OrderLine<'a> {
    fd: BorrowedFd<'a>,
    is_open: bool,
}

/// What came over the socket.
enum Instruction {
    Terminate,
    Kill,
    /// Tacho is gone.
    Gone,
}

impl OrderLine<'_> {
    /// Waits for an order, until `wakes` is readable, or for `time`.
    fn wait(&mut self, wakes: Option<BorrowedFd<'_>>, time: Duration) -> Option<Instruction> {
        let own = self.is_open.then_some(self.fd);
        let mut fds: Vec<PollFd<'_>> = own
            .into_iter()
            .chain(wakes)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        // An interruption is like the end of the time.
        let _ = poll(&mut fds, Some(&timeout));
        if !self.is_open || fds.first().is_none_or(|own| own.revents().is_empty()) {
            return None;
        }
        let mut byte = [0];
        match rustix::io::read(self.fd, &mut byte) {
            Ok(1) if byte == [TERMINATE] => Some(Instruction::Terminate),
            Ok(1) if byte == [KILL] => Some(Instruction::Kill),
            Ok(1) | Err(Errno::INTR | Errno::AGAIN) => None,
            Ok(_) | Err(_) => {
                self.is_open = false;
                Some(Instruction::Gone)
            }
        }
    }
}

/// The command and everything that it started.
struct Family {
    command: Pid,
    /// How the command ended.
    status: Option<WaitStatus>,
}

impl Family {
    /// Waits until the command has ended or is to end; whether the rest gets time to end.
    fn watch(&mut self, line: &mut OrderLine<'_>) -> bool {
        // Without it, the command's end is seen at the next look.
        #[cfg(target_os = "linux")]
        let end = rustix::process::pidfd_open(self.command, rustix::process::PidfdFlags::empty());
        #[cfg(not(target_os = "linux"))]
        let end: Result<std::os::fd::OwnedFd, Errno> = Err(Errno::NOSYS);
        let end = end.ok();
        let look_every = if end.is_some() { REAP_EVERY } else { LOOK_EVERY };
        loop {
            let order = line.wait(end.as_ref().map(|end| end.as_fd()), look_every);
            self.reap();
            match order {
                _ if self.status.is_some() => return true,
                Some(Instruction::Kill) => return false,
                Some(Instruction::Gone) => return true,
                Some(Instruction::Terminate) => {
                    // Not collected yet, so that the id is still the command's.
                    let _ = kill_process(self.command, Signal::TERM);
                }
                None => {}
            }
        }
    }

    /// Ends every process that is left.
    fn end(&mut self, line: &mut OrderLine<'_>, gently: bool) -> Result<(), SuperviseError> {
        let deadline = Instant::now() + GRACE;
        let mut first = true;
        while gently && Instant::now() < deadline {
            self.reap();
            let left = self.left();
            if left.is_empty() {
                return Ok(());
            }
            if std::mem::take(&mut first) {
                self.signal(&left, Signal::TERM);
            }
            if let Some(Instruction::Kill) = line.wait(None, LOOK_EVERY) {
                break;
            }
        }
        loop {
            self.reap();
            let left = self.left();
            let Some(pid) = left.first() else { return Ok(()) };
            if self.signal(&left, Signal::KILL) == left.len() {
                let first = pid.as_raw_nonzero().get();
                return Err(SuperviseError::Remaining { count: left.len(), first });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The processes that are left; the command stands for its group where there is no list.
    fn left(&self) -> Vec<Pid> {
        match descendants(getpid()) {
            Some(left) => left,
            None => {
                let group = rustix::process::test_kill_process_group(self.command);
                group.map(|()| self.command).into_iter().collect()
            }
        }
    }

    /// Sends a signal to all of them; how many the system refused since they run as another user.
    fn signal(&self, left: &[Pid], signal: Signal) -> usize {
        let is_refused = |pid: &&Pid| {
            let sent = match **pid == self.command {
                // Also the rest of its group.
                true => kill_process_group(**pid, signal),
                false => kill_process(**pid, signal),
            };
            sent == Err(Errno::PERM)
        };
        left.iter().filter(is_refused).count()
    }

    /// Collects what has ended: the command, and processes that lost their parent.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == self.command {
                self.status = Some(status);
            }
        }
    }
}

/// The exit code of a command; ends this process by the signal that ended the command.
fn mirror(status: WaitStatus) -> u8 {
    if let Some(signal) = status.terminating_signal() {
        // The command has left its core dump already.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        if let Some(signal) = Signal::from_named_raw(signal) {
            // A handler of Rust's runtime, as for SIGSEGV, takes the first and then steps aside.
            let _ = kill_process(getpid(), signal);
            let _ = kill_process(getpid(), signal);
        }
        // As shells do, where the signal had no effect.
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
