//! Every built-in scenario against Debian's broker.

use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};
use tacho_testkit::runs::rows;
use tacho_testkit::runs::small::{SMALL, Small};

use crate::broker::Broker;
use crate::process::{Peer, Running};
use crate::{TACHO, Verdict, trial};

/// The scenario between two brokers.
const BRIDGE: Small = Small {
    scenario: "bridge",
    vars: &["publishers=5", "subscribers=5", "target_throughput=50", "qos=2"],
    clients: 20,
    sent: 200,
    received: 200,
};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for small in SMALL {
        let name = format!("{}_runs_against_mosquitto", small.scenario);
        trials.push(trial(name, &[Peer::Mosquitto], move || {
            let broker = Broker::mosquitto()?;
            small.run(TACHO, &["--broker", &format!("mqtt://127.0.0.1:{}", broker.port)])?;
            Ok(())
        }));
    }
    let name = "bridge_runs_between_two_mosquittos".to_owned();
    trials.push(trial(name, &[Peer::Mosquitto], || {
        let [one, two] = Broker::mosquittos_bridged()?;
        let one = format!("node1=mqtt://127.0.0.1:{}", one.port);
        let two = format!("node2=mqtt://127.0.0.1:{}", two.port);
        BRIDGE.run(TACHO, &["--broker", &one, "--broker", &two])?;
        Ok(())
    }));
    let name = "the_guides_bridge_runs_between_two_mosquittos".to_owned();
    trials.push(trial(name, &[Peer::Mosquitto], guide));
}

/// The first step of the suite's figure about bridges, small: one broker, then two.
fn guide() -> Verdict {
    let brokers = Broker::mosquittos_bridged()?;
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["run", "guide", "--only", "bridge/10K", "--scale", "0.02"]);
    command.args(["--scale-clients", "0.01", "--hold", "2s", "--warmup", "500ms"]);
    command.args(["--tolerate", "steal=100%,others=100%,waiting=100%"]);
    for (name, broker) in ["node1", "node2"].into_iter().zip(&brokers) {
        command.args(["--broker", &format!("{name}=mqtt://127.0.0.1:{}", broker.port)]);
    }
    command.arg("--dir").arg(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, said) = Running::start(command)?.finish()?;
    let complain = |complaint: &str| format!("{complaint}; {status}: {said:#?}");
    let text = std::fs::read_to_string(folder.path().join("summary.json"))
        .map_err(|error| complain(&format!("no summary ({error})")))?;
    let record: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Failed::from(error.to_string()))?;
    let steps = rows(&record);
    // 5,000 messages a second, a fiftieth of them, for two seconds; half of them in each direction
    // over the bridge.
    for step in &steps {
        for (what, wanted) in [("sent", 200), ("received", 200), ("lost", 0), ("duplicates", 0)] {
            if step[what].as_u64() != Some(wanted) {
                return Err(complain(&format!("{what} is not {wanted}: {step:#}")).into());
            }
        }
    }
    let names = |key: &str| -> Vec<&str> {
        let series = record["series"].as_array().map_or(&[][..], Vec::as_slice);
        series.iter().filter_map(|series| series[key].as_str()).collect()
    };
    let right = record["kind"] == "suite"
        && steps.len() == 2
        && names("name") == ["no-bridge", "bridge"]
        && names("figure") == ["bridge", "bridge"]
        && said.iter().any(|line| line.contains("row 2 of 2: bridge, 10K"))
        && folder.path().join("report.html").is_file();
    if right { Ok(()) } else { Err(complain(&text).into()) }
}
