//! What a service manager is told: a socket stands for systemd's.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tacho_codec::QoS;
use tacho_testkit::{BrokerProgram, runtime_folder};
use tempfile::TempDir;

/// A broker with the socket that it reports to; killed when dropped.
struct Service {
    child: Child,
    socket: UnixDatagram,
    _folder: TempDir,
}

impl Service {
    fn start(watchdog: Option<Duration>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.env("XDG_RUNTIME_DIR", runtime_folder());
        command.args(["broker", "--listen", "127.0.0.1:0", "--shards", "2"]);
        command.env("NOTIFY_SOCKET", &path).env_remove("WATCHDOG_USEC").env_remove("WATCHDOG_PID");
        if let Some(watchdog) = watchdog {
            command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("starts");
        Self { child, socket, _folder: folder }
    }

    /// The next message.
    fn told(&self) -> String {
        let mut buffer = [0; 4096];
        let len = self.socket.recv(&mut buffer).expect("a message");
        String::from_utf8(buffer[..len].to_vec()).expect("text")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("is sent");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn start_reload_and_end_are_told_in_order() {
    let mut service = Service::start(None);
    let first = service.told();
    assert!(
        first.contains("READY=1\n") && first.contains("STATUS=listening on 127.0.0.1:"),
        "{first}"
    );
    service.signal(Signal::HUP);
    let reloading = service.told();
    assert!(reloading.contains("RELOADING=1\n") && reloading.contains("MONOTONIC_USEC="));
    assert!(service.told().contains("READY=1\n"));
    service.signal(Signal::TERM);
    assert!(service.told().contains("STOPPING=1"));
    assert!(service.child.wait().expect("ends").success());
}

/// Stopped, it gives no sign of life; the manager would end it.
#[test]
fn signs_of_life_come_as_long_as_the_broker_works() {
    let service = Service::start(Some(Duration::from_millis(200)));
    assert!(service.told().contains("READY=1\n"));
    for _ in 0..3 {
        assert!(service.told().contains("WATCHDOG=1"));
    }
    service.signal(Signal::TERM);
    let ends = std::iter::repeat_with(|| service.told()).find(|told| !told.contains("WATCHDOG=1"));
    assert!(ends.is_some_and(|told| told.contains("STOPPING=1")));
}

/// Where standard error is the journal's socket, here a file in its place.
#[test]
fn lines_for_the_journal_have_their_priority() {
    let folder = TempDir::new().expect("a folder");
    let log = File::create(folder.path().join("log")).expect("makes");
    let about = log.metadata().expect("is there");
    let stream = |inode: u64| format!("{}:{inode}", about.dev());
    let mut priorities = Vec::new();
    for inode in [about.ino(), about.ino() + 1] {
        log.set_len(0).expect("empties");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["broker", "--listen", "0", "--management-socket", "none"]);
        // Which is at its end.
        command.arg("--end-with-stdin").stdin(Stdio::null()).stdout(Stdio::null());
        command.env("JOURNAL_STREAM", stream(inode));
        let stderr = log.try_clone().expect("another descriptor");
        assert!(command.stderr(stderr).status().expect("runs").success());
        let text = fs::read_to_string(folder.path().join("log")).expect("reads");
        let text = text.trim_start_matches('\0');
        assert!(text.contains("listening on"), "{text}");
        priorities.push(text.lines().all(|line| line.starts_with("<6>")));
    }
    assert_eq!(priorities, [true, false]);
}

/// A broker that gets this socket from the service manager: its descriptor 3.
fn activated(socket: &TcpListener, listen: &str) -> Command {
    let mut command = Command::new("sh");
    let script = "exec env LISTEN_PID=$$ LISTEN_FDS=1 \"$0\" \"$@\" 3<&0 </dev/null";
    command.args(["-c", script, env!("CARGO_BIN_EXE_tacho"), "broker", "--listen", listen]);
    command.args(["--shards", "2", "--management-socket", "none"]);
    command.stdin(OwnedFd::from(socket.try_clone().expect("another descriptor")));
    command
}

#[test]
fn a_socket_of_the_service_manager_is_used_and_outlives_the_broker() {
    let socket = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = socket.local_addr().expect("an address");
    for _ in 0..2 {
        let broker = BrokerProgram::start(&mut activated(&socket, &address.to_string()));
        let mut client = broker.connected("a");
        client.subscribe("t", QoS::AtLeastOnce);
        drop(broker);
        // It waits for the next one.
        assert!(TcpStream::connect(address).is_ok());
    }
}

#[test]
fn a_socket_of_the_service_manager_without_a_listener_is_an_error() {
    let socket = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = socket.local_addr().expect("an address");
    let output = activated(&socket, "127.0.0.1:0").output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(104), "{said}");
    let wanted = format!("the service manager has bound {address}, where no listener is");
    assert!(said.contains(&wanted), "{said}");
}
