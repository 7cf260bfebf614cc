//! Agents that a run starts on its own machine.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tacho_bus::{Bus, SocketServer};
use tacho_rig::attached::{this_program, without_secrets};

use crate::exit::{self, Failure};

/// Agents end by themselves when the socket of their bus does; this is how long that may take.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Numbers the folders of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Agents on this machine, and the socket of the bus that they reach. They end when this value is
/// dropped, and when this process is gone.
#[derive(Debug)]
pub(super) struct LocalAgents {
    server: Option<SocketServer>,
    children: Vec<Child>,
    /// Holds the socket; other users may not enter it.
    folder: PathBuf,
}

impl LocalAgents {
    /// Starts an agent for each number of threads; they may load these addresses only.
    pub(super) fn start(
        bus: &Arc<dyn Bus>,
        shares: &[usize],
        targets: &BTreeSet<IpAddr>,
    ) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::new(exit::UNEXPECTED, format!("cannot start agents on this machine: {error}"))
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tacho-bus-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        let mut agents = Self { server: None, children: Vec::new(), folder };
        let path = agents.folder.join("bus");
        agents.server = Some(SocketServer::start(Arc::clone(bus), &path).map_err(failed)?);
        for (at, threads) in shares.iter().enumerate() {
            let name = format!("local-{}", at + 1);
            let child = command(&path, &name, *threads, targets)?.spawn().map_err(failed)?;
            agents.children.push(child);
        }
        Ok(agents)
    }
}

/// The command of one agent.
fn command(
    socket: &Path,
    name: &str,
    threads: usize,
    targets: &BTreeSet<IpAddr>,
) -> Result<Command, Failure> {
    let mut command = Command::new(this_program()?);
    command.args(["agent", "--quiet", "--name", name, "--threads", &threads.to_string()]);
    command.arg("--bus").arg(format!("unix:{}", socket.display()));
    for target in targets {
        command.arg("--allow-target").arg(target.to_string());
    }
    // A group of its own: Ctrl-C ends the run, which disconnects its clients first.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    without_secrets(&mut command);
    Ok(command)
}

impl Drop for LocalAgents {
    fn drop(&mut self) {
        self.server = None;
        let deadline = Instant::now() + END_WITHIN;
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) {
                if Instant::now() >= deadline {
                    let _ = child.kill();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
