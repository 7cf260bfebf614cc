//! A run that is killed takes the brokers that it started with it, and all that they started.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tacho_testkit::wait_until;

/// A run; killed when dropped.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a run, kills it once clients publish, and waits until its broker is gone.
fn killed_with(arguments: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut run, broker) = running(arguments, folder.path());
    run.0.kill().expect("is killed");
    run.0.wait().expect("is gone");
    wait_until("its broker is gone", || TcpStream::connect(&broker).is_err());
}

/// Starts a run and waits until its clients publish; with the address of its broker.
fn running(arguments: &[&str], folder: &Path) -> (Run, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["run", "symmetric", "--hold", "40s", "--ramp-up", "100ms"]);
    for var in ["publishers=2", "subscribers=2", "target_throughput=10"] {
        command.args(["--var", var]);
    }
    command.args(arguments).arg("--dir").arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = Run(command.spawn().expect("starts"));
    let said = BufReader::new(run.0.stderr.take().expect("piped"));
    let mut broker = None;
    // Its first line names the broker.
    for line in said.lines().map_while(Result::ok) {
        let address = line.split("mqtt://").nth(1).and_then(|rest| rest.split(' ').next());
        broker = broker.or_else(|| address.map(str::to_owned));
        if line.starts_with("warm-up") {
            break;
        }
    }
    let broker = broker.expect("it names its broker");
    TcpStream::connect(&broker).expect("the broker is there");
    (run, broker)
}

#[test]
fn its_own_broker_ends() {
    killed_with(&[]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_command_that_it_started_ends() {
    let command = format!("{} broker --listen 127.0.0.1:{{port}}", env!("CARGO_BIN_EXE_tacho"));
    killed_with(&["--broker-cmd", &command]);
}

#[test]
fn a_command_without_its_run_does_not_start() {
    // The parent of what this test starts is this test.
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    let output = command.args(["attached", "1", "echo started"]).output().expect("starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.contains("has ended"), "{said}");
}

/// A shell that starts a broker and other programs: in the background, in a session of their own,
/// without a parent, and deaf to SIGTERM. All have `marker` in their command lines.
fn tree(marker: &str) -> String {
    let tacho = env!("CARGO_BIN_EXE_tacho");
    let deaf = format!("trap : TERM; while :; do sleep 0.1; done; echo {marker}");
    format!(
        "sh -c '{tacho} broker --listen 127.0.0.1:{{port}} & sleep {marker} & \
         setsid sh -c \"sleep {marker} & wait\" & (setsid sleep {marker} &) ; \
         setsid sh -c \"{deaf}\" & wait'"
    )
}

/// A number of seconds that only one test sleeps for.
fn marker(test: u32) -> String {
    format!("60{test}.{}", std::process::id())
}

/// Command lines of processes that have the marker.
fn marked(marker: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("lists processes").flatten();
    let lines = entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(marker)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn everything_that_the_command_started_ends() {
    let marker = marker(1);
    let folder = tempfile::tempdir().expect("a folder");
    let (mut run, broker) = running(&["--broker-cmd", &tree(&marker)], folder.path());
    // The run, its supervisor, the shell, and six of the shell's.
    wait_until("all have started", || marked(&marker).len() >= 8);
    run.0.kill().expect("is killed");
    run.0.wait().expect("is gone");
    wait_until("no descendant is left", || marked(&marker).is_empty());
    assert!(TcpStream::connect(&broker).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_after_a_regular_end() {
    let marker = marker(2);
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["run", "symmetric", "--hold", "300ms", "--ramp-up", "50ms"]);
    command.args(["--scale", "0.01", "--scale-clients", "0.01"]);
    command.args(["--broker-cmd", &tree(&marker), "--dir"]).arg(folder.path());
    let output = command.output().expect("starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(folder.path().join("summary.json").is_file(), "{said}");
    assert_eq!(marked(&marker), [""; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_supervisor_takes_the_command_with_it() {
    let marker = marker(3);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    let text = format!("sleep {marker}");
    let mut supervisor =
        Run(command.args(["supervise", &text]).stdin(Stdio::piped()).spawn().expect("starts"));
    wait_until("the command has started", || marked(&marker).len() == 2);
    supervisor.0.kill().expect("is killed");
    supervisor.0.wait().expect("is gone");
    wait_until("the command is gone", || marked(&marker).is_empty());
}

#[test]
fn supervisor_ends_as_its_command_does() {
    let status = |text: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        let mut child =
            command.args(["supervise", text]).stdin(Stdio::piped()).spawn().expect("starts");
        // Its input stays open meanwhile.
        let input = child.stdin.take();
        let status = child.wait().expect("ends");
        drop(input);
        status
    };
    assert_eq!(status("sh -c 'exit 3'").code(), Some(3));
    assert_eq!(status("true").code(), Some(0));
    assert_eq!(status("sh -c 'kill -SEGV $$'").signal(), Some(11));
    assert_eq!(status("no-such-program-here 2> /dev/null").code(), Some(127));
}
