//! The result of a capacity search: an interval, and the trials that lead to it.

use super::axis::Unit;
use super::chart::{Axis, Chart, Line, Mark, Marker, Style, from_zero};
use super::grid::{Cell, Grid};
use super::steps_table::report_of;
use crate::format::{latency, percent, rate};
use crate::record::{Capacity, RunRecord, TrialOutcome};

/// The result as a sentence.
pub(super) fn sentence(capacity: &Capacity) -> String {
    let unit = if capacity.unit.is_empty() { String::new() } else { format!(" {}", capacity.unit) };
    let shown = |value: f64| format!("{}{unit}", Unit::Number.show(value));
    let bound = match (capacity.lowest_fail, capacity.lowest_generator_bound) {
        (Some(fail), _) => format!("it failed at {}", shown(fail)),
        (None, Some(bound)) => {
            format!(
                "at {} the generator was the bottleneck, so the broker may carry more",
                shown(bound)
            )
        }
        (None, None) => "no load was found at which it failed".to_owned(),
    };
    match capacity.highest_pass {
        Some(pass) => {
            let tps = capacity.tps.map_or_else(String::new, |tps| {
                format!(" ({} messages in + out per second)", rate(tps))
            });
            format!(
                "The highest {} that met {} is {}{tps}; {bound}. Confirmed {} of {} times.",
                capacity.variable.replace('_', " "),
                capacity.objectives.join(", "),
                shown(pass),
                capacity.confirmed,
                capacity.confirm
            )
        }
        None => format!("No load met {}; {bound}.", capacity.objectives.join(", ")),
    }
}

/// What was tried, one after the other.
pub(super) fn chart(capacity: &Capacity) -> Chart {
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
        Line::plain("order of trials", 1, path).style(Style::Reference),
        of("met all objectives", 3, Marker::Dot, TrialOutcome::Pass),
        of("missed one", 2, Marker::Cross, TrialOutcome::Fail),
        of("generator-bound", 6, Marker::Hollow, TrialOutcome::GeneratorBound),
    ];
    lines.retain(|line| !line.is_empty());
    let y = from_zero(&capacity.variable.replace('_', " "), Unit::Number, &lines);
    let x = Axis {
        title: "trial".to_owned(),
        scale: super::axis::Scale::exactly(0.0, capacity.trials.len() as f64 + 1.0, Unit::Number),
        unit: Unit::Number,
    };
    let mark = |value: Option<f64>, name: &str| {
        value.map(|y| Mark { y, x: None, name: name.to_owned(), colour: 0 })
    };
    let marks =
        [mark(capacity.highest_pass, "highest pass"), mark(capacity.lowest_fail, "lowest fail")];
    Chart {
        wide: true,
        marks: marks.into_iter().flatten().collect(),
        ..Chart::new("Trials of the search", x, y, lines)
    }
}

/// The trials as a table.
pub(super) fn table(record: &RunRecord, capacity: &Capacity) -> Grid {
    let mut grid = Grid::new(&[
        "trial",
        "purpose",
        "value",
        "length",
        "TPS in + out",
        "CPU",
        "avg",
        "p99",
        "outcome",
        "why",
    ]);
    for (index, trial) in capacity.trials.iter().enumerate() {
        let step = trial.step.and_then(|step| record.steps.get(step));
        let figure = |pick: &dyn Fn(&crate::record::Step) -> Option<String>| {
            Cell::or_dash(step.and_then(pick))
        };
        let outcome = match trial.outcome {
            TrialOutcome::Pass => "pass",
            TrialOutcome::Fail => "fail",
            TrialOutcome::GeneratorBound => "generator-bound",
        };
        let number = (index + 1).to_string();
        grid.row(
            trial.outcome == TrialOutcome::GeneratorBound,
            vec![
                Cell::link(&number, &step.map_or_else(String::new, report_of)),
                Cell::text(trial.purpose.clone()),
                Cell::text(Unit::Number.show(trial.value)),
                Cell::text(format!("{:.0} s", trial.hold_s)),
                figure(&|step| Some(rate(step.tps))),
                figure(&|step| step.cpu_percent.map(percent)),
                figure(&|step| step.latency_us.mean.map(latency)),
                figure(&|step| step.latency_us.p99.map(|us| latency(us as f64))),
                Cell::text(outcome.to_owned()).failed(trial.outcome == TrialOutcome::Fail),
                Cell::prose(trial.reasons.join("; ")),
            ],
        );
    }
    grid
}
