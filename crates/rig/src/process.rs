//! A broker process of this one: how it starts, ends, and starts again.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cores::{BrokerShare, Cores};
use crate::error::{LastOutput, RigError};
use crate::launch::{Launch, Serving};
use crate::started::Started;
use crate::stop::unless_stopped;

/// How long a broker may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// The same for one that was killed and has to read back its data.
const RESTART_TIMEOUT: Duration = Duration::from_secs(120);
/// How long one attempt to connect may take, and the answer to CONNECT.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two looks whether the broker accepts connections.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a broker may take to end after SIGTERM, and the time between two looks whether it has.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
const STOP_LOOK_EVERY: Duration = Duration::from_millis(10);
/// Lines of a broker's output that are shown when it ends by itself.
const LINES_SHOWN: usize = 10;

/// A broker process; dropping it stops it.
#[derive(Debug)]
pub struct Process {
    command: Command,
    shown: String,
    log: PathBuf,
    address: SocketAddr,
    serving: Serving,
    cores: Cores,
    share: BrokerShare,
    is_supervised: bool,
    started: Started,
}

/// A process that another thread may kill.
#[derive(Clone, Debug)]
pub struct SharedProcess(Arc<Mutex<Process>>);

impl SharedProcess {
    /// Shares `process`.
    pub fn new(process: Process) -> Self {
        Self(Arc::new(Mutex::new(process)))
    }

    /// Access to the process. Waits while it is being restarted.
    pub fn lock(&self) -> MutexGuard<'_, Process> {
        // A panic elsewhere leaves a child that can still be stopped.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// Starts `launch` on its share of `cores`, its output in the file `log`, and waits until it
    /// accepts connections.
    ///
    /// # Errors
    /// When it cannot be started, ends early, or does not accept connections in time.
    pub fn start(
        launch: Launch,
        log: PathBuf,
        (cores, share): (&Cores, BrokerShare),
        stop: &AtomicBool,
    ) -> Result<Self, RigError> {
        let Launch { mut command, shown, port, serving, is_supervised } = launch;
        let output = File::create(&log)
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|error| RigError::Write { path: log.clone(), error })?;
        command.stdout(output.0).stderr(output.1);
        // A group of its own: Ctrl-C on the terminal must reach the run first.
        command.process_group(0);
        let started = spawn((&mut command, is_supervised), &shown, (cores, share))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let cores = cores.clone();
        let mut process =
            Self { command, shown, log, address, serving, cores, share, is_supervised, started };
        process.wait_until_it_accepts(START_TIMEOUT, stop)?;
        Ok(process)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.started.pid()
    }

    /// The command as a record shows it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Why it ended by itself; `None` while it lives.
    pub fn ended(&mut self) -> Option<RigError> {
        let status = self.started.try_wait().ok().flatten()?;
        let (command, output) = (self.shown.clone(), self.last_output());
        Some(RigError::Ended { command, status, output })
    }

    /// Ends it with SIGKILL, and the processes that it started with it.
    pub(crate) fn kill(&mut self) {
        self.started.kill();
    }

    /// Starts it again, after [`Process::kill`]; its new process id.
    pub(crate) fn start_again(&mut self) -> Result<u32, RigError> {
        let command = (&mut self.command, self.is_supervised);
        self.started = spawn(command, &self.shown, (&self.cores, self.share))?;
        Ok(self.pid())
    }

    /// Waits until it serves clients again. The system may accept connections on a broker's socket
    /// long before the broker has read back its data.
    pub(crate) fn wait_until_it_serves(&mut self, stop: &AtomicBool) -> Result<(), RigError> {
        let address = self.address;
        match self.serving {
            Serving::AnswersConnect => {
                self.wait_until(RESTART_TIMEOUT, stop, || answers_connect(address))
            }
            Serving::AcceptsConnections => self.wait_until_it_accepts(RESTART_TIMEOUT, stop),
        }
    }

    fn wait_until_it_accepts(
        &mut self,
        timeout: Duration,
        stop: &AtomicBool,
    ) -> Result<(), RigError> {
        let address = self.address;
        self.wait_until(timeout, stop, || {
            TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok()
        })
    }

    fn wait_until(
        &mut self,
        timeout: Duration,
        stop: &AtomicBool,
        is_ready: impl Fn() -> bool,
    ) -> Result<(), RigError> {
        let deadline = Instant::now() + timeout;
        loop {
            unless_stopped(stop)?;
            if let Ok(Some(status)) = self.started.try_wait() {
                let (command, output) = (self.shown.clone(), self.last_output());
                return Err(RigError::EndedEarly { command, status, output });
            }
            if is_ready() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(RigError::NotListening {
                    command: self.shown.clone(),
                    address: self.address,
                    seconds: timeout.as_secs(),
                    output: self.last_output(),
                });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn last_output(&self) -> LastOutput {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        LastOutput(last.iter().map(|line| (*line).to_owned()).collect())
    }
}

impl Drop for Process {
    /// SIGTERM, a bounded wait, then SIGKILL.
    fn drop(&mut self) {
        if matches!(self.started.try_wait(), Ok(None)) {
            self.started.terminate();
            let deadline = Instant::now() + STOP_TIMEOUT;
            while Instant::now() < deadline && matches!(self.started.try_wait(), Ok(None)) {
                std::thread::sleep(STOP_LOOK_EVERY);
            }
        }
        self.started.kill();
    }
}

fn spawn(
    (command, is_supervised): (&mut Command, bool),
    shown: &str,
    (cores, share): (&Cores, BrokerShare),
) -> Result<Started, RigError> {
    cores
        .pinned(share, || Started::start(command, is_supervised))
        .map_err(|error| RigError::Start { command: shown.to_owned(), error })
}

/// Whether a broker answers CONNECT. A refusal is an answer too: the broker serves.
fn answers_connect(address: SocketAddr) -> bool {
    // MQTT 3.1.1, a clean session, no keep-alive, an identifier chosen by the broker.
    const CONNECT: [u8; 14] = *b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00";
    const DISCONNECT: [u8; 2] = [0xe0, 0];
    let ask = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(&CONNECT)?;
        // So is the end of the connection.
        let _ = stream.read(&mut [0; 4])?;
        stream.write_all(&DISCONNECT)
    };
    ask().is_ok()
}
