//! Agents over a NATS server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use tacho_testkit::runtime_folder;

mod taken_up;

use crate::process::{Peer, Running, free_port, wait_for_port, wait_until};
use crate::{TACHO, Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let peers = [Peer::NatsServer];
    for (name, test) in [
        ("nats_server::a_run_on_two_agents_counts", counts as fn() -> Verdict),
        ("nats_server::an_agent_refuses_what_is_not_allowed", refuses),
        ("nats_server::load_stops_when_the_bus_is_gone", bus_gone),
        ("nats_server::a_run_outlives_a_short_absence_of_the_bus", bus_away),
        ("nats_server::a_lost_agent_degrades_the_run", agent_gone),
        ("nats_server::an_agent_lost_before_the_load_ends_the_run", agent_gone_early),
        ("nats_server::agents_are_free_when_their_controller_is_killed", controller_gone),
        ("nats_server::a_run_is_taken_up_after_its_controller_was_killed", taken_up::counted),
        ("nats_server::agents_stop_when_nothing_takes_their_run_up", taken_up::abandoned),
        ("nats_server::a_run_that_cannot_be_taken_up_says_why", taken_up::refused),
        ("nats_server::agents_that_a_run_starts_end_with_it", provisioned),
        ("nats_server::delays_between_agents_are_read_back", delays),
        ("nats_server::clocks_that_are_off_and_drift_are_read_within_their_bound", skewed),
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
    let server = nats_at(port, folder.path())?;
    Ok((server, format!("nats://127.0.0.1:{port}"), folder))
}

fn nats_at(port: u16, store: &Path) -> Result<Process, Failed> {
    let mut command = Peer::NatsServer.command()?;
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(store);
    let server = start(&mut command)?;
    wait_for_port(port)?;
    Ok(server)
}

/// A server without JetStream, and its address.
fn nats_that_keeps_nothing() -> Result<(Process, String), Failed> {
    let port = free_port()?;
    let mut command = Peer::NatsServer.command()?;
    let server = start(command.args(["-a", "127.0.0.1", "-p", &port.to_string()]))?;
    wait_for_port(port)?;
    Ok((server, format!("nats://127.0.0.1:{port}")))
}

fn agent(bus: &str, name: &str, target: &str) -> Result<Process, Failed> {
    let mut command = Command::new(TACHO);
    command.args(["agent", "--bus", bus, "--name", name, "--threads", "1", "--label", "of=test"]);
    start(command.args(["--allow-target", target]))
}

/// A signal for a process.
fn signal(process: &Process, which: &str) -> Verdict {
    let sent = Command::new("kill").args([which, &process.0.id().to_string()]).status()?;
    if sent.success() { Ok(()) } else { Err("the process is gone".into()) }
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
    ramped(bus, agents, hold, "100ms")
}

fn ramped(bus: &str, agents: &str, hold: &str, ramp_up: &str) -> Command {
    let mut command = Command::new(TACHO);
    command.args(["run", "symmetric", "--bus", bus, "--agents", agents, "--hold", hold]);
    command.args(["--warmup", "0s", "--ramp-up", ramp_up]);
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
    let run = begin(small(&bus, "2", "60s"), folder.path(), "measure")?;
    drop(server);
    let (code, said) = end(run)?;
    if code != Some(1) || !said.contains("was lost: nothing was heard of it") {
        return Err(format!("{code:?}: {said}").into());
    }
    Ok(())
}

/// A bus that comes back in time: links repeat what was lost, and the run is none the worse.
fn bus_away() -> Verdict {
    let (server, bus, store) = nats()?;
    let _agents = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let run = begin(small(&bus, "2", "8s"), folder.path(), "measure")?;
    drop(server);
    let port = bus.rsplit(':').next().and_then(|port| port.parse().ok()).ok_or("has a port")?;
    let _server = nats_at(port, store.path())?;
    let (_, said) = end(run)?;
    let record = record(folder.path())?;
    let step = &record["steps"][0];
    let counts = [&step["sent"], &step["received"], &step["lost"]];
    let lost = record["agents"].as_array().into_iter().flatten().any(|of| !of["lost"].is_null());
    if counts != [800, 800, 0] || lost {
        return Err(format!("{counts:?}: {said}").into());
    }
    Ok(())
}

/// Starts a run on two agents, and waits until this phase begins.
fn begin(mut command: Command, folder: &Path, phase: &str) -> Result<Running, Failed> {
    command.arg("--dir").arg(folder).stdin(Stdio::null()).stderr(Stdio::piped());
    command.stdout(Stdio::null());
    let mut run = Running::start(command)?;
    run.wait_for_line(|line| line.starts_with(phase))?;
    Ok(run)
}

/// Waits for its end; returns its exit code and what it said.
fn end(run: Running) -> Result<(Option<i32>, String), Failed> {
    let (status, said) = run.finish()?;
    Ok((status.code(), said.join("\n")))
}

fn record(folder: &Path) -> Result<Value, Failed> {
    let text = std::fs::read_to_string(folder.join("summary.json"))?;
    Ok(serde_json::from_str(&text)?)
}

/// Killed, and stopped: both are noticed by the silence, since the bus itself goes on.
fn agent_gone() -> Verdict {
    for which in ["-KILL", "-STOP"] {
        let (_server, bus, _store) = nats()?;
        let [_one, two] = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
        wait_for_agents(&bus, 2)?;
        let folder = tempfile::tempdir()?;
        let run = begin(small(&bus, "2", "12s"), folder.path(), "measure")?;
        signal(&two, which)?;
        let (code, said) = end(run)?;
        let record = record(folder.path())?;
        let lost = &record["agents"][1]["lost"];
        let is_right = code == Some(111)
            && record["agents"][0]["lost"].is_null()
            && lost["percent"] == 50.0
            && record["steps"][0]["lost"] == 0;
        if !is_right || !said.contains("degraded: agent two") {
            return Err(format!("{which}: {code:?}: {lost}: {said}").into());
        }
        // It wakes up, and is free: what it did for the run is over.
        if which == "-STOP" {
            signal(&two, "-CONT")?;
            wait_until("the agent is not free", || {
                let free = |agent: &Value| agent["run"].is_null();
                agents(&bus).is_ok_and(|all| all.len() == 2 && all.iter().all(free))
            })?;
        }
    }
    Ok(())
}

fn agent_gone_early() -> Verdict {
    let (_server, bus, _store) = nats()?;
    let [_one, two] = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let run = begin(ramped(&bus, "2", "2s", "60s"), folder.path(), "connect")?;
    drop(two);
    let (code, said) = end(run)?;
    if code != Some(1) || !said.contains("agent two, which ran 1 of 2") {
        return Err(format!("{code:?}: {said}").into());
    }
    Ok(())
}

fn controller_gone() -> Verdict {
    let (_server, bus, _store) = nats()?;
    let _agents = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let run = begin(small(&bus, "2", "60s"), folder.path(), "measure")?;
    let busy = |wanted: bool| {
        agents(&bus).is_ok_and(|all| {
            all.len() == 2 && all.iter().all(|agent| agent["run"].is_string() == wanted)
        })
    };
    wait_until("the agents are not at work", || busy(true))?;
    run.kill()?;
    wait_until("the agents are not free", || busy(false))
}

/// Agents that a command of the run starts: they end with it, also when it is killed.
fn provisioned() -> Verdict {
    let (_server, bus, _store) = nats()?;
    let agent = format!(
        "{TACHO} agent --quiet --bus {bus} --name p-{{i}} --threads 1 --allow-target loopback"
    );
    let folder = tempfile::tempdir()?;
    let mut command = small(&bus, "2", "1s");
    let output = command.args(["--provision", &agent]).arg("--dir").arg(folder.path()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let record = record(folder.path()).map_err(|error| format!("{error:?}: {said}"))?;
    let names = [&record["agents"][0]["name"], &record["agents"][1]["name"]];
    if names != ["p-1", "p-2"] || record["steps"][0]["received"] != 100 {
        return Err(format!("{names:?}: {said}").into());
    }
    wait_for_agents(&bus, 0)?;
    let folder = tempfile::tempdir()?;
    let mut command = small(&bus, "2", "60s");
    command.args(["--provision", &agent]);
    let run = begin(command, folder.path(), "measure")?;
    wait_for_agents(&bus, 2)?;
    run.kill()?;
    wait_for_agents(&bus, 0)?;
    let folder = tempfile::tempdir()?;
    let mut command = small(&bus, "1", "1s");
    command.args(["--provision", "true; exit 3"]).arg("--dir").arg(folder.path());
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() != Some(1) || !said.contains("'true; exit 3' ended with exit status: 3")
    {
        return Err(format!("{}: {said}", output.status).into());
    }
    Ok(())
}

/// An agent that takes its machine's clock for one that is off and drifts.
fn skewed_agent(bus: &str, name: &str, skew: &str) -> Result<Process, Failed> {
    let mut command = Command::new(TACHO);
    command.args(["agent", "--bus", bus, "--name", name, "--threads", "1"]);
    start(command.args(["--allow-target", "loopback", "--clock-skew", skew]))
}

/// By how much a time between two agents may be off at most.
fn bound_us(record: &Value) -> f64 {
    let agents = record["agents"].as_array().into_iter().flatten();
    agents.filter_map(|agent| agent["clock"]["error_us"].as_f64()).sum()
}

/// Connections to `broker` whose answers arrive later; the address to connect to.
fn delayed(broker: SocketAddr, delay: Duration) -> Result<SocketAddr, Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            // One that cannot be passed on is closed, which the run tells.
            let _ = TcpStream::connect(broker).and_then(|server| pass(&client, &server, delay));
        }
    });
    Ok(address)
}

