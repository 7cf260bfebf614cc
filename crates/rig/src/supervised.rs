//! A shell command under a [supervisor](crate::supervisor), as this process sees it.

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::attached::{this_program, without_secrets};
use crate::error::RigError;
use crate::supervisor::{KILL, SUBCOMMAND, TERMINATE};

/// How long a supervisor may take to start the command.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// A running command; everything that it started ends when this is dropped, or with this process.
#[derive(Debug)]
pub(crate) struct Supervised {
    supervisor: Child,
    /// Its other end is the supervisor's.
    line: UnixStream,
    pid: u32,
}

/// A process that supervises the shell command `text`.
pub(crate) fn command(text: &str) -> Result<Command, RigError> {
    let mut command = Command::new(this_program()?);
    command.args([SUBCOMMAND, text]);
    without_secrets(&mut command);
    Ok(command)
}

impl Supervised {
    /// Starts what [`command`] made.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let (line, other) = UnixStream::pair()?;
        let spawned = command.stdin(OwnedFd::from(other)).spawn();
        // The command must not keep the other end open.
        command.stdin(Stdio::null());
        let mut supervised = Self { supervisor: spawned?, line, pid: 0 };
        match supervised.read_pid() {
            Ok(pid) => {
                supervised.pid = pid;
                Ok(supervised)
            }
            Err(error) => {
                supervised.kill();
                Err(error)
            }
        }
    }

    /// The command's process id, which the supervisor sends first.
    fn read_pid(&mut self) -> io::Result<u32> {
        self.line.set_read_timeout(Some(START_TIMEOUT))?;
        let (mut pid, mut byte) = (0_u32, [0]);
        loop {
            self.line.read_exact(&mut byte)?;
            match byte[0] {
                b'\n' => return Ok(pid),
                digit @ b'0'..=b'9' => pid = pid.saturating_mul(10) + u32::from(digit - b'0'),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// The command's process id; its process group has the same.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// How the command ended, once nothing that it started is left.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.supervisor.try_wait()
    }

    /// Asks the command to end.
    pub(crate) fn terminate(&mut self) {
        // Fails when it has ended.
        let _ = self.line.write_all(&[TERMINATE]);
    }

    /// Ends the command and everything that it started, and waits for that.
    pub(crate) fn kill(&mut self) {
        let _ = self.line.write_all(&[KILL]);
        let _ = self.supervisor.wait();
    }
}
