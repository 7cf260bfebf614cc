//! The brokers under test, each a child process of its own on a free loopback port.

use std::process::{Command, Stdio};

use libtest_mimic::Failed;

use crate::process::{Peer, Running, free_port, wait_for_port};

/// A broker that is stopped when dropped.
pub(crate) struct Broker {
    pub(crate) port: u16,
    _running: Running,
    _folder: Option<tempfile::TempDir>,
}

impl Broker {
    /// Tacho's own, with two shards so that messages cross between them.
    pub(crate) fn tacho() -> Result<Self, Failed> {
        let port = free_port()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["broker", "--listen", &format!("127.0.0.1:{port}"), "--shards", "2"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Running::start(command)?;
        wait_for_port(port)?;
        Ok(Self { port, _running: running, _folder: None })
    }

    /// Debian's.
    pub(crate) fn mosquitto() -> Result<Self, Failed> {
        let port = free_port()?;
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("mosquitto.conf");
        let text = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n\
             persistence false\nlog_type error\n"
        );
        std::fs::write(&config, text)?;
        let mut command = Peer::Mosquitto.command()?;
        command.arg("-c").arg(&config);
        let running = Running::start(command)?;
        wait_for_port(port)?;
        Ok(Self { port, _running: running, _folder: Some(folder) })
    }
}
