//! Suites: all series of a published report, one after another.

use std::collections::BTreeSet;

use tacho_lab::calibration::Calibration;
use tacho_lab::campaign::{Subject, SuiteRow, first_feasible, run_suite};
use tacho_record::{Obstacle, RunKind};
use tacho_scenario::suite::Suite;
use tacho_scenario::{Limits, Scenario, Shortage};

use super::{HOLD, Opened};
use crate::estimates;
use crate::exit::{self, Failure};
use crate::run::{LoadArguments, OutputArguments, TargetArguments};

/// Runs the rows of `suite` that match `only`; the exit code is that of the worst row.
pub(crate) fn suite(
    suite: &Suite,
    only: &[String],
    load: &LoadArguments,
    targets: &TargetArguments,
    output: &OutputArguments,
) -> Result<u8, Failure> {
    let rows = rows(suite, only, load, targets)?;
    if rows.is_empty() {
        let names: Vec<&str> = suite.series.iter().map(|series| series.name.as_str()).collect();
        return Err(Failure::new(
            exit::INVALID_CONFIG,
            format!("--only matches nothing in {}; its series: {}", suite.name, names.join(", ")),
        ));
    }
    let first = first_feasible(rows.iter().map(|row| &row.scenario), "rows")?;
    let about = Subject::suite(suite);
    let mut campaign = Opened::begin(RunKind::Suite, about, &[(targets, first)], output)?;
    let finished = run_suite(campaign.driver(), &rows)?;
    campaign.end(finished)
}

/// The rows that match, each with its scenario or what this machine lacks for it.
fn rows<'s>(
    suite: &'s Suite,
    only: &[String],
    load: &LoadArguments,
    targets: &TargetArguments,
) -> Result<Vec<SuiteRow<'s>>, Failure> {
    let mut load = load.clone();
    load.adjust.hold = load.adjust.hold.or(Some(HOLD));
    let calibration = estimates::of_this_machine();
    let scale = load.adjust.adjustment().scale;
    let mut rows = Vec::new();
    let mut names = BTreeSet::new();
    for (series, point) in suite.select(only) {
        let scenario = load.feasible(&series.scenario, &point.vars, targets)?;
        names.extend(scenario.iter().flat_map(|scenario| scenario.targets.keys().cloned()));
        let scenario =
            scenario.and_then(|scenario| carried(scenario, targets, calibration.as_ref()));
        rows.push(SuiteRow { series, point, scale, scenario });
    }
    if rows.iter().any(|row| row.scenario.is_ok()) {
        targets.check(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    Ok(rows)
}

/// The scenario, where this machine's generator can be expected to carry it.
fn carried(
    scenario: Scenario,
    targets: &TargetArguments,
    calibration: Option<&Calibration>,
) -> Result<Scenario, Obstacle> {
    let targets = targets.narrowed(&scenario);
    let needs = tacho_lab::needs::estimate(&scenario, estimates::costs(calibration));
    let needs = needs.map_err(|error| Obstacle::Message(error.to_string()))?;
    let missing = targets.missing(&scenario);
    let some = !missing.is_empty() && missing.len() < scenario.targets_in_use().len();
    if needs.bridged && some {
        // Brokers that the run starts are bridged only to each other.
        let argument = |name: &String| format!("--broker {name}=mqtt://HOST:PORT");
        let arguments = missing.iter().map(argument).collect();
        return Err(Shortage::Bridge { arguments }.into());
    }
    match needs.shortage(&Limits::of_this_process(), !targets.names_a_broker()) {
        // An estimate names its basis.
        Some(shortage @ Shortage::Cores { .. }) => {
            let rates = Some(estimates::rates(calibration));
            Err(Obstacle::Lacks { shortage, rates })
        }
        Some(shortage) => Err(shortage.into()),
        None => Ok(scenario),
    }
}
