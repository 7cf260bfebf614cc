//! A figure of one scenario over time, and where its level changed.

use serde::Serialize;
use tacho_record::Verdict;

use crate::run_state::RunState;
use crate::runs::{RunRow, SortKey};

/// Points that are shown, the newest.
const POINTS_MAX: usize = 2000;
/// Points on each side of a change, at least.
const SIDE_MIN: usize = 3;
/// Points on each side of a change that are looked at.
const SIDE_MAX: usize = 8;
/// How many times its scatter a level must move. The scatter is the median distance from the
/// median, of which about 4.4 are three standard deviations.
const SCATTERS: f64 = 4.4;
/// A smaller move matters to no one, however steady the figure is.
const SHARE_MIN: f64 = 0.03;

/// A figure over time.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Trend {
    points: Vec<TrendPoint>,
    /// Positions of the points from which on the level is another one.
    changes: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct TrendPoint {
    id: String,
    started: String,
    version: String,
    target: String,
    name: String,
    verdict: Option<Verdict>,
    value: f64,
}

/// The figure `key` of the runs of a scenario that say something about the broker, in the order of
/// time; with a target only of that one.
pub(crate) fn trend<'r>(
    rows: impl Iterator<Item = &'r RunRow>,
    (scenario, target): (&str, &str),
    key: SortKey,
) -> Trend {
    let counts = |row: &&RunRow| {
        row.state == RunState::Finished
            && row.scenario == scenario
            && (target.is_empty() || row.target == target)
            && row.verdict.is_some_and(|verdict| verdict.counts())
    };
    let point = |row: &RunRow| {
        Some(TrendPoint {
            id: row.id.clone(),
            started: row.started.clone()?,
            version: row.version.clone(),
            target: row.target.clone(),
            name: row.name.clone(),
            verdict: row.verdict,
            value: key.figure(row)?,
        })
    };
    let mut points: Vec<TrendPoint> = rows.filter(counts).filter_map(point).collect();
    points.sort_by(|one, other| one.started.cmp(&other.started));
    points.drain(..points.len().saturating_sub(POINTS_MAX));
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    Trend { changes: changes(&values), points }
}

/// Where the level of `values` changes: the point at which both sides differ most from their
/// scatter, and then the same on either side of it.
fn changes(values: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut spans = vec![(0, values.len())];
    while let Some((from, to)) = spans.pop() {
        let Some(at) = change_within(values, from, to) else { continue };
        found.push(at);
        spans.push((from, at));
        spans.push((at, to));
    }
    found.sort_unstable();
    found
}

fn change_within(values: &[f64], from: usize, to: usize) -> Option<usize> {
    let strength = |at: usize| {
        let left = values.get(from.max(at.saturating_sub(SIDE_MAX))..at)?;
        let right = values.get(at..to.min(at + SIDE_MAX))?;
        let (before, after) = (median(left), median(right));
        let moved = (after - before).abs();
        let scatter = distance(left, before).max(distance(right, after));
        let is_one = moved > SHARE_MIN * before.abs() && moved > SCATTERS * scatter;
        // Of several places with the same medians the one that splits cleanest.
        let mixed: f64 = left.iter().map(|value| (value - before).abs()).sum::<f64>()
            + right.iter().map(|value| (value - after).abs()).sum::<f64>();
        is_one.then_some((moved, -mixed))
    };
    let places = (from + SIDE_MIN)..(to + 1).saturating_sub(SIDE_MIN);
    let strongest = places.filter_map(|at| Some((strength(at)?, at)));
    let strongest = strongest.max_by(|((moved, mixed), _), ((other, more), _)| {
        moved.total_cmp(other).then(mixed.total_cmp(more))
    });
    strongest.map(|(_, at)| at)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len() / 2), sorted.len() % 2) {
        (Some(middle), 1) => *middle,
        (Some(middle), _) => (middle + sorted.get(sorted.len() / 2 - 1).unwrap_or(middle)) / 2.0,
        (None, _) => 0.0,
    }
}

/// The median distance from `from`.
fn distance(values: &[f64], from: f64) -> f64 {
    median(&values.iter().map(|value| (value - from).abs()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_moves_is_found_where_it_does() {
        let noisy = |level: f64, count: usize| (0..count).map(move |at| level + (at % 3) as f64);
        let steady: Vec<f64> = noisy(100.0, 30).collect();
        assert_eq!(changes(&steady), [0; 0]);
        let moved: Vec<f64> =
            noisy(100.0, 10).chain(noisy(120.0, 9)).chain(noisy(90.0, 12)).collect();
        assert_eq!(changes(&moved), [10, 19]);
        // One odd run is no other level.
        let mut odd = steady;
        odd[14] = 500.0;
        assert_eq!(changes(&odd), [0; 0]);
        assert_eq!(changes(&[]), [0; 0]);
        assert_eq!(changes(&[1.0, 9.0, 1.0, 9.0, 1.0]), [0; 0], "too few");
    }

    #[test]
    fn only_runs_of_the_scenario_that_count_are_points() {
        let row = |id: &str, scenario: &str, verdict| RunRow {
            id: id.to_owned(),
            scenario: scenario.to_owned(),
            verdict: Some(verdict),
            state: RunState::Finished,
            started: Some(id.to_owned()),
            achieved_tps: Some(5.0),
            ..RunRow::default()
        };
        let rows = [
            row("3", "symmetric", Verdict::Ok),
            row("1", "symmetric", Verdict::NotSteady),
            row("2", "symmetric", Verdict::Disturbed),
            row("4", "fan-in", Verdict::Ok),
            RunRow { achieved_tps: None, ..row("5", "symmetric", Verdict::Ok) },
        ];
        let key = SortKey::named("achieved_tps").expect("is a column");
        let trend = trend(rows.iter(), ("symmetric", ""), key);
        assert_eq!(
            trend.points.iter().map(|point| point.id.as_str()).collect::<Vec<_>>(),
            ["1", "3"]
        );
    }
}
