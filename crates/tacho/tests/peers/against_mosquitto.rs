//! Tacho's load against Debian's broker.

use std::fs;
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};
use tacho_testkit::runs::is_fair;

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
    let name = "a_run_starts_mosquitto_with_tls".to_owned();
    trials.push(trial(name, &[Peer::Mosquitto], started_by_the_run));
}

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

/// A command that writes a configuration with the run's port, as users have to.
fn started_by_the_run() -> Verdict {
    let folder = tempfile::tempdir()?;
    let files = tacho_broker::self_signed(folder.path(), [])?;
    let config = folder.path().join("mosquitto.conf");
    let text = format!(
        "user root\nlistener PORT 127.0.0.1\nallow_anonymous true\npersistence false\n\
         certfile {}\nkeyfile {}\n",
        files.cert.display(),
        files.key.display()
    );
    fs::write(&config, text)?;
    let program = Peer::Mosquitto.find().ok_or("no mosquitto")?;
    let (program, config) = (program.display(), config.display());
    let script =
        format!("sed s/PORT/{{port}}/ {config} > {config}.now; exec {program} -c {config}.now");
    let ca = files.ca.display().to_string();
    let command = format!("sh -c '{script}'");
    run(1, &["--broker-cmd", &command, "--transport", "tls", "--ca", &ca])
}

fn symmetric(broker: &Broker, qos: u8, arguments: &[&str]) -> Verdict {
    // mosquitto does not look at the path of a WebSocket.
    let url = format!("{}://127.0.0.1:{}", broker.transport, broker.port);
    let ca = broker.ca().map(|ca| ca.display().to_string());
    let trust: Vec<&str> = ca.iter().flat_map(|ca| ["--ca", ca]).collect();
    run(qos, &[&["--broker", &url][..], &trust, arguments].concat())
}

fn run(qos: u8, arguments: &[&str]) -> Verdict {
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["run", "symmetric", "--quiet"]).args(arguments);
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
    let step = summary.get("steps").and_then(|steps| steps.get(0));
    let step = step.ok_or_else(|| format!("no step; {status}: {said:#?}"))?;
    let count = |key: &str| step.get(key).and_then(serde_json::Value::as_u64);
    let complete = count("sent") == Some(1200) && count("received") == Some(1200);
    if !is_fair(&summary) || !complete || count("lost") != Some(0) {
        return Err(format!("{status}: {said:#?}\n{text}").into());
    }
    Ok(())
}
