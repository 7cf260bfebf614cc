//! Suites: many runs under one name, as published reports have them.

use serde::Serialize;

use super::error::closest;
use crate::pattern::matches;
use crate::published::{self, BifromqRow};
use crate::quantity::TimeSpan;

/// The names of all suites.
pub const SUITES: [&str; 2] = ["guide", "bifromq"];

/// A published report as a sequence of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suite {
    /// The name to run it by.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// The same in Chinese.
    pub description_zh: &'static str,
    /// Its curves and rows, in the order of the report.
    pub series: Vec<SuiteSeries>,
}

/// One curve of a figure, or one row of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuiteSeries {
    /// Short name, unique within the suite.
    pub name: String,
    /// For people.
    pub label: String,
    /// Series with the same figure are overlaid in one chart.
    pub figure: String,
    /// A built-in scenario, or a name of the grammar.
    pub scenario: String,
    /// The stepped variable; `None` for a single row.
    pub variable: Option<String>,
    /// Its runs, in order.
    pub points: Vec<SuitePoint>,
    /// Under which name the published results of this series are kept.
    pub published: Option<String>,
}

/// One run of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuitePoint {
    /// For people, unique within the series.
    pub label: String,
    /// Values of the scenario's variables.
    pub vars: Vec<(String, String)>,
}

/// How long a report held its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsPublished {
    /// Length of the measured phase.
    pub hold: TimeSpan,
    /// Within this time all clients of a group connect.
    pub ramp_up: TimeSpan,
}

/// A name that the BifroMQ report prints for a row whose own columns say otherwise.
#[derive(Debug, PartialEq, Eq)]
pub struct Misprint {
    /// As printed, without prefixes.
    pub printed: &'static str,
    /// The name of the row by its columns.
    pub meant: &'static str,
}

impl Misprint {
    const ALL: [Self; 1] =
        [Self { printed: "1.2k_1.2k_qos2_p32_50mps", meant: "1.2k_1.2k_qos2_p32_100mps" }];

    /// The misprint that `name` is, with or without the prefixes of its grammar.
    pub fn of(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|misprint| is_row(name, misprint.printed))
    }

    /// The misprint of the row `name`, with or without prefixes.
    pub fn of_row(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|misprint| is_row(name, misprint.meant))
    }

    /// The row of the report.
    pub fn row(&self) -> Option<&'static BifromqRow> {
        published::bifromq_row(self.meant)
    }
}

/// Is `name` the one of a row of the BifroMQ report with nothing but prefixes in front?
fn is_row(name: &str, row: &str) -> bool {
    name.strip_suffix(row).is_some_and(|prefix| matches!(prefix, "" | "true_"))
}

/// The row of the BifroMQ report with this name, as it is or as the report misprints it.
pub fn published_row(name: &str) -> Option<&'static BifromqRow> {
    published::bifromq_row(name).or_else(|| Misprint::of(name)?.row())
}

impl Suite {
    /// How long the report held its rows, where it says so.
    pub fn as_published(&self) -> Option<AsPublished> {
        (self.name == "guide").then_some(AsPublished {
            hold: published::GUIDE_HOLD,
            ramp_up: published::GUIDE_RAMP_UP,
        })
    }

    /// The suite called `name`.
    pub fn find(name: &str) -> Option<Self> {
        match name {
            "guide" => Some(guide()),
            "bifromq" => Some(bifromq()),
            _ => None,
        }
    }

    /// The suite whose name `typed` most resembles, if it is a slip.
    pub fn closest(typed: &str) -> Option<&'static str> {
        closest(typed, SUITES)
    }

    /// The points that one of the patterns names, or all of them without any.
    pub fn select(&self, only: &[String]) -> impl Iterator<Item = (&SuiteSeries, &SuitePoint)> {
        let points = |series| move |point| (series, point);
        self.series
            .iter()
            .flat_map(move |series| series.points.iter().map(points(series)))
            .filter(|(series, point)| is_selected(only, series, point))
    }

    /// How many runs it has; equal ones of different series count once.
    pub fn run_count(&self) -> usize {
        let mut runs: Vec<(&str, &[(String, String)])> = self
            .series
            .iter()
            .flat_map(|series| {
                series.points.iter().map(|point| (series.scenario.as_str(), point.vars.as_slice()))
            })
            .collect();
        runs.sort_unstable();
        runs.dedup();
        runs.len()
    }
}