/// Passes bytes on in both directions, those of `server` after the delay.
fn pass(client: &TcpStream, server: &TcpStream, delay: Duration) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    let (late, due) = mpsc::sync_channel::<(Instant, Vec<u8>)>(10_000);
    thread::spawn(move || {
        let mut chunk = [0; 65_536];
        while let Ok(len @ 1..) = from_server.read(&mut chunk) {
            if late.send((Instant::now() + delay, chunk[..len].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (at, bytes) in due {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to_client.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Messages from publishers on one agent to subscribers on the other, both with clocks of their
/// own, through a network that holds them: the fastest tells the delay within the clocks' bound.
fn delays() -> Verdict {
    let (_server, bus, _store) = nats()?;
    let _agents =
        [skewed_agent(&bus, "one", "10000,100")?, skewed_agent(&bus, "two", "-3000,-50")?];
    wait_for_agents(&bus, 2)?;
    let port = free_port()?;
    let listen = format!("127.0.0.1:{port}");
    let mut command = Command::new(TACHO);
    command.args(["broker", "--listen", &listen]).env("XDG_RUNTIME_DIR", runtime_folder());
    let _broker = start(&mut command)?;
    wait_for_port(port)?;
    for delay_ms in [1, 5, 50] {
        let near = delayed(listen.parse()?, Duration::from_millis(delay_ms))?;
        let folder = tempfile::tempdir()?;
        let mut command = small(&bus, "2", "2s");
        command.args(["--agent-placement", "split", "--broker", &format!("mqtt://{near}")]);
        let output = command.arg("--dir").arg(folder.path()).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let record = record(folder.path()).map_err(|error| format!("{error:?}: {said}"))?;
        let curve = std::fs::read_to_string(folder.path().join("e2e.hgrm"))?;
        let fastest = curve.lines().skip(2).find_map(|line| line.split_whitespace().next());
        let fastest_us: f64 = fastest.ok_or("no latency")?.parse::<f64>()? * 1e3;
        // The histogram's buckets are wider than this by a thousandth; the broker needs a moment.
        let (delay_us, bound_us) = (delay_ms as f64 * 1e3, bound_us(&record));
        let is_read = fastest_us > delay_us * 0.99 - bound_us
            && fastest_us < delay_us + bound_us + 10_000.0
            && bound_us < 10_000.0
            && record["steps"][0]["received"] == 200;
        if !is_read {
            return Err(format!("{delay_us} us is {fastest_us} +- {bound_us} us: {said}").into());
        }
    }
    Ok(())
}

/// An agent whose clock is ten seconds ahead and 100 ppm fast, and one that is behind and slow.
fn skewed() -> Verdict {
    let (_server, bus, _store) = nats()?;
    let skews = [("one", "10000,100", 10_000.0, 100.0), ("two", "-3000,-50", -3_000.0, -50.0)];
    let _agents = [skewed_agent(&bus, "one", skews[0].1)?, skewed_agent(&bus, "two", skews[1].1)?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let mut command = small(&bus, "2", "8s");
    let output = command.arg("--dir").arg(folder.path()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let record = record(folder.path()).map_err(|error| format!("{error:?}: {said}"))?;
    for ((name, _, ahead_ms, drift_ppm), of) in
        skews.iter().zip(record["agents"].as_array().into_iter().flatten())
    {
        let clock = &of["clock"];
        let figure = |name: &str| clock[name].as_f64().unwrap_or(f64::NAN);
        // It was started some seconds before the run.
        let ahead = (figure("ahead_ms") - ahead_ms).abs();
        let drift = (figure("drift_ppm") - drift_ppm).abs();
        let is_within = ahead < figure("error_us") / 1e3 + 20.0
            && drift <= figure("drift_error_ppm") + 5.0
            // Eight seconds of drift are in the bound.
            && figure("error_us") > drift_ppm.abs() * 6.0;
        if of["name"] != *name || clock["same"] != false || !is_within {
            return Err(format!("{name}: {clock:#}").into());
        }
    }
    let step = &record["steps"][0];
    let bound_us = bound_us(&record);
    let latency_us = step["latency_us"]["p50"].as_f64().unwrap_or(f64::INFINITY);
    let counts = [&step["sent"], &step["received"], &step["lost"]];
    if counts != [800, 800, 0] || latency_us > bound_us + 200_000.0 {
        return Err(format!("{counts:?}, {latency_us} us, bound {bound_us} us: {said}").into());
    }
    Ok(())
}
