//! Suites: all series of a published report, one after another.

use std::collections::BTreeSet;

use tacho_lab::calibration::Calibration;
use tacho_lab::campaign::Place;
use tacho_record::{RunKind, Series};
use tacho_scenario::steps::{number, unit_of};
use tacho_scenario::suite::{Suite, SuitePoint, SuiteSeries};
use tacho_scenario::{Limits, Scenario, Shortage};

use super::driver::{Driver, Step};
use super::ladder::HOLD;
use crate::estimates;
use crate::exit::{self, Failure};
use crate::run::{LoadArguments, OutputArguments, TargetArguments};

/// CPU in percent at which workloads are recommended, as the guide has it.
const RECOMMEND_AT: f64 = 75.0;

/// Runs the rows of `suite` that match `only`; the exit code is that of the worst row.
pub(crate) fn suite(
    suite: &Suite,
    only: &[String],
    load: &LoadArguments,
    targets: &TargetArguments,
    output: &OutputArguments,
) -> Result<u8, Failure> {
    let mut load = load.clone();
    load.adjust.hold = load.adjust.hold.or(Some(HOLD));
    let calibration = estimates::of_this_machine();
    let mut rows = Vec::new();
    let mut names = BTreeSet::new();
    for series in &suite.series {
        for point in series.points.iter().filter(|point| wanted(only, series, point)) {
            let scenario = load.feasible(&series.scenario, &point.vars, targets)?;
            names.extend(scenario.iter().flat_map(|scenario| scenario.targets.keys().cloned()));
            let scenario =
                scenario.and_then(|scenario| carried(scenario, targets, calibration.as_ref()));
            rows.push(Row { series, point, scenario });
        }
    }
    if rows.is_empty() {
        let names: Vec<&str> = suite.series.iter().map(|series| series.name.as_str()).collect();
        return Err(Failure::new(
            exit::INVALID_CONFIG,
            format!("--only matches nothing in {}; its series: {}", suite.name, names.join(", ")),
        ));
    }
    let Some(first) = rows.iter().find_map(|row| row.scenario.as_ref().ok()) else {
        let why = rows.first().and_then(|row| row.scenario.as_ref().err());
        let why = why.map_or("", String::as_str);
        return Err(Failure::new(
            exit::INVALID_CONFIG,
            format!("this machine can run none of the rows; the first {why}"),
        ));
    };
    targets.check(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let about = (suite.name, suite.description);
    let mut driver = Driver::begin(RunKind::Suite, about, targets, output, first)?;
    let count = rows.len();
    let mut before: Option<&str> = None;
    let mut done = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        if driver.setting.is_stopped() {
            break;
        }
        let name = row.series.name.as_str();
        if before != Some(name) {
            // Every series has a fresh broker, where the run starts them.
            driver.forgive();
            driver.campaign.series(about_series(row.series));
            before = Some(name);
        }
        // Figures share runs: a point measured for one appears in the other too.
        let key = (row.series.scenario.as_str(), row.point.vars.as_slice());
        let known = done.iter().find(|(known, _)| *known == key);
        if let Some((_, position)) = known {
            driver.campaign.share(name, *position);
        } else if let Some(position) = row.run(&mut driver, (index, count))? {
            done.push((key, position));
        }
    }
    driver.campaign.recommend(RECOMMEND_AT);
    driver.finish(None)
}

/// The scenario, where this machine's generator can be expected to carry it.
fn carried(
    scenario: Scenario,
    targets: &TargetArguments,
    calibration: Option<&Calibration>,
) -> Result<Scenario, String> {
    let targets = targets.narrowed(&scenario);
    let needs = tacho_lab::needs::estimate(&scenario, estimates::costs(calibration));
    let needs = needs.map_err(|error| error.to_string())?;
    let missing = targets.missing(&scenario);
    let some = !missing.is_empty() && missing.len() < scenario.targets_in_use().len();
    if needs.bridged && some {
        // Brokers that the run starts are bridged only to each other.
        let argument = |name: &String| format!("--broker {name}=mqtt://HOST:PORT");
        let arguments = missing.iter().map(argument).collect();
        return Err(Shortage::Bridge { arguments }.to_string());
    }
    match needs.shortage(&Limits::of_this_process(), !targets.names_a_broker()) {
        // An estimate says what it rests on.
        Some(shortage @ Shortage::Cores { .. }) => {
            Err(format!("{shortage} (rates per core: {})", estimates::source(calibration)))
        }
        Some(shortage) => Err(shortage.to_string()),
        None => Ok(scenario),
    }
}

