//! JMeter plans as the real JMeter runs them, against what Tacho makes of them.
//!
//! JMeter 5.6.3 with the public plugin (mqtt-jmeter 2.0.2) ran each plan against a broker behind a
//! relay that notes what clients say. The facts of these recordings are in
//! `tests/fixtures/jmeter/recorded.json`; Tacho runs the same plans behind the same relay. The
//! plugin is in no package registry: with `TACHO_MQTT_JMETER=FILE.jar` JMeter runs the plans again
//! and must do what is recorded; `TACHO_MQTT_JMETER_RECORD=1` replaces the recordings instead.

mod facts;
mod plan;
mod recorder;

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::{Map, Value};

use crate::broker::Broker;
use crate::process::{Peer, Running, free_port, peers_dir, wait_until};
use crate::{TACHO, Verdict, trial};
use plan::{ALL, Plan};
use recorder::Recorder;

/// Messages of each publisher that show its pace.
const MESSAGES: usize = 12;

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for plan in ALL {
        let peers = if plan.is_bridged { &[Peer::Mosquitto][..] } else { &[] };
        let name = format!("plan_{}_does_what_jmeter_did", plan.name);
        trials.push(trial(name, peers, move || ours_are_theirs(&plan)));
    }
    let Some(plugin) = env::var_os("TACHO_MQTT_JMETER").map(PathBuf::from) else { return };
    let name = "jmeter_with_its_plugin_does_what_is_recorded".to_owned();
    let test = move || theirs_are_recorded(&plugin);
    trials.push(trial(name, &[Peer::Jmeter, Peer::Mosquitto], test));
}

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/jmeter/recorded.json")
}

fn recorded() -> Result<Map<String, Value>, Failed> {
    let text = fs::read_to_string(recordings())?;
    serde_json::from_str(&text).map_err(|error| error.to_string().into())
}

/// One or two brokers behind a relay.
struct Scene {
    recorder: Recorder,
    /// Where the relay listens; on two addresses for two brokers.
    port: u16,
    folder: tempfile::TempDir,
    _brokers: Vec<Broker>,
}

impl Scene {
    fn new(plan: &Plan) -> Result<Self, Failed> {
        let brokers = match plan.is_bridged {
            true => Vec::from(Broker::mosquittos_bridged()?),
            false => vec![Broker::tacho()?],
        };
        let (recorder, port) = (Recorder::default(), free_port()?);
        for (number, broker) in (1..).zip(&brokers) {
            let address = Ipv4Addr::new(127, 0, 0, number);
            recorder.relay(usize::from(number), (address, port), broker.port)?;
        }
        Ok(Self { recorder, port, folder: tempfile::tempdir()?, _brokers: brokers })
    }

    /// What was noted of a plan by its clients so far.
    fn facts(&self) -> Value {
        facts::of(&self.recorder.clients())
    }
}

/// Tacho runs a plan at each QoS that it has; the recordings are of the same.
fn ours_are_theirs(plan: &Plan) -> Verdict {
    let recorded = recorded()?;
    for qos in plan.qos {
        let scene = Scene::new(plan)?;
        let file = plan.prepared(scene.folder.path(), scene.port, *qos)?;
        let mut command = Command::new(TACHO);
        command.arg("run").arg(&file).arg("--quiet");
        if !plan.is_finite {
            let warmup = format!("{}s", plan.ramp_s(*qos));
            command.args(["--hold", "2s", "--warmup", &warmup]);
        }
        // As the public plugin does it.
        command.args(["--jmx-pacing", "jmeter", "--jmx-payload", "jmeter", "--jmx-inflight", "1"]);
        command.args(["--tolerate", "steal=100%,others=100%,waiting=100%"]);
        command.arg("--dir").arg(scene.folder.path().join("run"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (status, said) = Running::start(command)?.finish()?;
        let case = plan.case(*qos);
        let theirs = recorded.get(&case).ok_or_else(|| format!("no recording of {case}"))?;
        facts::compare(plan, *qos, (theirs, &scene.facts()), 1).map_err(|error| {
            format!("{case}: {}\n{status}: {said:#?}", error.message().unwrap_or_default())
        })?;
    }
    Ok(())
}

/// JMeter runs all plans; the recordings are of the same, or are replaced.
fn theirs_are_recorded(plugin: &Path) -> Verdict {
    let mut found = Map::new();
    for plan in ALL {
        for qos in plan.qos {
            found.insert(plan.case(*qos), theirs(&plan, *qos, plugin)?);
        }
    }
    if env::var("TACHO_MQTT_JMETER_RECORD").is_ok_and(|value| value == "1") {
        let text = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())?;
        return Ok(fs::write(recordings(), text + "\n")?);
    }
    let recorded = recorded()?;
    for plan in ALL {
        for qos in plan.qos {
            let case = plan.case(*qos);
            let before = recorded.get(&case).ok_or_else(|| format!("no recording of {case}"))?;
            facts::compare(&plan, *qos, (before, &found[&case]), 0)
                .map_err(|error| format!("{case}: {}", error.message().unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// What JMeter does by a plan, until all publishers have shown their pace.
fn theirs(plan: &Plan, qos: u8, plugin: &Path) -> Result<Value, Failed> {
    let scene = Scene::new(plan)?;
    let folder = scene.folder.path();
    let file = plan.prepared(folder, scene.port, qos)?;
    let home = peers_dir().join("jmeter");
    let libraries = format!("{}:{}", home.join("lib").join("*").display(), plugin.display());
    let mut command = Peer::Jmeter.command()?;
    command.args(["-Djava.awt.headless=true", "-Xmx512m", "-cp", &libraries]);
    command.arg(format!("-Djava.util.prefs.userRoot={}", folder.display()));
    command.arg(format!("-Djmeter.home={}", home.display()));
    command.arg("org.apache.jmeter.NewDriver").arg("-n").arg("-t").arg(&file);
    command.arg("-l").arg(folder.join("samples.jtl")).arg("-j").arg(folder.join("jmeter.log"));
    command.current_dir(folder);
    let running = Running::start(command)?;
    let is_done = || {
        let clients = scene.recorder.clients();
        let publishers = clients.iter().filter(|one| !one.messages.is_empty());
        let done = publishers.filter(|one| match plan.is_finite {
            true => one.farewell,
            false => one.messages.len() >= MESSAGES,
        });
        done.count() >= plan.publishers && clients.len() >= plan.clients
    };
    if let Err(error) = wait_until(&format!("{} is not run", plan.name), is_done) {
        let log = fs::read_to_string(folder.join("jmeter.log")).unwrap_or_default();
        return Err(format!("{}: {log}", error.message().unwrap_or_default()).into());
    }
    running.kill()?;
    Ok(scene.facts())
}