/// Does one of the patterns (or none at all) name the series or the point?
fn is_selected(only: &[String], series: &SuiteSeries, point: &SuitePoint) -> bool {
    let path = format!("{}/{}", series.name, point.label);
    let names = [&series.name, &series.label, &series.scenario, &point.label, &path];
    let is_named = |pattern: &str| names.iter().any(|name| matches(pattern, name));
    let is_misprinted = |pattern: &str| Misprint::of(pattern).is_some_and(|it| is_named(it.meant));
    only.is_empty()
        || only.iter().any(|pattern| {
            is_named(pattern) || is_named(&session_first(pattern)) || is_misprinted(pattern)
        })
}

/// The same pattern with the prefixes of the grammar in the order of our names.
fn session_first(pattern: &str) -> String {
    let swapped = ["true_", "false_"].into_iter().find_map(|session| {
        let rest = pattern.strip_prefix("share_")?.strip_prefix(session)?;
        Some(format!("{session}share_{rest}"))
    });
    swapped.unwrap_or_else(|| pattern.to_owned())
}

/// The four tests of the EMQX guide.
fn guide() -> Suite {
    Suite {
        name: "guide",
        description: "The EMQX guide: QoS 0, 1 and 2, payload 128 B to 8 KiB, models, bridge.",
        description_zh: "EMQX 指南：QoS 0、1、2，载荷 128 B 至 8 KiB，各种模型，桥接。",
        series: vec![
            ladder("qos0", "QoS 0", "qos", &RateLadder::symmetric("0", 6), "symmetric-qos0"),
            ladder("qos1", "QoS 1", "qos", &RateLadder::symmetric("1", 5), "symmetric-qos1"),
            ladder("qos2", "QoS 2", "qos", &RateLadder::symmetric("2", 3), "symmetric-qos2"),
            payload(),
            ladder(
                "symmetric",
                "symmetric",
                "models",
                &RateLadder::symmetric("1", 5),
                "symmetric-qos1",
            ),
            ladder("fan-in", "fan-in", "models", &RateLadder::named("fan-in", 5000, 5), "fan-in"),
            // 50 in, and 200 times as many out: 10,050 in and out.
            ladder("fan-out", "fan-out", "models", &RateLadder::named("fan-out", 50, 6), "fan-out"),
            ladder(
                "no-bridge",
                "no bridge",
                "bridge",
                &RateLadder::symmetric("1", 5),
                "symmetric-qos1",
            ),
            // In each direction; a message counts four times, twice at each broker.
            ladder("bridge", "bridge", "bridge", &RateLadder::named("bridge", 2500, 3), "bridge"),
        ],
    }
}

/// A scenario whose publish rate is stepped.
struct RateLadder {
    scenario: &'static str,
    vars: Vec<(&'static str, &'static str)>,
    /// Publishes per second that make 10K TPS.
    step: u32,
    steps: u32,
}

impl RateLadder {
    fn symmetric(qos: &'static str, steps: u32) -> Self {
        Self { scenario: "symmetric", vars: vec![("qos", qos)], step: 5000, steps }
    }

    fn named(scenario: &'static str, step: u32, steps: u32) -> Self {
        Self { scenario, vars: vec![("qos", "1")], step, steps }
    }
}

