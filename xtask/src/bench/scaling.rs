//! `cargo xtask bench --scaling`: what more shards carry, each on a core of its own, with the
//! generator on the other cores.

use std::thread;

use super::case::{CLOSED, Case, FAN_OUT, Kind, Load};
use super::figures::Figures;
use super::target::{Bound, Verdict};

/// Of linear growth, at the most shards.
const SHARE_MIN: f64 = 0.85;
const SHARDS: [usize; 4] = [1, 2, 4, 8];
const WORKLOADS: [(&str, &str); 4] = [
    ("closed_qos0", "closed mode, window 16, 400 to 400, QoS 0"),
    ("closed_qos1", "closed mode, window 16, 400 to 400, QoS 1"),
    ("fanout_qos1", "10 publishers to 2,000 subscribers each, QoS 1, 80K out/s per shard"),
    ("fanin_qos1", "2,000 publishers, a shared group of 5 per 100, QoS 1, 30K TPS per shard"),
];

/// Numbers of shards that leave the generator as many cores.
fn fitting(cores: usize) -> impl Iterator<Item = usize> {
    SHARDS.into_iter().filter(move |shards| 2 * shards <= cores)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Each workload with 1, 2, 4 and 8 shards, as far as there are cores for them.
pub(super) fn all() -> Vec<Case> {
    let case = |shards: usize, (name, what): (&str, &str)| Case {
        name: format!("{name}_{shards}"),
        what: format!("{what}; {shards} shards"),
        kind: Kind::Scaled { load: load(name, shards as u64), shards },
    };
    let of_shards = |shards| WORKLOADS.map(|workload| case(shards, workload));
    fitting(cores()).flat_map(of_shards).collect()
}

fn load(name: &str, shards: u64) -> Load {
    let vars = |vars: &[(&'static str, u64)]| {
        vars.iter().map(|(name, value)| (*name, value.to_string())).collect()
    };
    match name {
        "closed_qos0" | "closed_qos1" => {
            let qos = u64::from(name == "closed_qos1");
            let vars = vars(&[("qos", qos), ("publishers", 400), ("subscribers", 400)]);
            Load { scenario: CLOSED, vars }
        }
        "fanout_qos1" => Load {
            scenario: FAN_OUT,
            vars: vars(&[("qos", 1), ("target_throughput", 40 * shards)]),
        },
        _ => Load { scenario: "fan-in", vars: vars(&[("target_throughput", 15_000 * shards)]) },
    }
}

/// The cores of the shards, and those of the generator.
pub(super) fn placement(shards: usize) -> (Vec<usize>, Vec<usize>) {
    ((0..shards).collect(), (shards..cores().max(shards + 1)).collect())
}

/// Throughput against that of one shard times their number. Loads with a rate say whether it is
/// carried: 1 where it is.
pub(super) fn judge(figures: &Figures) -> Vec<Verdict> {
    let most = fitting(cores()).last().unwrap_or(1);
    let mut verdicts = Vec::new();
    for (name, what) in WORKLOADS {
        let tps = |shards: usize| figures.median(&format!("{name}_{shards}"), "tps");
        for shards in fitting(cores()).skip(1) {
            let value = tps(shards).zip(tps(1)).map(|(many, one)| many / (one * shards as f64));
            let bound = (shards == most).then_some(Bound::AtLeast(SHARE_MIN));
            verdicts.push(Verdict::new(
                &format!("{what}: {shards} shards"),
                value,
                "of linear",
                bound,
            ));
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_and_generator_have_cores_of_their_own() {
        assert_eq!(fitting(16).collect::<Vec<_>>(), [1, 2, 4, 8]);
        assert_eq!(fitting(4).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(fitting(2).collect::<Vec<_>>(), [1]);
        let (broker, generator) = placement(2);
        assert!(broker.iter().all(|core| !generator.contains(core)) && !generator.is_empty());
    }

    #[test]
    fn rates_grow_with_the_shards() {
        let rate = |shards| {
            let load = load("fanin_qos1", shards);
            load.vars.into_iter().find(|(name, _)| *name == "target_throughput")
        };
        assert_eq!(rate(8), Some(("target_throughput", "120000".to_owned())));
    }
}
