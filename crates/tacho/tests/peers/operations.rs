//! What the broker tells about itself, as Prometheus' own tool and mosquitto's clients see it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use libtest_mimic::{Failed, Trial};

use crate::broker::Broker;
use crate::process::{PATIENCE, Peer, Running, free_port, wait_for_port};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let peers = [Peer::Promtool, Peer::MosquittoPub];
    trials.push(trial("promtool_has_no_complaint".into(), &peers, promtool));
    let peers = [Peer::Mosquitto, Peer::MosquittoPub, Peer::MosquittoSub, Peer::Stdbuf];
    trials.push(trial("sys_topics_are_those_of_mosquitto".into(), &peers, sys_topics));
}

/// Its lint knows the rules for names, units, help texts and histograms.
fn promtool() -> Verdict {
    let metrics = free_port()?;
    let broker = Broker::tacho_with(&["--metrics", &format!("127.0.0.1:{metrics}")])?;
    wait_for_port(metrics)?;
    for qos in ["0", "1", "2"] {
        publish(&broker, &["-t", "a/b", "-m", "hello", "-q", qos])?;
    }
    let answer = get(metrics, "/metrics")?;
    if !answer.contains("tacho_publishes_in_total{") {
        return Err(format!("no metrics: {answer}").into());
    }
    promtool_checks(&answer)
}

/// Insists that it has no complaint about `metrics`.
pub(crate) fn promtool_checks(metrics: &str) -> Verdict {
    let mut command = Peer::Promtool.command()?;
    command.args(["check", "metrics"]).stdin(std::process::Stdio::piped());
    let mut running = Running::start(command)?;
    let mut stdin = running.child.stdin.take().ok_or("no standard input")?;
    stdin.write_all(metrics.as_bytes())?;
    drop(stdin);
    let said = running.succeed()?;
    if said.is_empty() { Ok(()) } else { Err(format!("it complains: {said:#?}").into()) }
}

/// Asks the broker that answers at `port`.
pub(crate) fn get(port: u16, path: &str) -> Result<String, Failed> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // Of HTTP 1.0, so that the answer is no sequence of chunks.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    if head.split(' ').nth(1) == Some("200") { Ok(body.to_owned()) } else { Err(answer.into()) }
}

fn publish(broker: &Broker, arguments: &[&str]) -> Verdict {
    let mut command = Peer::MosquittoPub.command()?;
    command.args(["-h", "127.0.0.1", "-p", &broker.port.to_string()]).args(arguments);
    Running::start(command)?.succeed()?;
    Ok(())
}

/// Both brokers have the same topics, with payloads of the same form.
fn sys_topics() -> Verdict {
    let mut ours = figures(&Broker::tacho_with(&["--sys-interval-s", "1"])?, &BTreeMap::new())?;
    // mosquitto has no alarms.
    ours.retain(|name, _| !name.starts_with("alarms/"));
    let theirs = figures(&Broker::mosquitto_that_tells()?, &ours)?;
    let mut complaints = Vec::new();
    for (topic, payload) in &theirs {
        match ours.get(topic) {
            None => complaints.push(format!("we have no {topic} (there: {payload})")),
            Some(own) if form(own) == form(payload) => {}
            Some(own) => complaints.push(format!("{topic}: {own} here, {payload} there")),
        }
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ").into()) }
}

/// What a subscriber to everything is told, by topic: for a few intervals, and until it was told
/// all that is `wanted`.
fn figures(
    broker: &Broker,
    wanted: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failed> {
    // Something to tell of everything.
    publish(broker, &["-t", "kept", "-m", "hello", "-r", "-q", "1"])?;
    let mut command = Peer::Stdbuf.command()?;
    command.arg("-oL").arg(Peer::MosquittoSub.find().ok_or("no mosquitto_sub")?);
    command.args(["-h", "127.0.0.1", "-p", &broker.port.to_string(), "-V", "mqttv5"]);
    command.args(["-t", "$SYS/#", "-t", "$share/g/x", "-F", "%t\t%p"]);
    let mut running = Running::start(command)?;
    let told = RefCell::new(BTreeMap::new());
    // It changes in every interval, and between two changes all others were told.
    let uptimes = Cell::new(0);
    let told_all = |line: &str| {
        let Some((topic, payload)) = line.split_once('\t') else { return false };
        let Some(name) = topic.strip_prefix("$SYS/broker/") else { return false };
        uptimes.set(uptimes.get() + u32::from(name == "uptime"));
        let mut told = told.borrow_mut();
        told.insert(name.to_owned(), payload.to_owned());
        uptimes.get() > 2 && wanted.keys().all(|name| told.contains_key(name))
    };
    running.wait_for_line(told_all).map_err(|error| {
        let told = told.borrow();
        let missing: Vec<_> = wanted.keys().filter(|name| !told.contains_key(*name)).collect();
        format!("{}; only we have {missing:?}", error.message().unwrap_or_default())
    })?;
    Ok(told.into_inner())
}

/// Words stay, numbers become `0`: `12 seconds` is of the same form as `3 seconds`.
fn form(payload: &str) -> String {
    let word = |word: &str| match word.parse::<f64>() {
        Ok(_) if word.contains('.') => {
            format!("0.{}", "0".repeat(word.rsplit('.').next().map_or(0, str::len)))
        }
        Ok(_) => "0".to_owned(),
        Err(_) if word.split('.').all(|part| part.parse::<u32>().is_ok()) => "a version".to_owned(),
        Err(_) => word.replace("mosquitto", "tacho"),
    };
    payload.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
