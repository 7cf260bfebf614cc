//! The broker as a process, started on a data directory and killed with SIGKILL.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tacho_testkit::FaultyDisk;

/// The program to start.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Tacho with a data directory.
    Durable,
    /// Tacho in memory: its losses have to be detected.
    Forgetful,
    /// A shell command with `{port}`, `{dir}` and optionally `{shards}`.
    Command(String),
}

/// Where a broker runs.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) port: u16,
    pub(crate) data: PathBuf,
    /// Output of all its processes.
    pub(crate) log: PathBuf,
    /// Stands under the data of Tacho, if its disk is to fail.
    pub(crate) disk: Option<FaultyDisk>,
}

impl Place {
    /// The management socket of Tacho.
    fn socket(&self) -> PathBuf {
        self.log.with_file_name("m.sock")
    }

    /// Has the running broker make a backup; what it says if it does not.
    pub(crate) fn back_up(&self, backup: &Path) -> Result<(), String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.arg("ctl").arg("--socket").arg(self.socket()).arg("backup").arg(backup);
        succeeds(command)
    }

    /// Replaces the data directory by what a backup has. No broker uses it.
    pub(crate) fn restore(&self, backup: &Path) -> Result<(), String> {
        fs::remove_dir_all(&self.data).expect("the data can be removed");
        let mut check = Command::new(env!("CARGO_BIN_EXE_tacho"));
        check.args(["journal", "check"]).arg(backup);
        let mut restore = Command::new(env!("CARGO_BIN_EXE_tacho"));
        restore.args(["journal", "restore"]).arg(backup).arg(&self.data);
        succeeds(check)?;
        succeeds(restore)?;
        fs::remove_dir_all(backup).expect("the backup can be removed");
        Ok(())
    }
}

/// Runs a command to its end; what it says if it fails.
fn succeeds(mut command: Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().expect("tacho can be started");
    let said = [output.stdout, output.stderr].concat();
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&said))),
    }
}

/// One process of the broker; killed when dropped.
pub(crate) struct Broker {
    child: Child,
    is_gone: bool,
}

impl Broker {
    pub(crate) fn start(program: &Program, place: &Place, shards: usize) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(&place.log)?;
        let mut command = command(program, place, shards);
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // A process group of its own, so that its children die with it.
        command.process_group(0);
        Ok(Self { child: command.spawn()?, is_gone: false })
    }

    /// Kills the process group and waits for the broker.
    pub(crate) fn kill(&mut self) {
        if std::mem::replace(&mut self.is_gone, true) {
            return;
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = pid {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    /// The exit status, if it has ended.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn command(program: &Program, place: &Place, shards: usize) -> Command {
    let tacho = env!("CARGO_BIN_EXE_tacho");
    let mut command = Command::new(tacho);
    if let Program::Command(template) = program {
        let text = template
            .replace("{port}", &place.port.to_string())
            .replace("{shards}", &shards.to_string())
            .replace("{dir}", &place.data.display().to_string());
        // `attached` runs the shell command and ends it with this process.
        command.args(["attached", &std::process::id().to_string(), &text]);
        return command;
    }
    command.args(["broker", "--quiet", "--end-with-stdin", "--sys-interval-s", "0"]);
    command.arg("--management-socket").arg(place.socket());
    command.args(["--listen", &format!("127.0.0.1:{}", place.port)]);
    command.args(["--shards", &shards.to_string()]);
    if matches!(program, Program::Durable) {
        command.arg("--data-dir").arg(&place.data);
        place.disk.iter().for_each(|disk| disk.put_under(&mut command));
    }
    command
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let text = File::open(log).and_then(io::read_to_string).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
