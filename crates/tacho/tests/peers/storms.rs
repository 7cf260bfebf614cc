//! The scenarios in which something happens, or that mix kinds of load, against Debian's broker:
//! small, with the figures that they are for. Messages that a broker may lose are not checked;
//! those that it must keep are: `Happened::nothing_broken`.

use libtest_mimic::Trial;
use tacho_testkit::runs::storms::{Happened, run};

use crate::process::Peer;
use crate::{TACHO, Verdict, trial};

/// Variables shortened in every case.
const SHORT: [&str; 2] = ["ramp_up=200ms", "warmup=300ms"];

/// A scenario at small size, and what must come of it.
struct Case {
    scenario: &'static str,
    vars: &'static [&'static str],
    hold: &'static str,
    /// Figures on top, with their least and greatest value.
    headlines: &'static [(&'static str, f64, f64)],
    /// Counts of each action.
    actions: &'static [(&'static str, u64)],
    /// What each action is called in the charts.
    mark: &'static str,
    /// Groups that get everything.
    complete: &'static [&'static str],
}

const ANY: f64 = f64::MAX;

const CASES: [Case; 10] = [
    Case {
        scenario: "reconnect-storm",
        vars: &["clients=30", "bystanders=3", "first_storm=500ms", "storms=1"],
        hold: "2s",
        headlines: &[("time_to_99_percent_connected", 100.0, ANY)],
        actions: &[("clients", 30), ("connected", 30), ("ready", 30), ("given_up", 0)],
        mark: "disconnect",
        complete: &["sub"],
    },
    Case {
        scenario: "takeover",
        vars: &["clients=10", "first_takeover=500ms", "takeovers=1", "over=300ms", "drain=5s"],
        hold: "2s",
        // Version 2.0.11 closes first connections without a word.
        headlines: &[("takeover_told", 0.0, 100.0), ("takeover_served_99", 0.0, ANY)],
        actions: &[("clients", 10), ("connected", 10), ("ready", 10), ("displaced", 10)],
        mark: "takeover",
        complete: &[],
    },
    Case {
        scenario: "churn",
        vars: &["clients=40", "share=0.25", "pause=100ms", "pairs=5", "rate=50", "drain=5s"],
        hold: "2s",
        headlines: &[("connects_per_second", 1.0, 10.0)],
        actions: &[("clients", 10), ("given_up", 0)],
        mark: "disconnect",
        complete: &["sub"],
    },
    Case {
        scenario: "retained-flood",
        vars: &["topics=100", "subscribers=3", "after=500ms", "bystanders=2", "drain=5s"],
        hold: "1500ms",
        headlines: &[("retained_complete", 100.0, 100.0), ("last_retained", 0.0, ANY)],
        actions: &[("clients", 3), ("retained_expected", 300), ("retained", 300), ("complete", 3)],
        mark: "subscribe",
        complete: &["sub"],
    },
    Case {
        scenario: "will-storm",
        vars: &[
            "clients=20",
            "watchers=2",
            "first_storm=300ms",
            "storms=1",
            "pause=200ms",
            "bystanders=2",
        ],
        hold: "1500ms",
        headlines: &[("wills_complete", 100.0, 100.0), ("last_will", 0.0, ANY)],
        actions: &[("clients", 20), ("wills_expected", 40), ("wills", 40), ("connected", 20)],
        mark: "disconnect",
        complete: &["sub"],
    },
    Case {
        scenario: "wildcard",
        vars: &["publishers=20", "filters=20", "watchers=1", "after=2s", "rate=20", "drain=5s"],
        hold: "4s",
        headlines: &[("cpu_per_message_before", 0.0, ANY), ("cpu_per_message_after", 0.0, ANY)],
        actions: &[("clients", 20), ("ready", 20)],
        mark: "subscribe",
        complete: &["sub", "watch"],
    },
    Case {
        scenario: "slow-consumer",
        vars: &[
            "publishers=10",
            "rate=100",
            "payload_size=4096",
            "fast=2",
            "slow=2",
            "after=1s",
            "pause=1s",
            "drain=5s",
        ],
        hold: "3s",
        headlines: &[("calm_p99_before", 0.0, ANY), ("calm_p99_during", 0.0, ANY)],
        actions: &[("clients", 2)],
        mark: "pause",
        complete: &["fast"],
    },
    Case {
        scenario: "request-response",
        vars: &["requesters=10", "responders=2", "rate=20", "qos=2"],
        hold: "1500ms",
        headlines: &[("answered", 100.0, 100.0), ("round_trip_p50", 0.0, ANY)],
        actions: &[],
        mark: "",
        complete: &["ask", "answer"],
    },
    Case {
        scenario: "soak",
        vars: &["pairs=5", "rate=40"],
        hold: "4s",
        headlines: &[("memory_drift", -ANY, ANY), ("latency_drift_p50", -ANY, ANY)],
        actions: &[],
        mark: "",
        complete: &["sub"],
    },
    Case {
        scenario: "mixed",
        vars: &["devices=10", "billing=4", "services=2", "firmware_size=8192"],
        hold: "1500ms",
        headlines: &[("delivered", 100.0, 100.0)],
        actions: &[],
        mark: "",
        complete: &["service", "dashboard", "actor", "ledger", "updater"],
    },
];

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for case in CASES {
        let name = format!("{}_runs_against_mosquitto", case.scenario.replace('-', "_"));
        trials.push(trial(name, &[Peer::Mosquitto], move || case.check()));
    }
}

impl Case {
    fn check(&self) -> Verdict {
        // Started by the run, so that its CPU and memory are known.
        let program = Peer::Mosquitto.find().ok_or("no mosquitto")?;
        let command = format!("{} -p {{port}}", program.display());
        let vars: Vec<&str> = SHORT.iter().chain(self.vars).copied().collect();
        let arguments = ["--hold", self.hold, "--broker-cmd", &command];
        let happened = run(TACHO, self.scenario, &vars, &arguments);
        happened.nothing_broken();
        for (name, least, greatest) in self.headlines {
            let value = happened.headline(name);
            let fits = *least <= value && value <= *greatest;
            happened.insist(fits, &format!("{name} is {value}"))?;
        }
        self.check_actions(&happened)?;
        for name in self.complete {
            let group = Happened::group(&happened.record["steps"][0], name);
            let all =
                group["expected"].as_u64() > Some(0) && group["received"] == group["expected"];
            happened.insist(all, &format!("{name} did not get everything: {group:#}"))?;
        }
        // No scenario that comes with the program runs commands on the machine.
        happened.insist(happened.command_log.is_empty(), "a command was run")?;
        let is_it = happened.scenario.contains(&format!("name = \"{}\"", self.scenario));
        Ok(happened.insist(is_it, "the resolved scenario is another one")?)
    }

    fn check_actions(&self, happened: &Happened) -> Verdict {
        let actions = match happened.record["actions"].as_array() {
            Some(_) => happened.actions(),
            None => &[],
        };
        happened.insist(actions.is_empty() == self.actions.is_empty(), "what happened")?;
        for action in actions {
            for (key, wanted) in self.actions {
                let right = action[key].as_u64() == Some(*wanted);
                happened.insist(right, &format!("{key} is not {wanted}: {action:#}"))?;
            }
        }
        let told = self.mark.is_empty()
            || happened.page.contains(&format!("\"{}\"", self.mark))
                && happened.table.contains("ACTIONS");
        Ok(happened.insist(told, "neither table nor charts tell what happened")?)
    }
}
