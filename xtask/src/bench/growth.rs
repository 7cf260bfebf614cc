//! `cargo xtask bench --growth`: what a message costs as one thing grows and all others, its rate
//! among them, stay: clients, the payload, topics, subscriptions.

use std::fmt::Write as _;

use super::case::{Case, Kind, Load, Subject};
use super::figures::{Figures, grouped, number};
use super::routing::{RoutedSizes, Routing, RoutingCase};
use super::target::{Bound, CPU, TIMES, Verdict};

/// Against the smallest size; clients by their share above the floor at the same number.
const GROWTH_MAX: f64 = 1.5;

/// One thing that grows.
struct Ladder {
    /// First part of the names of its cases.
    name: &'static str,
    unit: &'static str,
    /// All that stays.
    what: &'static str,
    sizes: &'static [usize],
    kind: fn(usize) -> Kind,
    /// Whether the echo floor is measured at each size: the kernel's cost grows by itself.
    has_floor: bool,
    bound: Option<Bound>,
}

const LADDERS: [Ladder; 4] = [
    Ladder {
        name: "clients",
        unit: "clients",
        what: "symmetric, half of them publishers, 128 B, QoS 0, 20K TPS in all",
        sizes: &[100, 1_000, 5_000, 18_000],
        kind: |clients| symmetric((clients / 2, clients / 2), 128, FLOOR_RATE),
        has_floor: true,
        bound: Some(Bound::AtMost(GROWTH_MAX)),
    },
    Ladder {
        name: "payload",
        unit: "bytes of payload",
        what: "symmetric, 20 to 20, QoS 0, 400 TPS",
        sizes: &[24, 1_024, 16_384, 131_072, 1_000_000],
        kind: |bytes| symmetric((20, 20), bytes, 200),
        has_floor: false,
        bound: None,
    },
    Ladder {
        name: "topics",
        unit: "topics",
        what: "20K publishes/s to 100 subscriptions with a wildcard",
        sizes: &[100, 10_000, 1_000_000],
        kind: |topics| routed(Routing::Covered, RoutedSizes { clients: 100, filters: 1, topics }),
        has_floor: false,
        bound: Some(Bound::AtMost(GROWTH_MAX)),
    },
    Ladder {
        name: "subscriptions",
        unit: "subscriptions",
        what: "20K publishes/s to 100 of the clients, exact filters, up to 10,000 topics",
        sizes: &[100, 10_000, 100_000, 1_000_000],
        kind: |subscriptions| {
            // No client has more than 1,000.
            let clients = (subscriptions / 1_000).max(100);
            let filters = subscriptions / clients;
            let topics = (100 * filters).min(10_000);
            routed(Routing::Exact, RoutedSizes { clients, filters, topics })
        },
        has_floor: false,
        bound: Some(Bound::AtMost(GROWTH_MAX)),
    },
];
/// Frames per second in.
const FLOOR_RATE: u64 = 10_000;

fn symmetric(clients: (usize, usize), bytes: usize, rate: u64) -> Kind {
    let vars = vec![
        ("qos", "0".to_owned()),
        ("publishers", clients.0.to_string()),
        ("subscribers", clients.1.to_string()),
        ("payload_size", bytes.to_string()),
        ("target_throughput", rate.to_string()),
        ("ramp_up", "5s".to_owned()),
        ("warmup", "2s".to_owned()),
    ];
    Kind::Load { subject: Subject::Tacho { shards: 1 }, load: Load { scenario: "symmetric", vars } }
}

fn routed(routing: Routing, sizes: RoutedSizes) -> Kind {
    Kind::Routing(RoutingCase { routing, sizes })
}

impl Ladder {
    fn case(&self, size: usize) -> String {
        format!("{}_{size}", self.name)
    }

    fn floor(&self, size: usize) -> String {
        format!("floor_{}", self.case(size))
    }

    /// What is compared: the cost of a message, where there is a floor as a share of it.
    fn cost(&self, size: usize, figures: &Figures) -> Option<f64> {
        let cost = figures.median(&self.case(size), CPU)?;
        if !self.has_floor {
            return Some(cost);
        }
        Some(cost / figures.median(&self.floor(size), CPU)?)
    }

