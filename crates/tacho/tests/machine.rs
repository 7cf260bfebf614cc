//! One load at a time on a machine, as users see it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tacho_testkit::PATIENCE;

/// A small load; `duration` says how long.
const SMALL: [&str; 10] = [
    "--var",
    "publishers=2",
    "--var",
    "subscribers=2",
    "--var",
    "target_throughput=20",
    "--ramp-up",
    "50ms",
    "--warmup",
    "100ms",
];

/// A place for results and for the lock, of which the rest of the machine knows nothing.
struct Machine {
    place: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self { place: tempfile::tempdir().expect("temporary directory") }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, name: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["run", "symmetric"]).args(SMALL).arg("--dir").arg(self.directory(name));
        command.args(more).env("TACHO_MACHINE_LOCK", self.directory("lock"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// A run that has the machine until it is stopped.
    fn hold(&self, name: &str) -> Running {
        let mut child = self.command(name, &["--hold", "10m"]).spawn().expect("starts");
        let stderr = BufReader::new(child.stderr.take().expect("is piped"));
        let running = Running { child, stderr };
        // It has the lock before it has a directory.
        wait_for(&self.directory(name).join("running.json"));
        running
    }

    fn run(&self, name: &str, more: &[&str]) -> Output {
        self.command(name, more).output().expect("starts")
    }
}

fn wait_for(file: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < deadline, "{} never came", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is there");
    }

    /// What it says up to the line with `words`.
    fn said_until(&mut self, words: &str) -> String {
        let mut said = String::new();
        while !said.contains(words) {
            let read = self.stderr.read_line(&mut said).expect("reads");
            assert!(read > 0, "it ended without {words}: {said}");
        }
        said
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("reads");
        (self.child.wait().expect("ends").code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_second_run_waits_for_the_first_and_says_for_which() {
    let machine = Machine::new();
    let first = machine.hold("first");
    let mut child = machine.command("second", &["--hold", "1s"]).spawn().expect("starts");
    let stderr = BufReader::new(child.stderr.take().expect("is piped"));
    let mut second = Running { child, stderr };
    let said = second.said_until("waiting for this machine");
    let first_directory = machine.directory("first").display().to_string();
    for part in ["tacho run symmetric", &first.child.id().to_string(), &first_directory] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    assert!(!machine.directory("second").exists(), "it has begun: {said}");
    first.interrupt();
    let (code, said) = first.end();
    assert_eq!(code, Some(105), "{said}");
    let (code, said) = second.end();
    assert!(code.is_some_and(|code| code != 113), "{said}");
    assert!(machine.directory("second/summary.json").is_file(), "{said}");
}

#[test]
fn without_waiting_a_second_run_ends_at_once() {
    let machine = Machine::new();
    let first = machine.hold("first");
    let second = machine.run("second", &["--no-wait"]);
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(113), "{said}");
    assert!(said.contains("tacho run symmetric") && said.contains("--no-wait"), "{said}");
    assert!(!machine.directory("second").exists(), "{said}");
    // Not even the smallest load is made beside it.
    for arguments in [&["calibrate", "--quick"][..], &["calibrate", "--quick", "--disk", "."]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(arguments)
            .args(["--no-wait"])
            .env("TACHO_MACHINE_LOCK", machine.directory("lock"))
            .env("TACHO_CALIBRATION", machine.directory("calibration.json"))
            .current_dir(machine.place.path())
            .output()
            .expect("starts");
        assert_eq!(output.status.code(), Some(113), "{arguments:?}: {}", text(&output.stderr));
    }
    // What cannot run is refused without waiting for anything.
    let wrong = machine.run("third", &["--var", "nothing=1"]);
    assert_eq!(wrong.status.code(), Some(104), "{}", text(&wrong.stderr));
    drop(first);
}

#[test]
fn a_run_that_waits_can_be_stopped() {
    let machine = Machine::new();
    let _first = machine.hold("first");
    let mut child = machine.command("second", &["--quiet"]).spawn().expect("starts");
    let stderr = BufReader::new(child.stderr.take().expect("is piped"));
    let mut second = Running { child, stderr };
    second.said_until("waiting for this machine");
    second.interrupt();
    let (code, said) = second.end();
    assert_eq!(code, Some(105), "{said}");
    assert!(said.contains("stopped while it waited"), "{said}");
}

#[test]
fn a_run_that_was_killed_leaves_the_machine_free() {
    let machine = Machine::new();
    let mut first = machine.hold("first");
    first.child.kill().expect("is killed");
    first.child.wait().expect("is gone");
    let second = machine.run("second", &["--no-wait", "--hold", "300ms"]);
    assert!(second.status.code() != Some(113), "{}", text(&second.stderr));
    assert!(machine.directory("second/summary.json").is_file());
}

/// It would wait for ever: for the run that waits for it.
#[test]
fn a_command_of_the_run_itself_does_not_wait_for_it() {
    let machine = Machine::new();
    let own = env!("CARGO_BIN_EXE_tacho");
    let inner = machine.directory("inner");
    let before = format!(
        "{own} run symmetric {} --hold 200ms --quiet --dir {}; test -f {}/summary.json",
        SMALL.join(" "),
        inner.display(),
        inner.display()
    );
    let output = Command::new(own)
        .args(["compare", "symmetric"])
        .args(SMALL)
        .args(["--hold", "200ms", "--repeats", "1", "--make-up", "0", "--before-a", &before])
        .arg("--dir")
        .arg(machine.directory("outer"))
        .env("TACHO_MACHINE_LOCK", machine.directory("lock"))
        .output()
        .expect("starts");
    assert!(inner.join("summary.json").is_file(), "{}", text(&output.stderr));
    assert!(machine.directory("outer/summary.json").is_file(), "{}", text(&output.stderr));
}

#[test]
fn programs_compiled_for_tests_do_not_wait_for_each_other() {
    if !cfg!(debug_assertions) {
        return;
    }
    let machine = Machine::new();
    let _first = machine.hold("first");
    for value in [None, Some("none")] {
        let name = format!("beside-{}", value.unwrap_or("unset"));
        let mut beside = machine.command(&name, &["--no-wait", "--hold", "200ms"]);
        match value {
            None => beside.env_remove("TACHO_MACHINE_LOCK"),
            Some(value) => beside.env("TACHO_MACHINE_LOCK", value),
        };
        let output = beside.output().expect("starts");
        assert!(output.status.code() != Some(113), "{}", text(&output.stderr));
        assert!(machine.directory(&name).join("summary.json").is_file());
    }
}
