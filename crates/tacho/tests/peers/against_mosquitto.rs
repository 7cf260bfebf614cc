//! Tacho's load against Debian's broker.

use std::fs;
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::broker::Broker;
use crate::process::{Peer, Running};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for qos in 0..=2 {
        let name = format!("symmetric_qos{qos}_loads_mosquitto");
        trials.push(trial(name, &[Peer::Mosquitto], move || {
            symmetric(&Broker::mosquitto()?, qos, &[])
        }));
    }
    for transport in ["tls", "ws", "wss"] {
        let name = format!("symmetric_loads_mosquitto_over_{transport}");
        trials.push(trial(name, &[Peer::Mosquitto], move || {
            symmetric(&Broker::mosquitto_over(transport, false)?, 1, &[])
        }));
    }
    let name = "mosquitto_checks_certificates_of_clients".to_owned();
    trials.push(trial(name, &[Peer::Mosquitto], mutual));
}

/// A verdict that says nothing against the broker: a shared machine may slow the generator.
const FAIR: [&str; 3] = ["ok", "generator_bound", "not_steady"];

/// A client that shows the broker's own certificate is let in, one without is told why not.
fn mutual() -> Verdict {
    let broker = Broker::mosquitto_over("tls", true)?;
    let file = |name: &str| broker.file(name).display().to_string();
    let (cert, key) = (file("server.pem"), file("server.key"));
    symmetric(&broker, 2, &["--cert", &cert, "--key", &key])?;
    let refused = symmetric(&broker, 2, &[]).err().ok_or("let in without a certificate")?;
    let said = refused.message().unwrap_or_default();
    match said.contains("requires a certificate") && said.contains("exit status: 112") {
        true => Ok(()),
        false => Err(refused),
    }
}

fn symmetric(broker: &Broker, qos: u8, arguments: &[&str]) -> Verdict {
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["run", "symmetric", "--quiet"]);
    // mosquitto does not look at the path of a WebSocket.
    command.args(["--broker", &format!("{}://127.0.0.1:{}", broker.transport, broker.port)]);
    if let Some(ca) = broker.ca() {
        command.arg("--ca").arg(ca);
    }
    command.args(arguments);
    command.arg("--dir").arg(&run);
    let qos = format!("qos={qos}");
    let variables = [
        &*qos,
        "publishers=20",
        "subscribers=20",
        "target_throughput=400",
        "ramp_up=1s",
        "warmup=1s",
        "duration=3s",
    ];
    for variable in variables {
        command.args(["--var", variable]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, said) = Running::start(command)?.finish()?;
    let text = fs::read_to_string(run.join("summary.json"))
        .map_err(|error| format!("no summary ({error}); {status}: {said:#?}"))?;
    let summary: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Failed::from(error.to_string()))?;
    let verdict = summary.get("verdict").and_then(|value| value.as_str()).unwrap_or("none");
    let step = summary.get("steps").and_then(|steps| steps.get(0));
    let step = step.ok_or_else(|| format!("no step; {status}: {said:#?}"))?;
    let count = |key: &str| step.get(key).and_then(serde_json::Value::as_u64);
    let complete = count("sent") == Some(1200) && count("received") == Some(1200);
    if !FAIR.contains(&verdict) || !complete || count("lost") != Some(0) {
        return Err(format!("{status}: {said:#?}\n{text}").into());
    }
    Ok(())
}