    /// The cost at a size against that at the smallest.
    fn growth(&self, size: usize, figures: &Figures) -> Option<f64> {
        Some(self.cost(size, figures)? / self.cost(*self.sizes.first()?, figures)?)
    }
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for ladder in &LADDERS {
        for &size in ladder.sizes {
            let what = format!("{} {}: {}", grouped(size as f64), ladder.unit, ladder.what);
            if ladder.has_floor {
                let kind = Kind::Floor { rate: FLOOR_RATE, sockets: size };
                let what = format!("the echo floor of: {what}");
                cases.push(Case { name: ladder.floor(size), what, kind });
            }
            cases.push(Case { name: ladder.case(size), what, kind: (ladder.kind)(size) });
        }
    }
    cases
}

/// The largest size of each ladder.
pub(super) fn judge(figures: &Figures) -> Vec<Verdict> {
    let verdict = |ladder: &Ladder| {
        let (first, last) = (ladder.sizes.first()?, ladder.sizes.last()?);
        let above = if ladder.has_floor { ", each against the floor" } else { "" };
        let (most, unit) = (grouped(*last as f64), ladder.unit);
        let target =
            format!("a message at {most} {unit} against {}{above}", grouped(*first as f64));
        Some(Verdict::new(&target, ladder.growth(*last, figures), TIMES, ladder.bound))
    };
    LADDERS.iter().filter_map(verdict).collect()
}

/// A table of each ladder that was measured.
pub(super) fn tables(figures: &Figures) -> String {
    let mut text = String::new();
    let is_measured = |ladder: &&Ladder| {
        ladder.sizes.iter().any(|&size| figures.median(&ladder.case(size), CPU).is_some())
    };
    for ladder in LADDERS.iter().filter(is_measured) {
        let _ = writeln!(text, "{}:\n", ladder.what);
        let floor = if ladder.has_floor { " floor | against the floor |" } else { "" };
        let _ =
            writeln!(text, "| {} | us of broker CPU per message |{floor} growth |", ladder.unit);
        let _ = writeln!(text, "|---|---|---|{}", if ladder.has_floor { "---|---|" } else { "" });
        for &size in ladder.sizes {
            let cell = |value: Option<f64>| value.map(number).unwrap_or_default();
            let cost = cell(figures.median(&ladder.case(size), CPU));
            let _ = write!(text, "| {} | {cost} |", grouped(size as f64));
            if ladder.has_floor {
                let floor = cell(figures.median(&ladder.floor(size), CPU));
                let _ = write!(text, " {floor} | {} x |", cell(ladder.cost(size, figures)));
            }
            let _ = writeln!(text, " {} x |", cell(ladder.growth(size, figures)));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Sample;

    fn figures(cost_us: impl Fn(&str) -> f64) -> Figures {
        let mut figures = Figures::default();
        for case in all() {
            let mut sample = Sample::new(&case.name, 1);
            sample.set(CPU, Some(cost_us(&case.name)));
            figures.push(sample);
        }
        figures
    }

    #[test]
    fn a_cost_that_grows_with_the_size_is_above_its_bound() {
        let flat = judge(&figures(|_| 8.0));
        assert!(flat.iter().all(|verdict| verdict.passed != Some(false)));
        let steep = judge(&figures(|name| if name == "topics_1000000" { 20.0 } else { 8.0 }));
        let failed: Vec<&str> = steep
            .iter()
            .filter(|verdict| verdict.passed == Some(false))
            .map(|verdict| verdict.target.as_str())
            .collect();
        assert_eq!(failed, ["a message at 1,000,000 topics against 100"]);
    }

    #[test]
    fn clients_are_compared_by_what_they_cost_above_the_floor() {
        let both = |name: &str| if name.ends_with("clients_18000") { 24.0 } else { 8.0 };
        let (figures, ladder) = (figures(both), &LADDERS[0]);
        assert_eq!(ladder.growth(18_000, &figures), Some(1.0));
        assert!(tables(&figures).contains("| 18,000 | 24.0 | 24.0 | 1.00 x | 1.00 x |"));
        assert_eq!(tables(&Figures::default()), "", "nothing was measured");
    }

    #[test]
    fn as_many_subscriptions_are_made_as_the_ladder_says() {
        for &size in LADDERS[3].sizes {
            let Kind::Routing(RoutingCase { sizes, .. }) = (LADDERS[3].kind)(size) else {
                panic!("another kind");
            };
            assert_eq!(sizes.clients * sizes.filters, size);
            assert!(sizes.topics <= 100 * sizes.filters, "every topic has a receiver");
        }
    }
}
