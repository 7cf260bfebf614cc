//! The result of a capacity search: an interval, and the trials that lead to it.

use super::axis::Unit;
use super::chart::{Axis, Chart, Line, Mark, Marker, Style, from_zero};
use super::grid::{Cell, Grid};
use super::lang::Lang;
use super::steps_table::report_of;
use tacho_record::{Capacity, RunRecord, TrialOutcome};
use tacho_scenario::format::{latency, percent, rate};

/// The result as a sentence.
pub(super) fn sentence(lang: Lang, capacity: &Capacity) -> String {
    let unit = if capacity.unit.is_empty() { String::new() } else { format!(" {}", capacity.unit) };
    let shown = |value: f64| format!("{}{unit}", Unit::Number.show(value));
    let bound =
        lang.bound(capacity.lowest_fail.map(shown), capacity.lowest_generator_bound.map(shown));
    let objectives = capacity.objectives.join(", ");
    match capacity.highest_pass {
        Some(pass) => lang.highest_load(
            (&lang.variable(&capacity.variable), &objectives, &shown(pass)),
            capacity.tps.map(rate),
            &bound,
            (capacity.confirmed, capacity.confirm),
        ),
        None => lang.no_load_met(&objectives, &bound),
    }
}

/// The trials in order.
pub(super) fn chart(lang: Lang, capacity: &Capacity) -> Chart {
    let of = |name: &str, colour, marker, outcome| {
        let trials = capacity.trials.iter().enumerate();
        let points = trials
            .filter(|(_, trial)| trial.outcome == outcome)
            .map(|(index, trial)| (index as f64 + 1.0, Some(trial.value)))
            .collect();
        Line { marker, ..Line::plain(name, colour, points).style(Style::None) }
    };
    let all = capacity.trials.iter().enumerate();
    let path = all.map(|(index, trial)| (index as f64 + 1.0, Some(trial.value))).collect();
    let mut lines = vec![
        Line::plain(lang.order_of_trials(), 1, path).style(Style::Reference),
        of(lang.met_all_objectives(), 3, Marker::Dot, TrialOutcome::Pass),
        of(lang.missed_one(), 2, Marker::Cross, TrialOutcome::Fail),
        of(lang.generator_bound(), 6, Marker::Hollow, TrialOutcome::GeneratorBound),
        of(lang.disturbed(), 7, Marker::Hollow, TrialOutcome::Disturbed),
    ];
    lines.retain(|line| !line.is_empty());
    let y = from_zero(&lang.variable(&capacity.variable), Unit::Number, &lines);
    let x = Axis {
        title: lang.trial().to_owned(),
        scale: super::axis::Scale::exactly(0.0, capacity.trials.len() as f64 + 1.0, Unit::Number),
        unit: Unit::Number,
    };
    let mark = |value: Option<f64>, name: &str| {
        value.map(|y| Mark { y, x: None, name: name.to_owned(), colour: 0 })
    };
    let marks = [
        mark(capacity.highest_pass, lang.highest_pass()),
        mark(capacity.lowest_fail, lang.lowest_fail()),
    ];
    Chart {
        wide: true,
        marks: marks.into_iter().flatten().collect(),
        ..Chart::new(lang.trials_of_the_search(), x, y, lines)
    }
}

/// The trials as a table.
pub(super) fn table(lang: Lang, record: &RunRecord, capacity: &Capacity) -> Grid {
    let mut grid = Grid::new(&[
        lang.trial(),
        lang.purpose(),
        lang.value(),
        lang.length(),
        lang.tps_in_out(),
        "CPU",
        lang.avg(),
        "p99",
        lang.outcome(),
        lang.why(),
    ]);
    for (index, trial) in capacity.trials.iter().enumerate() {
        let step = trial.step.and_then(|step| record.steps.get(step));
        let figure = |pick: &dyn Fn(&tacho_record::Step) -> Option<String>| {
            Cell::or_dash(step.and_then(pick))
        };
        let outcome = match trial.outcome {
            TrialOutcome::Pass => lang.pass(),
            TrialOutcome::Fail => lang.fail(),
            TrialOutcome::GeneratorBound => lang.generator_bound(),
            TrialOutcome::Disturbed => lang.disturbed(),
        };
        let reasons = lang.reasons(&trial.reasons, &trial.causes);
        let number = (index + 1).to_string();
        grid.row(
            matches!(trial.outcome, TrialOutcome::GeneratorBound | TrialOutcome::Disturbed),
            vec![
                Cell::link(&number, &step.map_or_else(String::new, report_of)),
                Cell::text(lang.trial_purpose(trial.purpose).to_owned()),
                Cell::text(Unit::Number.show(trial.value)),
                Cell::text(lang.seconds(format!("{:.0}", trial.hold_s))),
                figure(&|step| Some(rate(step.tps))),
                figure(&|step| step.cpu_percent.map(percent)),
                figure(&|step| step.latency_us.mean.map(latency)),
                figure(&|step| step.latency_us.p99.map(|us| latency(us as f64))),
                Cell::text(outcome.to_owned()).failed(trial.outcome == TrialOutcome::Fail),
                Cell::prose(reasons.join(lang.between_reasons())),
            ],
        );
    }
    grid
}
