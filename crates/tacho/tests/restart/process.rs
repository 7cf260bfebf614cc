//! A broker as a process of its own, so that it can be killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use tacho_codec::{ConnectProperties, ReasonCode, Version};

use tacho_testkit::{Client, connect};

/// A broker on a free port; killed when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The line in which it says where it listens.
    pub(crate) line: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["broker", "--listen", "127.0.0.1:0", "--sys-interval-s", "0"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Process {
    /// Starts one on a data directory.
    pub(crate) fn on(directory: &Path, arguments: &[&str]) -> Self {
        let directory = directory.to_str().unwrap();
        Self::with(&[&["--data-dir", directory], arguments].concat())
    }

    pub(crate) fn with(arguments: &[&str]) -> Self {
        let mut child = command(arguments).spawn().expect("starts");
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        let line = loop {
            let mut line = String::new();
            let len = said.read_line(&mut line).unwrap();
            assert!(len > 0, "it ended: {all}");
            if line.contains("listening on ") {
                break line;
            }
            all.push_str(&line);
        };
        // What else it says is not to fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let address = line.split("listening on ").nth(1).and_then(|rest| rest.split(' ').next());
        let address = address.unwrap().parse().unwrap();
        Self { child, address, line }
    }

    /// Runs one that must not start; its exit status and its standard error.
    pub(crate) fn refused(arguments: &[&str]) -> (ExitStatus, String) {
        let mut child = command(arguments).spawn().expect("starts");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (child.wait().unwrap(), said)
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and waits for the end.
    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn client(&self, version: Version) -> Client {
        Client::open(self.address, version)
    }

    /// A connected client with a clean session.
    pub(crate) fn connected(&self, client_id: &str) -> Client {
        let mut client = self.client(Version::V5);
        client.connect(&connect(client_id, Version::V5));
        client
    }

    /// A connected client whose session outlives connections and broker, and whether there was one
    /// already.
    pub(crate) fn lasting(&self, client_id: &str, expiry_s: u32) -> (Client, bool) {
        let mut client = self.client(Version::V5);
        let properties =
            ConnectProperties { session_expiry_s: Some(expiry_s), ..Default::default() };
        let (present, reason) = client.connect(&tacho_codec::Connect {
            clean_start: false,
            properties,
            ..connect(client_id, Version::V5)
        });
        assert_eq!(reason, ReasonCode::SUCCESS);
        (client, present)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
