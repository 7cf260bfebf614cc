//! Runs on agents of this machine, and what becomes of them when something is killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tacho_testkit::runs::small::{SMALL, Small};
use tacho_testkit::wait_until;

fn tacho(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str], folder: &Path) -> (Output, Value) {
    let mut command = tacho(&["run"]);
    command.args(arguments).arg("--dir").arg(folder);
    let output = command.output().expect("starts");
    let text = std::fs::read_to_string(folder.join("summary.json")).unwrap_or_default();
    (output, serde_json::from_str(&text).unwrap_or_default())
}

/// Scenarios of all shapes count with agents as they must without.
#[test]
fn scenarios_count_with_agents_as_without() {
    for small in SMALL {
        let record = small.run(env!("CARGO_BIN_EXE_tacho"), &["--agents", "local:2"]);
        let record = record.expect("all came that must");
        let remarks = record["remarks"].as_array().expect("remarks");
        let agents = remarks.iter().find(|remark| remark["kind"] == "agents");
        let agents = agents.unwrap_or_else(|| panic!("{}: {remarks:#?}", small.scenario));
        assert_eq!((&agents["count"], &agents["clock_error_us"]), (&2.into(), &0.into()));
        assert_eq!(record["placement"]["generator_threads"], 2, "{}", small.scenario);
        let can_batch = tacho_net::probe_batch_writes().is_ok();
        assert_eq!(record["placement"]["batched_writes"], can_batch, "{}", small.scenario);
        has_the_part_of_each_agent(&record, 2, small.scenario);
    }
}

/// The guide's shapes over as many processes as it had load machines.
fn shapes_count_over(agents: usize, shapes: [Small; 2]) {
    for small in shapes {
        let arguments = ["--agents", &format!("local:{agents}")];
        let record = small.run(env!("CARGO_BIN_EXE_tacho"), &arguments);
        let record = record.expect("all came that must");
        assert_eq!(record["placement"]["generator_threads"], agents, "{}", small.scenario);
        has_the_part_of_each_agent(&record, agents, small.scenario);
    }
}

#[test]
fn ten_agents_count_as_one_generator() {
    let symmetric = Small {
        scenario: "symmetric",
        vars: &["publishers=20", "subscribers=20", "target_throughput=400"],
        clients: 40,
        sent: 800,
        received: 800,
    };
    let fan_in = Small {
        scenario: "fan-in",
        vars: &["publishers=40", "subscribers=10", "machines=10", "target_throughput=400"],
        clients: 50,
        sent: 800,
        received: 800,
    };
    shapes_count_over(10, [symmetric, fan_in]);
}

#[test]
fn twenty_agents_count_as_one_generator() {
    let fan_out = Small {
        scenario: "fan-out",
        vars: &["publishers=2", "subscribers=40", "machines=10", "target_throughput=10"],
        clients: 42,
        sent: 20,
        received: 80,
    };
    let shared = Small {
        scenario: "false_share_40_20_qos1_p64_5mps",
        vars: &[],
        clients: 60,
        sent: 400,
        received: 400,
    };
    shapes_count_over(20, [fan_out, shared]);
}

/// Each agent has its row, and all rows together are the run.
fn has_the_part_of_each_agent(record: &Value, agents: usize, scenario: &str) {
    let all = record["agents"].as_array().expect("agents");
    let mut names: Vec<&str> = all.iter().filter_map(|agent| agent["name"].as_str()).collect();
    let mut expected: Vec<_> = (1..=agents).map(|number| format!("local-{number}")).collect();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected, "{scenario}");
    let sum = |rows: &[Value], figure: &str| -> f64 {
        rows.iter().map(|row| row[figure].as_f64().expect("a figure")).sum()
    };
    assert_eq!(sum(all, "clients"), record["clients"].as_f64().expect("clients"), "{scenario}");
    assert!(all.iter().all(|agent| agent["clock"]["same"] == true), "{all:#?}");
    let step = &record["steps"][0];
    let rows = step["agents"].as_array().expect("rows of agents");
    let received = sum(rows, "received_per_s") - step["achieved_out_per_s"].as_f64().unwrap_or(0.0);
    assert!(rows.len() == agents && received.abs() < 0.1 * agents as f64, "{scenario}: {rows:#?}");
}

