//! `cargo xtask bench --peers`: the same workloads on every broker that can be had here, in turns,
//! beside the echo floor and a bare forwarder.

use std::fmt::Write as _;
use std::iter;

use super::case::{Case, Subject, fan_out, floor, symmetric, with_forwarder_alone};
use super::figures::{Figures, number};
use crate::brokers::Broker;

/// Heads of the columns, and the last parts of the cases' names.
const WORKLOADS: [(&str, &str); 9] = [
    ("QoS 0, 20K", "qos0_20k"),
    ("QoS 0, 60K", "qos0_60k"),
    ("QoS 1, 20K", "qos1_20k"),
    ("QoS 1, 60K", "qos1_60k"),
    ("QoS 2, 20K", "qos2_20k"),
    ("fan-out QoS 0, 100K/s", "fanout_qos0"),
    ("fan-out QoS 1, 100K/s", "fanout_qos1"),
    ("fan-out QoS 0, 160K/s", "fanout160_qos0"),
    ("fan-out QoS 1, 160K/s", "fanout160_qos1"),
];
/// Columns at whose rate there is a floor.
const FLOORS: [(&str, &str); 2] = [("qos0_20k", "floor_20k"), ("qos0_60k", "floor_60k")];

/// All workloads, each with every broker in turn, and with the forwarder, which knows no QoS 2.
pub(super) fn all(brokers: &[Broker]) -> Vec<Case> {
    let brokers: Vec<Subject> = brokers.iter().map(subject).collect();
    let with_forwarder = || brokers.iter().copied().chain([Subject::Forwarder]);
    let mut cases = vec![floor(20), floor(60)];
    for (qos, tps_k) in [(0, 20), (0, 60), (1, 20), (1, 60)] {
        cases.extend(with_forwarder().map(|subject| symmetric(subject, qos, tps_k)));
    }
    cases.extend(brokers.iter().map(|subject| symmetric(*subject, 2, 20)));
    for qos in [0, 1] {
        cases.extend(with_forwarder().map(|subject| fan_out(subject, qos, 100)));
    }
    cases.extend(with_forwarder_alone());
    cases
}

fn subject(broker: &Broker) -> Subject {
    match crate::brokers::ALL.into_iter().find(|key| *key == broker.key) {
        None | Some("tacho") => Subject::Tacho { shards: 1 },
        Some(key) => Subject::Peer(key),
    }
}

/// What a message costs, and how late it is, by broker and workload.
pub(super) fn tables(brokers: &[Broker], figures: &Figures) -> String {
    let mut text = String::new();
    for (what, metric) in [
        ("us of broker CPU per message, in and out", "cpu_us_per_message"),
        ("p99 of the end-to-end latency in us", "latency_us_p99"),
    ] {
        let _ = write!(text, "| {what} |");
        for (head, _) in WORKLOADS {
            let _ = write!(text, " {head} |");
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(WORKLOADS.len()));
        let _ = write!(text, "| echo floor |");
        for (_, workload) in WORKLOADS {
            let floor = FLOORS.iter().find(|(of, _)| *of == workload);
            let value = floor.and_then(|(_, case)| figures.median(case, metric));
            let _ = write!(text, " {} |", value.map(number).unwrap_or_default());
        }
        text.push('\n');
        let brokers = brokers.iter().map(|broker| (&*broker.version, &*broker.key));
        for (name, key) in iter::once(("bare forwarder", "forwarder")).chain(brokers) {
            let _ = write!(text, "| {name} |");
            for (_, workload) in WORKLOADS {
                let _ = write!(text, " {} |", cell(key, workload, metric, figures));
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text.push_str("Full: the broker used its core up; it may not carry the rate.\n");
    text
}

fn cell(broker: &str, workload: &str, metric: &str, figures: &Figures) -> String {
    let case = format!("{broker}_{workload}");
    let Some(value) = figures.median(&case, metric) else { return String::new() };
    let full = matches!(figures.bottleneck(&case), "broker" | "both");
    format!("{}{}", number(value), if full { ", full" } else { "" })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bench::figures::Sample;
    use crate::brokers;

    #[test]
    fn every_workload_of_every_broker_has_a_case_and_a_cell() {
        let brokers: Vec<Broker> = brokers::ALL.map(brokers::unnamed).into();
        let cases = all(&brokers);
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        // The forwarder has no QoS 2, two workloads are its own and Tacho's, and so are the pairs.
        let cells = 7 * brokers.len() + 6 + 2 * 2;
        assert_eq!(names.len(), FLOORS.len() + cells + 2);
        for (_, workload) in WORKLOADS {
            assert!(names.contains(format!("tacho_{workload}").as_str()), "{workload}");
        }
        let mut figures = Figures::default();
        for case in &cases {
            let mut sample = Sample::new(&case.name, 1);
            sample.set("cpu_us_per_message", Some(7.5));
            sample.set(
                "broker_cpu_percent",
                Some(if case.name == "mochi_qos1_60k" { 99.0 } else { 40.0 }),
            );
            figures.push(sample);
        }
        let text = tables(&brokers, &figures);
        assert_eq!(text.matches("7.50").count(), cells + FLOORS.len(), "{text}");
        assert_eq!(text.matches("7.50, full").count(), 1, "{text}");
    }
}
