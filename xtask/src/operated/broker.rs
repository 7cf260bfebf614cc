//! The broker with its sessions: durable ones, so that it can start again, and its longest turn is
//! not one of those in which they were made.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::api::Api;
use crate::bench::machine::{free_port, rss_bytes};
use crate::bench::metrics::largest;
use crate::floor::pin_self_to;
use crate::mqtt::{packet, push_text};
use crate::own_child::OwnChild;
use crate::shell;

/// For a start that reads all sessions.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const END_S_MAX: u64 = 60;
/// Beside the socket.
const LOG: &str = "broker.log";
/// Connections that are made before the first of them is awaited.
const AT_ONCE: u64 = 64;

/// The client identifier of a session.
pub(super) fn name(number: u64) -> String {
    format!("away-{number:07}")
}

pub(super) struct OperatedBroker {
    command: Command,
    child: OwnChild,
    cpu: usize,
    port: u16,
    socket: PathBuf,
}

/// Turns of the event loop since the broker started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    pub(super) cpu_max_s: f64,
    pub(super) units_max: f64,
    pub(super) slow: f64,
}

impl OperatedBroker {
    pub(super) fn start(
        tacho: &Path,
        folder: &Path,
        (cpu, sessions): (usize, u64),
    ) -> Result<Self> {
        let (port, socket) = (free_port()?, folder.join("broker.sock"));
        let config = folder.join("broker.toml");
        // With room for the clients of the load.
        let limits = format!("[limits]\nsessions_max = {}\n", sessions + 10_000);
        fs::write(&config, limits).context("cannot write a configuration")?;
        let mut command = shell::command(tacho);
        command.args(["broker", "--quiet", "--shards", "1", "--listen"]);
        command.arg(format!("127.0.0.1:{port}")).arg("--config").arg(&config);
        command.arg("--management-socket").arg(&socket).arg("--data-dir").arg(folder.join("data"));
        let log = fs::File::create(folder.join(LOG)).context("cannot create a file")?;
        command.stdout(Stdio::null()).stderr(log);
        let child = spawn(&mut command, cpu)?;
        let broker = Self { command, child, cpu, port, socket };
        broker.await_answer()?;
        Ok(broker)
    }

    /// Ends the broker and starts it again with its sessions. Pins the calling thread to its core.
    pub(super) fn restart(&mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child.0), Signal::TERM)
            .context("cannot end the broker")?;
        self.child.status_within(END_S_MAX)?.context("the broker does not end")?;
        self.child = spawn(&mut self.command, self.cpu)?;
        self.await_answer()
    }

    fn await_answer(&self) -> Result<()> {
        let begun = Instant::now();
        while Api::new(&self.socket).text("/status").is_err() {
            if begun.elapsed() > START_TIMEOUT {
                let log = self.socket.with_file_name(LOG);
                bail!("the broker does not answer: see {}", log.display());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Clients come and go, and leave their sessions.
    pub(super) fn populate(&self, sessions: u64) -> Result<()> {
        let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut number = 0;
        while number < sessions {
            let last = (number + AT_ONCE).min(sessions);
            let mut streams = Vec::new();
            for number in number..last {
                let mut stream = TcpStream::connect(broker).context("cannot connect")?;
                stream.write_all(&hello_and_goodbye(&name(number)))?;
                streams.push(stream);
            }
            for mut stream in streams {
                // The broker closes first, which leaves this side's port free.
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).context("no answer to CONNECT")?;
                ensure!(answer.first() == Some(&0x20) && answer.get(3) == Some(&0), "refused");
            }
            number = last;
        }
        Ok(())
    }

    pub(super) fn rss_bytes(&self) -> Result<u64> {
        rss_bytes(self.child.0.id())
    }

    pub(super) fn turns(&self) -> Result<Turns> {
        let metrics = Api::new(&self.socket).text("/metrics")?;
        let value = |name| largest(&metrics, name).with_context(|| format!("no metric {name}"));
        Ok(Turns {
            cpu_max_s: value("tacho_turn_cpu_seconds_max")?,
            units_max: value("tacho_turn_units_max")?,
            slow: value("tacho_slow_turns_total")?,
        })
    }
}

fn spawn(command: &mut Command, cpu: usize) -> Result<OwnChild> {
    pin_self_to(&[cpu])?;
    Ok(OwnChild(command.spawn().context("cannot start the broker")?))
}

/// CONNECT of MQTT 5.0 for a session that never expires, and DISCONNECT.
fn hello_and_goodbye(client_id: &str) -> Vec<u8> {
    let mut body = b"\x00\x04MQTT\x05\x00\x00\x00\x05\x11\xff\xff\xff\xff".to_vec();
    push_text(&mut body, client_id);
    let mut packets = packet(0x10, &body);
    packets.extend_from_slice(&[0xe0, 0]);
    packets
}
