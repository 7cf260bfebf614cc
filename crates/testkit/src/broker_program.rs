//! `tacho broker` in a process of its own.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use tacho_codec::Version;

use crate::broker_log::{line_with, listening_address};
use crate::client::{Client, connect};

/// A broker whose log is read line by line; killed when dropped.
pub struct BrokerProgram {
    child: Child,
    /// What it says after the line with its address.
    pub log: Lines<BufReader<ChildStderr>>,
    /// The line with its address.
    pub said: String,
    /// Of its first listener.
    pub address: SocketAddr,
}

impl BrokerProgram {
    /// Starts a command, and waits until it listens.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self::listening(child, log)
    }

    /// The same of one that has been started, with the rest of its log.
    pub fn listening(child: Child, mut log: Lines<BufReader<ChildStderr>>) -> Self {
        let said = line_with(&mut log, "listening on ");
        let address = listening_address(&said);
        Self { child, log, said, address }
    }

    /// A client of it, by MQTT 5.0.
    pub fn connected(&self, client_id: &str) -> Client {
        let mut client = Client::open(self.address, Version::V5);
        client.connect(&connect(client_id, Version::V5));
        client
    }

    /// Waits until it has ended by itself.
    pub fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for BrokerProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
