//! paho-mqtt (Python) and mqtt.js (Node) against Tacho's broker.
//!
//! Both scripts know the same checks by name, so that two implementations judge each behaviour;
//! a feature that only one of them has is checked with that one.

use std::path::Path;

use libtest_mimic::Trial;

use crate::broker::Broker;
use crate::process::{Peer, Running, peers_dir};
use crate::{Verdict, trial};

const VERSIONS: [&str; 2] = ["3.1.1", "5"];

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for (peer, script) in [(Peer::Paho, "paho_client.py"), (Peer::MqttJs, "mqttjs_client.cjs")] {
        for version in VERSIONS {
            let mut checks: Vec<(&str, u8)> = vec![("deliver", 0), ("deliver", 1), ("deliver", 2)];
            checks.extend([("retained", 1), ("will", 1), ("shared", 1), ("resume", 1)]);
            checks.push(("resume", 2));
            if version == "5" {
                checks.push(("properties", 1));
            }
            if version == "5" && matches!(peer, Peer::MqttJs) {
                // paho-mqtt knows no aliases towards clients, mqtt.js none with QoS 2.
                checks.extend([("aliases", 0), ("aliases", 1), ("sizes", 0), ("sizes", 2)]);
            }
            for (check, qos) in checks {
                let name = format!("{}_{version}_{check}_qos{qos}", peer.name());
                let check = Check { version, check, qos };
                trials.push(trial(name, &[peer], move || {
                    run(&Broker::tacho()?, peer, script, check)
                }));
            }
        }
        for (transport, checks) in CARRIED {
            for &(version, check, qos) in checks {
                let name = format!("{}_{version}_{check}_qos{qos}_over_{transport}", peer.name());
                let check = Check { version, check, qos };
                trials.push(trial(name, &[peer], move || {
                    run(&Broker::tacho_over(transport)?, peer, script, check)
                }));
            }
        }
    }
}

/// Cases for transports other than TCP: each version, large payloads, connections that break and
/// resume.
const CARRIED: [(&str, &[Tried]); 3] = [
    ("tls", &[("3.1", "deliver", 2), ("5", "resume", 1)]),
    ("ws", &[("3.1", "deliver", 1), ("3.1.1", "will", 1), ("5", "deliver", 2)]),
    ("wss", &[("3.1.1", "resume", 2), ("5", "deliver", 2), ("5", "will", 1)]),
];

/// Version, check, QoS.
type Tried = (&'static str, &'static str, u8);

#[derive(Clone, Copy)]
struct Check {
    version: &'static str,
    check: &'static str,
    qos: u8,
}

fn run(broker: &Broker, peer: Peer, script: &str, what: Check) -> Verdict {
    let Check { version, check, qos } = what;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("peers");
    let mut command = peer.command()?;
    command.arg(folder.join(script));
    command.args([&broker.port.to_string(), version, check, &qos.to_string()]);
    command.env("TACHO_PEERS_DIR", peers_dir());
    command.env("TACHO_PEERS_TRANSPORT", broker.transport);
    if let Some(ca) = broker.ca() {
        command.env("TACHO_PEERS_CA", ca);
    }
    Running::start(command)?.succeed()?;
    Ok(())
}