/// One run of a suite.
struct Row<'a> {
    series: &'a SuiteSeries,
    point: &'a SuitePoint,
    /// What this machine lacks for it, where it cannot run.
    scenario: Result<Scenario, String>,
}

impl Row<'_> {
    /// Runs it; returns the position of its step, if one was measured.
    fn run(
        &self,
        driver: &mut Driver<'_>,
        (index, count): (usize, usize),
    ) -> Result<Option<usize>, Failure> {
        let (series, point) = (self.series, self.point);
        let label = match series.label == point.label {
            true => point.label.clone(),
            false => format!("{}, {}", series.label, point.label),
        };
        let title = format!("row {} of {count}: {label}", index + 1);
        let scenario = match &self.scenario {
            Ok(scenario) if !driver.is_over() => scenario.clone(),
            other => {
                let gone = "its series ended before it: the broker is gone";
                let reason = other.as_ref().err().map_or(gone, String::as_str);
                driver.say(&format!("{title}: skipped: {reason}"));
                driver.campaign.skip(&series.name, &point.label, reason);
                return Ok(None);
            }
        };
        let rung = series.points.iter().position(|known| known == point).unwrap_or(index);
        let value = series.variable.as_ref().and_then(|variable| {
            point.vars.iter().find(|(name, _)| name == variable).map(|(_, value)| value)
        });
        let place = Place {
            series: series.name.clone(),
            rung,
            label: match series.points.len() {
                1 => series.label.clone(),
                _ => point.label.clone(),
            },
            x: value.and_then(|value| number(value)),
            counts: true,
            ..Place::default()
        };
        let Some((outcome, position)) = driver.run(Step { scenario, place, title })? else {
            return Ok(None);
        };
        driver.blame(&outcome);
        Ok(position)
    }
}

fn about_series(series: &SuiteSeries) -> Series {
    Series {
        name: series.name.clone(),
        label: series.label.clone(),
        figure: series.figure.clone(),
        scenario: series.scenario.clone(),
        variable: series.variable.clone(),
        unit: series.variable.as_deref().map_or("", unit_of).to_owned(),
        steps: Vec::new(),
        published: series.published.clone(),
    }
}

/// Whether one of the patterns (or none at all) names the series or the point.
fn wanted(only: &[String], series: &SuiteSeries, point: &SuitePoint) -> bool {
    let path = format!("{}/{}", series.name, point.label);
    let names = [&series.name, &series.label, &series.scenario, &point.label, &path];
    only.is_empty() || only.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
}

/// Without a `*` a pattern may stand anywhere in the text; with one it must fit the whole, each
/// `*` standing for anything. Case does not matter.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(first) = parts.next().filter(|first| first.len() < pattern.len()) else {
        return text.contains(&pattern);
    };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("qos1", "1k_1k_qos1_p32_50mps", true),
            ("QoS1", "1k_1k_qos1_p32_50mps", true),
            ("qos3", "1k_1k_qos1_p32_50mps", false),
            ("1k_*_p32_*", "1k_1k_qos1_p32_50mps", true),
            ("1k_*_p64_*", "1k_1k_qos1_p32_50mps", false),
            ("*50mps", "1k_1k_qos1_p32_50mps", true),
            ("1k*", "2k_1k", false),
            ("a*a", "a", false),
            ("a*a", "aba", true),
            ("*", "anything", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