/// 10K, 20K, ... TPS.
fn ladder(
    name: &str,
    label: &str,
    figure: &str,
    model: &RateLadder,
    published: &str,
) -> SuiteSeries {
    let point = |step: u32| {
        let rate = ("target_throughput", (step * model.step).to_string());
        let vars = model.vars.iter().map(|(name, value)| (*name, (*value).to_owned()));
        SuitePoint {
            label: format!("{step}0K"),
            vars: vars.chain([rate]).map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    };
    SuiteSeries {
        name: name.to_owned(),
        label: label.to_owned(),
        figure: figure.to_owned(),
        scenario: model.scenario.to_owned(),
        variable: Some("target_throughput".to_owned()),
        points: (1..=model.steps).map(point).collect(),
        published: Some(published.to_owned()),
    }
}

/// Growing payloads at 20K messages per second in.
fn payload() -> SuiteSeries {
    let point = |bytes: u32| SuitePoint {
        label: format!("{bytes}B"),
        vars: [("qos", 1), ("target_throughput", 20_000), ("payload_size", bytes)]
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .to_vec(),
    };
    SuiteSeries {
        name: "payload".to_owned(),
        label: "payload at 40K TPS, QoS 1".to_owned(),
        figure: "payload".to_owned(),
        scenario: "symmetric".to_owned(),
        variable: Some("payload_size".to_owned()),
        points: [128, 1024, 2048, 4096, 6144, 8192].map(point).to_vec(),
        published: Some("symmetric-payload".to_owned()),
    }
}

/// All rows of the BifroMQ report.
fn bifromq() -> Suite {
    let row = |row: &published::BifromqRow| {
        let name = row.full_name();
        let kind = match (row.clean_session, row.shared, row.subscribers > row.publishers) {
            (_, true, _) => "shared",
            (_, _, true) => "fan-out",
            (true, ..) => "clean sessions",
            (false, ..) => "persistent sessions",
        };
        SuiteSeries {
            label: name.clone(),
            figure: kind.to_owned(),
            scenario: name.clone(),
            variable: None,
            points: vec![SuitePoint { label: name.clone(), vars: Vec::new() }],
            published: Some(name.clone()),
            name,
        }
    };
    Suite {
        name: "bifromq",
        description: "The BifroMQ report, row by row.",
        description_zh: "BifroMQ 报告，逐行重现。",
        series: published::bifromq().iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Adjustment, Limits, Scenario};

    #[test]
    fn every_run_of_every_suite_is_a_scenario() {
        for name in SUITES {
            let suite = Suite::find(name).expect(name);
            assert_eq!(suite.name, name);
            let names: BTreeSet<_> = suite.series.iter().map(|series| &series.name).collect();
            assert_eq!(names.len(), suite.series.len(), "names are unique");
            for series in &suite.series {
                for point in &series.points {
                    let (vars, none) = (&point.vars, Adjustment::NONE);
                    let scenario = Scenario::load(&series.scenario, vars, &none, Limits::NONE)
                        .unwrap_or_else(|error| panic!("{} {}: {error}", series.name, point.label));
                    let variable = series.variable.as_ref();
                    assert!(variable.is_none_or(|name| scenario.vars.contains_key(name)));
                }
            }
        }
        assert!(Suite::find("guides").is_none());
        assert_eq!(Suite::closest("guides"), Some("guide"));
    }

    #[test]
    fn a_misprinted_name_finds_its_row() {
        let printed = "1.2k_1.2k_qos2_p32_50mps";
        for name in [printed.to_owned(), format!("true_{printed}")] {
            let only = [name.clone()];
            let suite = bifromq();
            let found: Vec<&str> =
                suite.select(&only).map(|(series, _)| series.scenario.as_str()).collect();
            assert_eq!(found, ["true_1.2k_1.2k_qos2_p32_100mps"], "{name}");
            let row = published_row(&name).expect("a row");
            assert_eq!((row.per_publisher_per_s, row.in_per_s), (100.0, 120_000.0));
        }
        // Persistent sessions would be another row, which the report does not have.
        assert_eq!(bifromq().select(&[format!("false_{printed}")]).count(), 0);
        assert_eq!(published_row(&format!("false_{printed}")), None);
        let misprint = Misprint::of(printed).expect("one");
        assert_eq!(Misprint::of_row("true_1.2k_1.2k_qos2_p32_100mps"), Some(misprint));
        assert_eq!(Misprint::of("1k_1k_qos0_p1024_50mps"), None);
        assert!(misprint.row().is_some());
    }

    #[test]
    fn the_guide_says_how_long_it_held_its_steps() {
        let held = guide().as_published().expect("it does");
        assert_eq!(
            (held.hold.to_string(), held.ramp_up.to_string()),
            ("300s".into(), "20s".into())
        );
        assert_eq!(published::GUIDE.hold, Some(held.hold));
        assert_eq!((bifromq().as_published(), published::BIFROMQ.hold), (None, None));
    }

    #[test]
    fn runs_of_several_series_count_once() {
        assert_eq!(bifromq().run_count(), 62);
        // QoS 1 is drawn in three figures.
        let points: usize = guide().series.iter().map(|series| series.points.len()).sum();
        assert_eq!(guide().run_count(), points - 10);
    }
}
