//! A nats-server for tests.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A nats-server on a free port of 127.0.0.1, which ends with this value.
pub(crate) struct NatsServer {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl NatsServer {
    /// The program of `cargo xtask peers`, or that of the system.
    pub(crate) fn find() -> Option<PathBuf> {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let beside = || tmp.parent().unwrap_or(tmp).join("peers");
        let peers = std::env::var_os("TACHO_PEERS_DIR").map_or_else(beside, PathBuf::from);
        let own = peers.join("bin/nats-server");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let system = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
        std::iter::once(own).chain(system).find(|program| program.is_file())
    }

    /// Starts it with these further lines of configuration, with or without JetStream.
    pub(crate) fn start(program: &Path, lines: &str, jetstream: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let store = folder.path().join("store");
        let jetstream = match jetstream {
            true => format!("jetstream {{ store_dir: '{}' }}\n", store.display()),
            false => String::new(),
        };
        let config = folder.path().join("nats.conf");
        let text = format!("host: 127.0.0.1\nport: {port}\n{jetstream}{lines}\n");
        std::fs::write(&config, text).expect("written");
        let child = Self::spawn(program, &config);
        let server = Self { child, port, folder };
        server.wait();
        server
    }

    /// Kills it, and starts it again on the same port and store.
    pub(crate) fn restart(&mut self, program: &Path) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
        self.child = Self::spawn(program, &self.folder.path().join("nats.conf"));
        self.wait();
    }

    fn spawn(program: &Path, config: &Path) -> Child {
        let mut command = Command::new(program);
        command.arg("--config").arg(config).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("nats-server starts")
    }

    fn wait(&self) {
        super::until("nats-server listens", || {
            TcpStream::connect_timeout(
                &([127, 0, 0, 1], self.port).into(),
                Duration::from_millis(500),
            )
            .is_ok()
        });
    }

    pub(crate) fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
