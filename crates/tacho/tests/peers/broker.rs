//! The brokers under test, each a child process of its own on a free loopback port.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use libtest_mimic::Failed;

use crate::process::{Peer, Running, free_port, wait_for_port};

/// A broker that is stopped when dropped.
pub(crate) struct Broker {
    pub(crate) port: u16,
    /// `tcp`, `tls`, `ws` or `wss`.
    pub(crate) transport: &'static str,
    running: Running,
    /// Its files, `ca.pem` among them if it has certificates.
    folder: tempfile::TempDir,
}

impl Broker {
    /// Tacho's own, with two shards so that messages cross between them.
    pub(crate) fn tacho() -> Result<Self, Failed> {
        Self::tacho_over("tcp")
    }

    /// The same by another transport, with certificates of its own.
    pub(crate) fn tacho_over(transport: &'static str) -> Result<Self, Failed> {
        Self::tacho_as(transport, &[])
    }

    /// With more arguments.
    pub(crate) fn tacho_with(arguments: &[&str]) -> Result<Self, Failed> {
        Self::tacho_as("tcp", arguments)
    }

    fn tacho_as(transport: &'static str, arguments: &[&str]) -> Result<Self, Failed> {
        let port = free_port()?;
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.env("XDG_RUNTIME_DIR", tacho_testkit::runtime_folder());
        let listen = format!("{transport}://127.0.0.1:{port}");
        command.args(["broker", "--listen", &listen, "--shards", "2"]).args(arguments);
        if matches!(transport, "tls" | "wss") {
            command.arg("--self-signed").arg(folder.path());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Running::start(command)?;
        wait_for_port(port)?;
        Ok(Self { port, transport, running, folder })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.child.id()
    }

    /// Debian's.
    pub(crate) fn mosquitto() -> Result<Self, Failed> {
        Self::mosquitto_over("tcp", false)
    }

    /// The same; it publishes its figures every second.
    pub(crate) fn mosquitto_that_tells() -> Result<Self, Failed> {
        Self::mosquitto_with(free_port()?, "tcp", false, "sys_interval 1\n")
    }

    /// The same by another transport; with `mutual`, clients must show a certificate of its CA.
    pub(crate) fn mosquitto_over(transport: &'static str, mutual: bool) -> Result<Self, Failed> {
        Self::mosquitto_with(free_port()?, transport, mutual, "")
    }

    /// Two of them; a message published to `bridge/#` at one arrives as `remote/bridge/#` at the
    /// other, and so does `out/#`.
    pub(crate) fn mosquittos_bridged() -> Result<[Self; 2], Failed> {
        let (one, two) = (free_port()?, free_port()?);
        let start = |port: u16, other: u16| {
            let bridge = format!(
                "max_inflight_messages 0\nmax_queued_messages 0\nconnection to-{other}\n\
                 address 127.0.0.1:{other}\ntopic bridge/# out 2 \"\" remote/\n\
                 topic out/# out 2 \"\" remote/\n\
                 cleansession true\nnotifications false\nrestart_timeout 1\n"
            );
            Self::mosquitto_with(port, "tcp", false, &bridge)
        };
        Ok([start(one, two)?, start(two, one)?])
    }

    fn mosquitto_with(
        port: u16,
        transport: &'static str,
        mutual: bool,
        more: &str,
    ) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("mosquitto.conf");
        // As root it would otherwise switch to the user `mosquitto`, which cannot read the key.
        let mut text = format!(
            "user root\nlistener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n\
             persistence false\nlog_type error\n"
        );
        if matches!(transport, "ws" | "wss") {
            text.push_str("protocol websockets\n");
        }
        if matches!(transport, "tls" | "wss") {
            let files = tacho_broker::self_signed(folder.path(), [])?;
            text.push_str(&format!(
                "cafile {}\ncertfile {}\nkeyfile {}\n",
                files.ca.display(),
                files.cert.display(),
                files.key.display()
            ));
        }
        if mutual {
            text.push_str("require_certificate true\n");
        }
        if matches!(transport, "ws" | "wss") {
            // Version 2.0.11 does not start with nothing but WebSocket listeners.
            text.push_str(&format!("listener {} 127.0.0.1\n", free_port()?));
        }
        text.push_str(more);
        std::fs::write(&config, text)?;
        let mut command = Peer::Mosquitto.command()?;
        command.arg("-c").arg(&config);
        let running = Running::start(command)?;
        wait_for_port(port)?;
        Ok(Self { port, transport, running, folder })
    }

    /// The certificate that its clients trust.
    pub(crate) fn ca(&self) -> Option<PathBuf> {
        Some(self.file("ca.pem")).filter(|path| path.is_file())
    }

    /// One of its files.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