#[test]
fn what_cannot_be_divided_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, (arguments, why)) in [
        (&["request-response", "--agents", "local:2"][..], "its clients answer requests"),
        (
            &["symmetric", "--transport", "tls", "--agents", "local:1"][..],
            "TLS stay on this machine",
        ),
        (&["symmetric", "--agents", "2"][..], "needs the --bus"),
    ]
    .into_iter()
    .enumerate()
    {
        let more = ["--scale-clients", "0.01", "--scale", "0.01", "--hold", "1s"];
        let all = [arguments, &more].concat();
        let (output, _) = run(&all, &folder.path().join(number.to_string()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(104), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

/// A run on three agents; killed when dropped.
struct Run {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    /// Starts one, and waits until `phase` begins.
    fn until(phase: &str, arguments: &[&str], folder: &Path) -> Self {
        let mut command = tacho(&["run", "symmetric", "--agents", "local:3"]);
        for var in ["publishers=6", "subscribers=6", "target_throughput=60"] {
            command.args(["--var", var]);
        }
        command.args(arguments).arg("--dir").arg(folder);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let begun = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with(phase));
        assert!(begun, "{phase} does not begin");
        Self { child, lines }
    }

    /// The process ids of its agents, by name.
    fn agents(&self) -> Vec<(String, String)> {
        agents_of(self.child.id())
    }

    /// The process id of an agent.
    fn agent(&self, name: &str) -> String {
        let agents = self.agents();
        agents.iter().find(|(known, _)| known == name).expect("is there").1.clone()
    }

    /// Waits until it says that it has lost an agent.
    fn wait_degraded(&mut self) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines.find(|line| line.starts_with("degraded: ")).expect("it notices the loss")
    }

    /// Waits for its end; returns its exit code and what it said since.
    fn end(mut self) -> (Option<i32>, String) {
        let said: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        (self.child.wait().expect("ends").code(), said.join("\n"))
    }
}

/// Agents whose socket the process `controller` serves, dead ones left out: name and process id.
fn agents_of(controller: u32) -> Vec<(String, String)> {
    let marker = format!("tacho-bus-{controller}-");
    let entries = std::fs::read_dir("/proc").expect("lists processes").flatten();
    let agents = entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if !line.contains(&marker) {
            return None;
        }
        let name = line.split("--name ").nth(1)?.split(' ').next()?.to_owned();
        Some((name, entry.file_name().to_string_lossy().into_owned()))
    });
    agents.collect()
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_is_killed_in_any_phase_may_end_the_run_and_all_agents() {
    let hold = ["--hold", "60s", "--warmup", "60s", "--ramp-up", "100ms"];
    let end = ["--on-agent-loss", "end"];
    for (phase, arguments) in [
        // Nothing was measured: it ends whatever the setting.
        ("connect", ["--hold", "1s", "--ramp-up", "60s"].to_vec()),
        ("warm-up", [&hold[..], &end].concat()),
        (
            "measure",
            [&["--hold", "60s", "--warmup", "0s", "--ramp-up", "100ms"][..], &end].concat(),
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let run = Run::until(phase, &arguments, folder.path());
        let controller = run.child.id();
        let agents = run.agents();
        assert_eq!(agents.len(), 3, "{agents:?}");
        signal("-9", &run.agent("local-2"));
        let (code, said) = run.end();
        assert_eq!(code, Some(1), "{phase}: {said}");
        let expected = "agent local-2, which ran 1 of 3 generator threads, was lost";
        assert!(said.contains(expected), "{phase}: {said}");
        assert_eq!(agents_of(controller), [], "{phase}");
        let text = std::fs::read_to_string(folder.path().join("summary.json")).expect("a record");
        let record: Value = serde_json::from_str(&text).expect("is JSON");
        assert_eq!(record["verdict"], "aborted");
        let reason = record["reasons"][0].as_str().unwrap_or_default();
        assert!(reason.contains("agent local-2"), "{reason}");
    }
}

fn signal(which: &str, pid: &str) {
    let sent = Command::new("kill").args([which, pid]).status().expect("kill is there");
    assert!(sent.success());
}

/// Sockets that a process has open.
#[cfg(target_os = "linux")]
fn sockets(pid: &str) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// The record of a run that has lost `local-2` and has gone on.
#[cfg(target_os = "linux")]
fn degraded(run: Run, folder: &Path) -> Value {
    let controller = run.child.id();
    let (code, said) = run.end();
    assert_eq!(code, Some(111), "{said}");
    assert_eq!(agents_of(controller), []);
    let text = std::fs::read_to_string(folder.join("summary.json")).expect("a record");
    let record: Value = serde_json::from_str(&text).expect("is JSON");
    // Other programs may have disturbed it, too.
    let verdict = record["verdict"].as_str().unwrap_or_default();
    assert!(["generator_bound", "disturbed"].contains(&verdict), "{record:#}");
    let causes = record["causes"].as_array().expect("causes");
    let missing = causes.iter().find(|cause| cause["kind"] == "load_missing");
    let missing = missing.unwrap_or_else(|| panic!("{causes:#?}"));
    assert_eq!(missing["agent"], "local-2");
    assert!(missing["percent"].as_f64().is_some_and(|part| (20.0..50.0).contains(&part)));
    let lost = |at: usize| record["agents"][at]["lost"].is_object();
    assert_eq!([lost(0), lost(1), lost(2)], [false, true, false]);
    // What is left keeps its promises, and nothing is said about the rest.
    let step = &record["steps"][0];
    assert_eq!((&step["lost"], &step["acknowledged_lost"]), (&0.into(), &0.into()), "{step:#}");
    assert!(step["sent"].as_u64().is_some_and(|sent| sent > 0), "{step:#}");
    record
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_loses_an_agent_under_load_goes_on_degraded() {
    for (phase, warmup) in [("warm-up", "2s"), ("measure", "0s")] {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = ["--hold", "3s", "--warmup", warmup, "--ramp-up", "100ms"];
        let mut run = Run::until(phase, &arguments, folder.path());
        signal("-9", &run.agent("local-2"));
        let line = run.wait_degraded();
        assert!(line.contains("agent local-2 (4 of 12 clients) was lost"), "{phase}: {line}");
        degraded(run, folder.path());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_stands_still_is_lost_and_stops_its_load_when_it_wakes() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--hold", "14s", "--warmup", "0s", "--ramp-up", "100ms"];
    let mut run = Run::until("measure", &arguments, folder.path());
    let pid = run.agent("local-2");
    let before = sockets(&pid);
    signal("-STOP", &pid);
    let line = run.wait_degraded();
    assert!(line.contains("nothing was heard of it"), "{line}");
    signal("-CONT", &pid);
    // Its four clients are gone, while the run still goes on.
    wait_until("its clients are gone", || sockets(&pid) + 4 <= before);
    assert!(matches!(run.child.try_wait(), Ok(None)), "the run has ended meanwhile");
    degraded(run, folder.path());
}

#[cfg(target_os = "linux")]
#[test]
fn agents_end_when_their_controller_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--hold", "60s", "--warmup", "0s", "--ramp-up", "100ms"];
    let mut run = Run::until("measure", &arguments, folder.path());
    let controller = run.child.id();
    assert_eq!(run.agents().len(), 3);
    run.child.kill().expect("is killed");
    run.child.wait().expect("is gone");
    wait_until("its agents are gone", || agents_of(controller).is_empty());
}

#[test]
fn a_run_that_is_stopped_reports_what_it_has_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--hold", "60s", "--warmup", "0s", "--ramp-up", "100ms"];
    let run = Run::until("measure", &arguments, folder.path());
    let pid = run.child.id();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let stopped = Command::new("kill").args(["-INT", &pid.to_string()]).status();
    assert!(stopped.expect("kill is there").success());
    let (code, said) = run.end();
    assert_eq!(code, Some(105), "{said}");
    let text = std::fs::read_to_string(folder.path().join("summary.json")).expect("a record");
    let record: Value = serde_json::from_str(&text).expect("is JSON");
    let step = &record["steps"][0];
    assert!(step["sent"].as_u64().is_some_and(|sent| sent > 30), "{step:#}");
    assert_eq!(step["lost"], 0, "{step:#}");
}

#[test]
fn a_ladder_runs_its_steps_on_agents() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = tacho(&["ladder", "symmetric", "target_throughput=40,80"]);
    for var in ["publishers=4", "subscribers=4"] {
        command.args(["--var", var]);
    }
    command.args(["--agents", "local:2", "--hold", "1s", "--warmup", "0s", "--pause", "0s"]);
    command.args(["--ramp-up", "100ms"]).arg("--dir").arg(folder.path());
    let output = command.output().expect("starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(folder.path().join("summary.json")).expect(&said);
    let record: Value = serde_json::from_str(&text).expect("is JSON");
    let sent = record["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| step["sent"].as_u64().unwrap_or_default());
    // A disturbed machine measures a step again.
    let mut sent: Vec<u64> = sent.collect();
    sent.dedup();
    assert_eq!(sent, [40, 80], "{said}");
}
