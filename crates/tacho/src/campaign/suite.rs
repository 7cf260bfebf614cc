//! Suites: all series of a published report, one after another.

use std::collections::BTreeSet;

use tacho_lab::campaign::{Subject, SuiteRow, first_feasible, run_suite};
use tacho_record::{Obstacle, RunKind};
use tacho_report::Lang;
use tacho_scenario::suite::{Misprint, Suite};
use tacho_scenario::{Scenario, Shortage};

use super::{HOLD, Opened};
use crate::exit::{self, Failure};
use crate::run::{Fitting, LoadArguments, OutputArguments, TargetArguments};
use crate::scenario::failure;

/// Runs the rows of `suite` that match `only`; the exit code is that of the worst row.
pub(crate) fn suite(
    suite: &Suite,
    only: &[String],
    load: &LoadArguments,
    targets: &TargetArguments,
    output: &OutputArguments,
) -> Result<u8, Failure> {
    let rows = some_rows(suite, only, load, targets)?;
    let first = first_feasible(rows.iter().map(|row| &row.scenario), "rows")?;
    if !output.quiet {
        tell_misprints(only);
        tell_what_is_left_out(&rows);
    }
    let about = Subject::suite(suite);
    let mut campaign = Opened::begin(RunKind::Suite, about, &[(targets, first)], output)?;
    let finished = run_suite(campaign.driver(), &rows)?;
    campaign.end(finished)
}

/// The scenario of the first row that this machine can run.
pub(crate) fn first_of_suite(
    suite: &Suite,
    only: &[String],
    load: &LoadArguments,
    targets: &TargetArguments,
) -> Result<Scenario, Failure> {
    let rows = some_rows(suite, only, load, targets)?;
    Ok(first_feasible(rows.iter().map(|row| &row.scenario), "rows")?.clone())
}

/// The rows that match, at least one.
fn some_rows<'s>(
    suite: &'s Suite,
    only: &[String],
    load: &LoadArguments,
    targets: &TargetArguments,
) -> Result<Vec<SuiteRow<'s>>, Failure> {
    let rows = rows(suite, only, load, targets)?;
    if rows.is_empty() {
        let names: Vec<&str> = suite.series.iter().map(|series| series.name.as_str()).collect();
        return Err(Failure::new(
            exit::INVALID_CONFIG,
            format!("--only matches nothing in {}; its series: {}", suite.name, names.join(", ")),
        ));
    }
    Ok(rows)
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
    let fitting = Fitting::new(&load, targets)?;
    let scale = load.adjust.adjustment().scale;
    let mut rows = Vec::new();
    let mut names = BTreeSet::new();
    for (series, point) in suite.select(only) {
        let scenario = fitting.scenario(&series.scenario, &point.vars);
        let scenario = scenario.map_err(|error| failure(&error))?;
        let in_use = scenario.iter().flat_map(Scenario::targets_in_use);
        names.extend(in_use.map(|(name, _)| name.to_owned()));
        let scenario = scenario.and_then(|scenario| bridged(scenario, targets));
        rows.push(SuiteRow { series, point, scale, scenario });
    }
    if rows.iter().any(|row| row.scenario.is_ok()) {
        targets.check(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    Ok(rows)
}

/// The scenario, unless only some of its brokers are named although they must be bridged: those
/// that the run starts are bridged only to each other.
fn bridged(scenario: Scenario, targets: &TargetArguments) -> Result<Scenario, Obstacle> {
    let missing = targets.narrowed(&scenario).missing(&scenario);
    let some = !missing.is_empty() && missing.len() < scenario.targets_in_use().len();
    if scenario.bridges.is_empty() || !some {
        return Ok(scenario);
    }
    let argument = |name: &String| format!("--broker {name}=mqtt://HOST:PORT");
    Err(Shortage::Bridge { arguments: missing.iter().map(argument).collect() }.into())
}

/// Tells on standard error which patterns are names that a report misprints.
fn tell_misprints(only: &[String]) {
    for misprint in only.iter().filter_map(|pattern| Misprint::of(pattern)) {
        eprintln!("note: {}: the row runs under that name", Lang::En.misprint(misprint));
    }
}

/// Tells on standard error, before anything is started, which part of the rows does not fit.
fn tell_what_is_left_out(rows: &[SuiteRow<'_>]) {
    let obstacles: Vec<&Obstacle> =
        rows.iter().filter_map(|row| row.scenario.as_ref().err()).collect();
    if let Some(all) = Obstacle::greatest(obstacles.iter().copied()) {
        let (left_out, of, lacks) = (obstacles.len(), rows.len(), Lang::En.obstacle(&all));
        eprintln!("note: {left_out} of {of} rows are skipped; the largest of them {lacks}");
    }
}
