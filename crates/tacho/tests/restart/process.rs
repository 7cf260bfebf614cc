//! A broker as a process of its own, so that it can be killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use tacho_codec::{ConnectProperties, ReasonCode, Version};

use tacho_testkit::{Client, FaultyDisk, connect, listening_address, runtime_folder, wait_until};

/// A broker on a free port; killed when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The line in which it says where it listens.
    pub(crate) line: String,
    /// What it has said since.
    said: Arc<Mutex<String>>,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
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

    /// Starts one on a disk that may fail.
    pub(crate) fn over(disk: &FaultyDisk, directory: &Path, arguments: &[&str]) -> Self {
        let directory = directory.to_str().unwrap();
        let mut command = command(&[&["--data-dir", directory], arguments].concat());
        disk.put_under(&mut command);
        Self::spawn(command)
    }

    pub(crate) fn with(arguments: &[&str]) -> Self {
        Self::spawn(command(arguments))
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().expect("starts");
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
        let log = Arc::<Mutex<String>>::default();
        let further = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                further.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        let address = listening_address(&line);
        Self { child, address, line, said: log }
    }

    /// Waits until its log has these words; all of the log.
    pub(crate) fn wait_until_said(&self, words: &str) -> String {
        let said = || self.said.lock().unwrap().clone();
        wait_until(words, || said().contains(words));
        said()
    }

    /// Runs one that must not start; its exit status and its standard error.
    pub(crate) fn refused(arguments: &[&str]) -> (ExitStatus, String) {
        Self::fails(command(arguments))
    }

    /// The same on a disk that fails.
    pub(crate) fn refused_over(disk: &FaultyDisk, directory: &Path) -> (ExitStatus, String) {
        let mut command = command(&["--data-dir", directory.to_str().unwrap()]);
        disk.put_under(&mut command);
        Self::fails(command)
    }

    fn fails(mut command: Command) -> (ExitStatus, String) {
        let mut child = command.spawn().expect("starts");
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
