//! A broker process that the run started: how it starts, ends, and starts again.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::cores::Cores;
use super::unless_stopped;
use crate::exit::{self, Failure};

/// How long a broker may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// The same for one that was killed and has to read what it kept.
const RESTART_TIMEOUT: Duration = Duration::from_secs(120);
/// How long one attempt to connect may take, and the answer to CONNECT.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to see whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a broker may take to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Lines of a broker's output that are shown when it ends by itself.
const LINES_SHOWN: usize = 10;

/// What is to be started.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) command: Command,
    /// The command as the record shows it.
    pub(super) shown: String,
    /// Where its output goes.
    pub(super) log: PathBuf,
    /// Where it is going to listen.
    pub(super) address: SocketAddr,
    /// By TCP, with nothing around MQTT.
    pub(super) speaks_plainly: bool,
    /// Its cores: which broker of how many it is.
    pub(super) cores: Cores,
    pub(super) which: (usize, usize),
}

/// A broker process; dropping it stops it.
#[derive(Debug)]
pub(super) struct Process {
    launched: Launched,
    child: Child,
}

/// A process that somebody else may kill.
pub(super) type SharedProcess = Arc<Mutex<Process>>;

/// Looks at a shared process.
pub(super) fn lock(process: &SharedProcess) -> MutexGuard<'_, Process> {
    // A panic elsewhere leaves a child that can still be stopped.
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    /// Starts it and waits until it accepts connections.
    pub(super) fn start(mut launched: Launched, stop: &AtomicBool) -> Result<Self, Failure> {
        let log = &launched.log;
        let output =
            File::create(log).and_then(|file| Ok((file.try_clone()?, file))).map_err(|error| {
                Failure::new(exit::UNEXPECTED, format!("cannot write {}: {error}", log.display()))
            })?;
        launched.command.stdout(output.0).stderr(output.1);
        // A group of its own: Ctrl-C on the terminal must reach the run first.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut launched.command, 0);
        let child = launched.spawn()?;
        let mut process = Self { launched, child };
        process.wait_until_it_accepts(START_TIMEOUT, stop)?;
        Ok(process)
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The command as the record shows it.
    pub(super) fn shown(&self) -> &str {
        &self.launched.shown
    }

    /// Ends it without a warning, and what it started with it.
    pub(super) fn kill(&mut self) {
        #[cfg(unix)]
        if matches!(self.child.try_wait(), Ok(None)) {
            let pid = rustix::process::Pid::from_child(&self.child);
            // It leads a group of its own, see `start`.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, after [`Process::kill`].
    pub(super) fn start_again(&mut self) -> Result<u32, Failure> {
        self.child = self.launched.spawn()?;
        Ok(self.pid())
    }

    /// Waits until it answers clients again. A broker may have a socket that the system accepts
    /// connections on long before it has read what it kept.
    pub(super) fn wait_until_it_serves(&mut self, stop: &AtomicBool) -> Result<(), Failure> {
        let address = self.launched.address;
        match self.launched.speaks_plainly {
            true => self.wait_until(RESTART_TIMEOUT, stop, || answers(address)),
            false => self.wait_until_it_accepts(RESTART_TIMEOUT, stop),
        }
    }

    /// What it said when it ended by itself; `None` while it lives.
    pub(super) fn last_words(&mut self) -> Option<String> {
        let ended = self.child.try_wait().ok().flatten();
        ended.map(|status| self.obituary("ended during the run", status))
    }

    fn wait_until_it_accepts(
        &mut self,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let address = self.launched.address;
        self.wait_until(patience, stop, || {
            TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok()
        })
    }

    fn wait_until(
        &mut self,
        patience: Duration,
        stop: &AtomicBool,
        is_there: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        let unreachable = |sentence| Failure::new(exit::TARGET_UNREACHABLE, sentence);
        let deadline = Instant::now() + patience;
        let address = self.launched.address;
        loop {
            unless_stopped(stop)?;
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(unreachable(self.obituary("ended before it listened", status)));
            }
            if is_there() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = patience.as_secs();
                return Err(unreachable(format!(
                    "the broker '{}' does not accept connections on {address} after {seconds} s{}",
                    self.launched.shown,
                    self.tail()
                )));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// How and with what last words the broker ended.
    fn obituary(&self, when: &str, status: ExitStatus) -> String {
        format!("the broker '{}' {when} ({status}){}", self.launched.shown, self.tail())
    }

    /// The last lines of its output.
    fn tail(&self) -> String {
        let bytes = std::fs::read(&self.launched.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        match tail.is_empty() {
            true => ", without a word".to_owned(),
            false => format!("; its last words:\n  {}", tail.join("\n  ")),
        }
    }
}

/// Does a broker answer CONNECT? Whatever it says to a stranger, it serves.
fn answers(address: SocketAddr) -> bool {
    // MQTT 3.1.1, a clean session, no keep-alive, an identifier made up by the broker.
    const CONNECT: [u8; 14] = *b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00";
    const DISCONNECT: [u8; 2] = [0xe0, 0];
    let ask = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(&CONNECT)?;
        // An end of the connection is an answer too.
        let _ = stream.read(&mut [0; 4])?;
        stream.write_all(&DISCONNECT)
    };
    ask().is_ok()
}

impl Launched {
    fn spawn(&mut self) -> Result<Child, Failure> {
        let Self { command, shown, cores, which, .. } = self;
        cores.for_broker(*which, || command.spawn()).map_err(|error| {
            let sentence = format!("cannot start the broker '{shown}': {error}");
            Failure::new(exit::TARGET_UNREACHABLE, sentence)
        })
    }
}

impl Drop for Process {
    /// SIGTERM, a bounded wait, then SIGKILL.
    fn drop(&mut self) {
        #[cfg(unix)]
        if matches!(self.child.try_wait(), Ok(None)) {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let deadline = Instant::now() + STOP_TIMEOUT;
            while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory for a broker, which is gone when the broker is.
#[derive(Debug)]
pub(super) struct DataDirectory(PathBuf);

impl DataDirectory {
    /// Creates it, empty.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            let sentence = format!("cannot create {}: {error}", path.display());
            Failure::new(exit::UNEXPECTED, sentence)
        };
        std::fs::create_dir_all(path).map_err(failed)?;
        // The command may change its directory.
        std::path::absolute(path).map(Self).map_err(failed)
    }

    /// Where it is, from anywhere.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        // What stays is in the run's directory, where it can be found.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
