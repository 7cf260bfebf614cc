//! JMeter plans of the guide's four kinds, run as they are: the brokers are those that they name.

use libtest_mimic::Trial;
use tacho_testkit::runs::small::Small;

use crate::broker::Broker;
use crate::process::Peer;
use crate::{TACHO, Verdict, trial};

macro_rules! plan {
    ($file:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../scenario/tests/fixtures/", $file)
    };
}

/// Publishers and subscribers in pairs.
const PAIRS: Small = Small {
    scenario: plan!("pairs.jmx"),
    vars: &["per_second=100", "q=2"],
    clients: 20,
    sent: 200,
    received: 200,
};

/// Many publishers, few subscribers of a shared group on each machine.
const TEAM: Small = Small {
    scenario: plan!("team.jmx"),
    vars: &["per_second=100"],
    clients: 28,
    sent: 200,
    received: 200,
};

/// Few publishers, many subscribers on each machine.
const CROWD: Small = Small {
    scenario: plan!("crowd.jmx"),
    vars: &["per_second=20"],
    clients: 44,
    sent: 40,
    received: 800,
};

/// Publishers at each of two brokers, subscribers at the other.
const BRIDGED: Small = Small {
    scenario: plan!("bridged.jmx"),
    vars: &["per_second=50"],
    clients: 20,
    sent: 200,
    received: 200,
};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let machines = &["--machines", "2"][..];
    let kinds = [("pairs", PAIRS, &[][..]), ("team", TEAM, machines), ("crowd", CROWD, machines)];
    for (name, small, arguments) in kinds {
        trials.push(trial(format!("plan_{name}_runs_against_tacho"), &[], move || {
            run(small, &Broker::tacho()?, arguments)
        }));
        let name = format!("plan_{name}_runs_against_mosquitto");
        trials.push(trial(name, &[Peer::Mosquitto], move || {
            run(small, &Broker::mosquitto()?, arguments)
        }));
    }
    let name = "plan_bridged_runs_between_two_mosquittos".to_owned();
    trials.push(trial(name, &[Peer::Mosquitto], bridged));
    for (transport, carrier) in [("tls", "SSL"), ("ws", "WS"), ("wss", "WSS")] {
        trials.push(trial(format!("plan_over_{transport}_runs_against_tacho"), &[], move || {
            carried(&Broker::tacho_over(transport)?, carrier)
        }));
        let name = format!("plan_over_{transport}_runs_against_mosquitto");
        trials.push(trial(name, &[Peer::Mosquitto], move || {
            carried(&Broker::mosquitto_over(transport, false)?, carrier)
        }));
    }
}

/// Runs a plan against the broker that it names, by its own variables.
fn run(small: Small, broker: &Broker, arguments: &[&str]) -> Verdict {
    let port = format!("port={}", broker.port);
    let record = small.run(TACHO, &[&["--var", &port], arguments].concat())?;
    let named = format!("{}://127.0.0.1:{}", scheme(broker), broker.port);
    let loaded = record["target"]["broker"].as_str().unwrap_or_default();
    match loaded.starts_with(&named) {
        true => Ok(()),
        false => Err(format!("it loaded {loaded}, not {named}").into()),
    }
}

fn scheme(broker: &Broker) -> &'static str {
    match broker.transport {
        "tcp" => "mqtt",
        "tls" => "mqtts",
        other => other,
    }
}

/// Plans do not verify certificates, as mqtt-jmeter does not: made ones are taken.
fn carried(broker: &Broker, carrier: &'static str) -> Verdict {
    let small = Small {
        scenario: plan!("carried.jmx"),
        vars: &["per_second=100"],
        clients: 20,
        sent: 200,
        received: 200,
    };
    let carrier = format!("carrier={carrier}");
    run(small, broker, &["--var", &carrier])
}

/// A plan with one port for both brokers: the second one is said on the command line.
fn bridged() -> Verdict {
    let [one, two] = Broker::mosquittos_bridged()?;
    let port = format!("port={}", one.port);
    let second = format!("node2=mqtt://127.0.0.1:{}", two.port);
    let record = BRIDGED.run(TACHO, &["--var", &port, "--broker", &second])?;
    let brokers = record["targets"].to_string();
    for broker in [one.port, two.port] {
        if !brokers.contains(&format!("127.0.0.1:{broker}")) {
            return Err(format!("{broker} is not among {brokers}").into());
        }
    }
    Ok(())
}
