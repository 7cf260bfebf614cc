//! A run that is killed takes the brokers that it started with it.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["run", "symmetric", "--hold", "40s", "--ramp-up", "100ms"]);
    for var in ["publishers=2", "subscribers=2", "target_throughput=10"] {
        command.args(["--var", var]);
    }
    command.args(arguments).arg("--dir").arg(folder.path());
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
    run.0.kill().expect("is killed");
    run.0.wait().expect("is gone");
    wait_until("its broker is gone", || TcpStream::connect(&broker).is_err());
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
