//! A broker on another host: a network namespace with an address of its own, which only some
//! machines allow to make.

use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::Verdict;
use crate::process::{Running, wait_until};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let why = Host::create().map(|_| ()).err().map(|failed| match failed.message() {
        Some(words) => words.to_owned(),
        None => "no network namespaces".to_owned(),
    });
    for trial in [
        Trial::test("a_broker_on_another_host_is_loaded_and_watched", watched),
        Trial::test("a_narrow_way_to_another_host_is_the_networks", narrow),
    ] {
        trials.push(match &why {
            // It is the machine's permission that is missing, not a program that can be installed.
            Some(why) => trial.with_ignored_flag(true).with_kind(why.clone()),
            None => trial,
        });
    }
}

/// A namespace that is joined to ours by a cable; gone when dropped.
struct Host {
    name: String,
    cable: String,
    address: Ipv4Addr,
}

impl Host {
    fn create() -> Result<Self, Failed> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        // From the range for measurements, four addresses each.
        let [_, _, high, low] = (process.wrapping_mul(16) + number * 4).to_be_bytes();
        let side = |at: u8| Ipv4Addr::new(198, 18, high, (low & 0xFC) | at);
        let host = Self {
            name: format!("tacho-{process}-{number}"),
            cable: format!("t{process}n{number}"),
            address: side(2),
        };
        let (name, cable) = (&host.name, &host.cable);
        let (ours, theirs) = (format!("{}/30", side(1)), format!("{}/30", side(2)));
        for command in [
            format!("netns add {name}"),
            format!("link add {cable} type veth peer name eth7 netns {name}"),
            format!("addr add {ours} dev {cable}"),
            format!("link set {cable} up"),
            format!("-n {name} addr add {theirs} dev eth7"),
            format!("-n {name} link set eth7 up"),
            format!("-n {name} link set lo up"),
        ] {
            ip(&command)?;
        }
        Ok(host)
    }

    /// A command that runs there.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = ip(&format!("link del {}", self.cable));
        let _ = ip(&format!("netns del {}", self.name));
    }
}

fn ip(arguments: &str) -> Result<(), Failed> {
    let output = Command::new("ip").args(arguments.split(' ')).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("no network namespaces: ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("no network namespaces: ip {arguments}: {}", said.trim()).into()),
    }
}

/// Runs a small load against a broker there, with an agent beside it; its record.
fn run(host: &Host, more: &[&str]) -> Result<Value, Failed> {
    let folder = tempfile::tempdir()?;
    let token = folder.path().join("token");
    std::fs::write(&token, "a-token-of-this-test-and-no-other\n")?;
    let token = token.display().to_string();
    let (broker, agent) = (format!("{}:1883", host.address), format!("{}:7777", host.address));
    let program = env!("CARGO_BIN_EXE_tacho");
    let mut command = host.command(program);
    command.args(["broker", "--listen", &broker, "--allow-anonymous", "--shards", "1"]);
    command.env("XDG_RUNTIME_DIR", tacho_testkit::runtime_folder());
    let _broker = Running::start(command)?;
    let mut command = host.command(program);
    command.args(["monitor", "--listen", &agent, "--token-file", &token]);
    let _agent = Running::start(command)?;
    for address in [&broker, &agent] {
        wait_until(&format!("nothing listens on {address}"), || {
            TcpStream::connect(address).is_ok()
        })?;
    }
    let (url, watch) = (format!("mqtt://{broker}"), format!("agent://{agent}?token-file={token}"));
    let directory = folder.path().join("run");
    let mut command = Command::new(program);
    command.args(["run", "symmetric", "--quiet", "--broker", &url, "--monitor", &watch]);
    for var in ["publishers=20", "subscribers=20", "target_throughput=500", "ramp_up=200ms"] {
        command.args(["--var", var]);
    }
    command.args(more).arg("--dir").arg(&directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, said) = Running::start(command)?.finish()?;
    let text = std::fs::read_to_string(directory.join("summary.json"))
        .map_err(|error| format!("no summary ({error}); {status}: {said:#?}"))?;
    serde_json::from_str(&text).map_err(|error| error.to_string().into())
}

/// The CPU that counts is the other host's, and its rows have a place on our clock.
fn watched() -> Verdict {
    let host = Host::create()?;
    let record = run(&host, &["--hold", "5s", "--warmup", "500ms"])?;
    let step = &record["steps"][0];
    let monitor = &record["monitors"][0];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let received = step["received"].as_u64() == Some(2500) && step["lost"].as_u64() == Some(0);
    let right = received
        && record["placement"]["one_machine"] == false
        && step["whose_cpu"] == "host"
        // Judged by what it used itself; 1 - idle, as published, beside it.
        && step["cpu_percent"] == step["host_busy_percent"]
        && number(&step["host_cpu_percent"]) > 0.0
        // Found there by its port.
        && number(&step["broker_cpu_percent"]) > 0.0
        && step["broker_cpu_source"] == "monitor"
        && step["rtt_us"]["count"].as_u64() > Some(0)
        && monitor["errors"].as_u64() == Some(0)
        && monitor["rows"].as_u64() > Some(3)
        && number(&monitor["clock_error_us_max"]) < 1e6;
    if right { Ok(()) } else { Err(format!("not so: {record:#}").into()) }
}

/// The interface says ten gigabits; something on the way lets two megabits pass.
fn narrow() -> Verdict {
    let host = Host::create()?;
    let mut command = host.command("tc");
    let shaped = "qdisc add dev eth7 root tbf rate 2mbit burst 16kb latency 50ms";
    command.args(shaped.split(' '));
    if Running::start(command)?.finish().map_or(true, |(status, _)| !status.success()) {
        // Not every kernel can shape; what follows from it has a test without one.
        return Ok(());
    }
    let record = run(&host, &["--hold", "6s", "--warmup", "2s", "--var", "payload_size=1024"])?;
    let reasons = record["reasons"].to_string();
    let verdict = record["verdict"].as_str().unwrap_or("none");
    // A shared machine may have slowed the generator as well, or disturbed the run; the reason
    // stands all the same.
    let known = ["network_bound", "generator_bound", "disturbed"].contains(&verdict);
    match known && reasons.contains("The network was the bottleneck: eth7") {
        true => Ok(()),
        false => Err(format!("{verdict}, {reasons}: {:#}", record["steps"][0]["hosts"]).into()),
    }
}
