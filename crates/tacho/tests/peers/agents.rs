//! Agents over a NATS server.

use std::process::{Child, Command, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::process::{Peer, free_port, wait_for_port, wait_until};
use crate::{TACHO, Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let peers = [Peer::NatsServer];
    for (name, test) in [
        ("nats_server::a_run_on_two_agents_counts", counts as fn() -> Verdict),
        ("nats_server::an_agent_refuses_what_is_not_allowed", refuses),
        ("nats_server::load_stops_when_the_bus_is_gone", bus_gone),
    ] {
        trials.push(trial(name.to_owned(), &peers, test));
    }
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Result<Process, Failed> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Process(command.spawn()?))
}

/// A server with JetStream; its address, and the folder of its store.
fn nats() -> Result<(Process, String, tempfile::TempDir), Failed> {
    let (port, folder) = (free_port()?, tempfile::tempdir()?);
    let mut command = Peer::NatsServer.command()?;
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(folder.path());
    let server = start(&mut command)?;
    wait_for_port(port)?;
    Ok((server, format!("nats://127.0.0.1:{port}"), folder))
}

fn agent(bus: &str, name: &str, target: &str) -> Result<Process, Failed> {
    let mut command = Command::new(TACHO);
    command.args(["agent", "--bus", bus, "--name", name, "--threads", "1", "--label", "of=test"]);
    start(command.args(["--allow-target", target]))
}

/// The agents on the bus.
fn agents(bus: &str) -> Result<Vec<Value>, Failed> {
    let output = Command::new(TACHO).args(["agents", "--json", "--bus", bus]).output()?;
    Ok(serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?)
}

fn wait_for_agents(bus: &str, count: usize) -> Verdict {
    wait_until("the agents are not on the bus", || {
        agents(bus).is_ok_and(|agents| agents.len() == count)
    })
}

fn small(bus: &str, agents: &str, hold: &str) -> Command {
    let mut command = Command::new(TACHO);
    command.args(["run", "symmetric", "--bus", bus, "--agents", agents, "--hold", hold]);
    command.args(["--warmup", "0s", "--ramp-up", "100ms"]);
    for var in ["publishers=10", "subscribers=10", "target_throughput=100"] {
        command.args(["--var", var]);
    }
    command
}

fn counts() -> Verdict {
    let (_server, bus, _store) = nats()?;
    let _agents = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let mut command = small(&bus, "of=test:2", "2s");
    let output = command.arg("--dir").arg(folder.path()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(folder.path().join("summary.json"))
        .map_err(|error| format!("{error}: {said}"))?;
    let record: Value = serde_json::from_str(&text)?;
    let step = &record["steps"][0];
    for (name, expected) in [("sent", 200), ("received", 200), ("lost", 0)] {
        if step[name] != expected {
            return Err(format!("{name} is {}, not {expected}: {said}", step[name]).into());
        }
    }
    let listed = agents(&bus)?;
    let first = &listed[0];
    if first["name"] != "one" || first["labels"]["of"] != "test" || first["threads"] != 1 {
        return Err(format!("not what the agent is: {first:#}").into());
    }
    Ok(())
}

fn refuses() -> Verdict {
    let (_server, bus, _store) = nats()?;
    let _agent = agent(&bus, "careful", "192.0.2.1")?;
    wait_for_agents(&bus, 1)?;
    let folder = tempfile::tempdir()?;
    for (wanted, why) in [("1", "it may not load 127.0.0.1"), ("2", "has 1 free agents")] {
        let mut command = small(&bus, wanted, "1s");
        let output = command.arg("--dir").arg(folder.path().join(wanted)).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(104) || !said.contains(why) {
            return Err(format!("{}: {said}", output.status).into());
        }
    }
    Ok(())
}

fn bus_gone() -> Verdict {
    let (server, bus, _store) = nats()?;
    let _agents = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let mut command = small(&bus, "2", "60s");
    command.arg("--dir").arg(folder.path()).stdin(Stdio::null()).stderr(Stdio::piped());
    let run = command.stdout(Stdio::null()).spawn()?;
    let second = folder.path().join("timeseries.csv");
    wait_until("the load does not begin", || {
        std::fs::read_to_string(&second).is_ok_and(|rows| rows.contains("measure"))
    })?;
    drop(server);
    let output = run.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() != Some(1) || !said.contains("was lost: nothing was heard of it") {
        return Err(format!("{}: {said}", output.status).into());
    }
    Ok(())
}
