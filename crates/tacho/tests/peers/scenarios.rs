//! Every built-in scenario against Debian's broker.

use libtest_mimic::Trial;

use crate::broker::Broker;
use crate::process::Peer;
use crate::small::{SMALL, Small};
use crate::trial;

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
            Ok(small.run(&["--broker", &format!("mqtt://127.0.0.1:{}", broker.port)])?)
        }));
    }
    let name = "bridge_runs_between_two_mosquittos".to_owned();
    trials.push(trial(name, &[Peer::Mosquitto], || {
        let [one, two] = Broker::mosquittos_bridged()?;
        let one = format!("node1=mqtt://127.0.0.1:{}", one.port);
        let two = format!("node2=mqtt://127.0.0.1:{}", two.port);
        Ok(BRIDGE.run(&["--broker", &one, "--broker", &two])?)
    }));
}
