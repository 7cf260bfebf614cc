//! Which rows there are, in which order, and where a ladder ends.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::row::{CPU_FULL, GENERATOR_BUSY, Row};
use crate::shell;

/// CPU at which workloads are recommended: beyond the published steps a ladder climbs up to here.
const CPU_RECOMMENDED: f64 = 75.0;

/// Largest ratio of the steps of a ladder to the published steps.
const FURTHER_TIMES: usize = 2;

/// A suite as `tacho scenario show --json` tells it.
#[derive(Debug, Deserialize)]
pub(super) struct Suite {
    pub(super) series: Vec<Series>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) scenario: String,
    pub(super) variable: Option<String>,
    pub(super) points: Vec<Point>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Point {
    pub(super) label: String,
    pub(super) vars: Vec<(String, String)>,
    pub(super) needs: Needs,
    /// What this machine lacks for it.
    pub(super) lacks: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Needs {
    pub(super) clients: u64,
    pub(super) in_per_s: f64,
    pub(super) out_per_s: f64,
    pub(super) bridged: bool,
}

impl Suite {
    /// Asks the program.
    pub(super) fn ask(tacho: &Path, name: &str) -> Result<Self> {
        let mut command = shell::command(tacho);
        let text = shell::output(command.args(["scenario", "show", name, "--json"]))?;
        let mut suite: Self = serde_json::from_str(&text).context("an odd suite")?;
        suite.merge();
        Ok(suite)
    }

    /// Figures share runs: what stood in an earlier series is not run again in a later one.
    fn merge(&mut self) {
        let mut seen: Vec<(String, Vec<(String, String)>)> = Vec::new();
        for series in &mut self.series {
            let scenario = series.scenario.clone();
            series.points.retain(|point| {
                let run = (scenario.clone(), sorted(&point.vars));
                // A payload of 128 bytes is the default, said or not.
                let fresh = !seen.contains(&run);
                if fresh {
                    seen.push(run);
                }
                fresh
            });
        }
        self.series.retain(|series| !series.points.is_empty());
    }
}

fn sorted(vars: &[(String, String)]) -> Vec<(String, String)> {
    let default = ("payload_size".to_owned(), "128".to_owned());
    let mut vars: Vec<_> = vars.iter().filter(|var| **var != default).cloned().collect();
    vars.sort();
    vars
}

impl Series {
    /// Rates are stepped: a broker that gets to the end with CPU left may go on.
    pub(super) fn is_ladder(&self) -> bool {
        self.variable.as_deref() == Some("target_throughput")
    }

    /// How many steps there can be.
    pub(super) fn steps_max(&self) -> usize {
        if self.is_ladder() { self.points.len() * FURTHER_TIMES } else { self.points.len() }
    }

    /// The step at `index`; behind the published ones the same distance goes on.
    pub(super) fn step(&self, index: usize) -> Option<Point> {
        if let Some(point) = self.points.get(index) {
            return Some(point.clone());
        }
        let first = self.points.first().filter(|_| index < self.steps_max())?;
        let times = index + 1;
        let vars = first.vars.iter().map(|(name, value)| {
            let further = || Some((value.parse::<u64>().ok()? * times as u64).to_string());
            match Some(name) == self.variable.as_ref() {
                true => Some((name.clone(), further()?)),
                false => Some((name.clone(), value.clone())),
            }
        });
        Some(Point {
            label: format!("{times}0K"),
            vars: vars.collect::<Option<_>>()?,
            needs: Needs {
                in_per_s: first.needs.in_per_s * times as f64,
                out_per_s: first.needs.out_per_s * times as f64,
                ..first.needs
            },
            lacks: None,
        })
    }
}

/// Where each broker stands in each ladder.
#[derive(Debug, Default)]
pub(super) struct Ladders {
    over: BTreeMap<(String, String), &'static str>,
    crossed: BTreeMap<(String, String), bool>,
}

impl Ladders {
    /// Why the broker does not take the step at `index`, if so.
    pub(super) fn over(&self, broker: &str, series: &Series, index: usize) -> Option<&'static str> {
        let key = (broker.to_owned(), series.name.clone());
        let further = index >= series.points.len();
        let crossed = self.crossed.get(&key).copied().unwrap_or(false);
        let ended = self.over.get(&key).copied();
        ended.or_else(|| (further && crossed).then_some("it has crossed 75 %"))
    }

    /// What a row says about those after it.
    pub(super) fn note(&mut self, series: &Series, row: &Row) {
        if series.points.len() < 2 {
            return;
        }
        let key = (row.broker.clone(), row.series.clone());
        let cpu = row.cpu_percent().unwrap_or(0.0);
        if cpu >= CPU_RECOMMENDED {
            self.crossed.insert(key.clone(), true);
        }
        let end = match row.verdict.as_str() {
            "ok" | "not_steady" | "generator_bound" | "disturbed" => None,
            _ => Some("its ladder ended below"),
        };
        let end = end.or_else(|| (cpu >= CPU_FULL).then_some("its core was full below"));
        let busy = || row.fails(GENERATOR_BUSY).then_some("the generator's core was full below");
        let end = end.or_else(busy);
        if let Some(why) = end {
            self.over.insert(key, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn series() -> Series {
        let point = |label: &str, rate: u32| Point {
            label: label.to_owned(),
            vars: vec![
                ("qos".to_owned(), "1".to_owned()),
                ("target_throughput".to_owned(), rate.to_string()),
            ],
            needs: Needs { in_per_s: f64::from(rate), ..Needs::default() },
            lacks: None,
        };
        Series {
            name: "qos1".to_owned(),
            scenario: "symmetric".to_owned(),
            variable: Some("target_throughput".to_owned()),
            points: vec![point("10K", 5000), point("20K", 10_000)],
        }
    }

    fn row(verdict: &str, cpu: f64, busy: bool) -> Row {
        let gates = json!([{ "name": GENERATOR_BUSY, "passed": !busy }]);
        Row {
            broker: "b".to_owned(),
            series: "qos1".to_owned(),
            verdict: verdict.to_owned(),
            step: Some(json!({ "broker_cpu_percent": cpu, "gates": gates })),
            ..Row::default()
        }
    }

    #[test]
    fn steps_go_on_behind_the_published_ones() {
        let series = series();
        let third = series.step(2).expect("goes on");
        assert_eq!(third.label, "30K");
        assert_eq!(third.vars[1].1, "15000");
        assert_eq!(third.vars[0].1, "1");
        assert!((third.needs.in_per_s - 15_000.0).abs() < 1e-9);
        assert!(series.step(3).is_some() && series.step(4).is_none());
    }

    #[test]
    fn a_ladder_ends_where_nothing_is_left() {
        let series = series();
        for (verdict, cpu, busy, ends) in [
            ("ok", 60.0, false, false),
            ("generator_bound", 60.0, false, false),
            ("not_sustained", 60.0, false, true),
            ("qos_violation", 60.0, false, true),
            ("ok", 92.0, false, true),
            ("generator_bound", 60.0, true, true),
        ] {
            let mut ladders = Ladders::default();
            assert_eq!(ladders.over("b", &series, 1), None);
            ladders.note(&series, &row(verdict, cpu, busy));
            assert_eq!(ladders.over("b", &series, 1).is_some(), ends, "{verdict} {cpu} {busy}");
            assert_eq!(ladders.over("other", &series, 1), None);
        }
    }

    #[test]
    fn beyond_the_published_steps_a_ladder_ends_at_the_recommended_load() {
        let (series, mut ladders) = (series(), Ladders::default());
        ladders.note(&series, &row("ok", 70.0, false));
        assert_eq!(ladders.over("b", &series, 2), None);
        ladders.note(&series, &row("ok", 76.0, false));
        assert_eq!(ladders.over("b", &series, 1), None);
        assert!(ladders.over("b", &series, 2).is_some());
    }

    #[test]
    fn runs_of_several_series_are_made_once() {
        let mut again = series();
        again.name = "payload".to_owned();
        again.points.truncate(1);
        again.points[0].vars.push(("payload_size".to_owned(), "128".to_owned()));
        let mut suite = Suite { series: vec![series(), again] };
        suite.merge();
        assert_eq!(suite.series.len(), 1);
    }
}
