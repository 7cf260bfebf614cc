//! Sides with their repeats become a comparison.

use super::condition::Condition;
use super::differences;
use super::error::CompareError;
use super::figure::{FIGURES, Figure};
use super::judge::judge;
use super::side::{Run, Side};
use super::statistics::{REPEATS_MIN, method};
use tacho_record::{
    Cause, Comparison, ComparisonSide, Difference, FigureRow, Judgement, Method, Point, Property,
    Remark, Repeat, RunKind, SCHEMA_VERSION, Step, Verdict,
};

/// Names that are listed before "and more".
const NAMED_MAX: usize = 5;

/// What a comparison is, beside its sides.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Its name.
    pub name: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// How long it took; 0 for runs that were there already.
    pub elapsed_s: f64,
    /// Were repeats made in turns?
    pub interleaved: bool,
    /// Seed of the draws.
    pub seed: u64,
}

/// Where a step stands, the same in repeats and on other sides.
#[derive(Clone, Debug, PartialEq)]
struct PointKey {
    series: String,
    label: String,
    x: Option<f64>,
}

/// Compares the sides with the first one.
///
/// # Errors
/// When they cannot be compared.
pub fn compare(
    sides: &[Side],
    about: &About,
    conditions: &[Condition],
) -> Result<Comparison, CompareError> {
    let first = check(sides)?;
    let method = method(about.seed);
    let places = common_places(sides)?;
    let points: Vec<Point> = places.iter().map(|place| point(sides, place, &method)).collect();
    let mut comparison = Comparison {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: about.name.clone(),
        scenario: first.record.scenario.clone(),
        description: first.record.description.clone(),
        description_zh: first.record.description_zh.clone(),
        started_at: about.started_at.clone(),
        elapsed_s: (about.elapsed_s * 1e3).round() / 1e3,
        interleaved: about.interleaved,
        verdict: Judgement::together(points.iter().map(|point| point.verdict)),
        method,
        sides: sides.iter().map(side).collect(),
        aa_repeats: sides[0].again.iter().map(repeat).collect(),
        environment: differences::environments(sides),
        scenario_differences: differences::scenarios(sides),
        points,
        command_line: crate::command_line::command_line(),
        ..Comparison::default()
    };
    let all = comparison.sides.iter().flat_map(|side| &side.repeats);
    let made_up = all.chain(&comparison.aa_repeats).filter(|repeat| repeat.made_up).count();
    comparison.made_up = made_up as u64;
    comparison.remarks = remarks(sides, &comparison);
    comparison.conditions =
        conditions.iter().map(|condition| condition.judge(&comparison)).collect();
    Ok(comparison)
}

fn check(sides: &[Side]) -> Result<&Run, CompareError> {
    let runs = || sides.iter().flat_map(|side| &side.runs);
    let empty = sides.iter().find(|side| side.runs.is_empty());
    if let Some(side) = empty {
        let (side, why) = (side.label.clone(), "it has no runs".to_owned());
        return Err(CompareError::Nothing { side, why });
    }
    let (Some(first), true) = (runs().next(), sides.len() > 1) else {
        return Err(CompareError::OneSide);
    };
    for run in runs() {
        let pair = (first.shown.clone(), run.shown.clone());
        if run.record.scenario != first.record.scenario {
            return Err(CompareError::OtherScenario {
                first: pair.0,
                one: first.record.scenario.clone(),
                second: pair.1,
                other: run.record.scenario.clone(),
            });
        }
        if run.record.kind != first.record.kind {
            let (one, other) = (first.record.kind.name(), run.record.kind.name());
            return Err(CompareError::OtherKind { first: pair.0, one, second: pair.1, other });
        }
    }
    let measured = |side: &&Side| side.runs.iter().any(|run| !run.record.steps.is_empty());
    match sides.iter().find(|side| !measured(side)) {
        None => Ok(first),
        Some(side) => {
            let reasons = side.runs.iter().flat_map(|run| &run.record.reasons).next();
            let why = reasons.map_or_else(|| "it has no measured window".to_owned(), Clone::clone);
            Err(CompareError::Nothing { side: side.label.clone(), why })
        }
    }
}

/// The steps of a run with their places and verdicts.
fn steps(run: &Run) -> Vec<(PointKey, &Step, Verdict)> {
    let single = run.record.kind == RunKind::Run;
    let count = run.record.steps.len();
    let of = |(index, step)| {
        let step: &Step = step;
        if single {
            let label = if count > 1 { format!("window {}", index + 1) } else { String::new() };
            return (PointKey { series: String::new(), label, x: None }, step, run.record.verdict);
        }
        // Repeats of a step have a number at the end.
        let label = match step.label.rsplit_once(" #") {
            Some((label, number)) if number.parse::<u32>().is_ok() => label,
            _ => &step.label,
        };
        let place = PointKey { series: step.series.clone(), label: label.to_owned(), x: step.x };
        (place, step, step.verdict)
    };
    run.record.steps.iter().enumerate().map(of).collect()
}

/// The places that all sides have, in the order of the first.
fn common_places(sides: &[Side]) -> Result<Vec<PointKey>, CompareError> {
    let all: Vec<Vec<PointKey>> = sides
        .iter()
        .map(|side| {
            let mut places = Vec::new();
            for (place, ..) in side.runs.iter().flat_map(steps) {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            places
        })
        .collect();
    let everywhere = |place: &&PointKey| all.iter().all(|places| places.contains(place));
    let common: Vec<PointKey> = all[0].iter().filter(everywhere).cloned().collect();
    if common.is_empty() {
        let labels = |places: &Vec<PointKey>| {
            let mut labels: Vec<&str> =
                places.iter().take(NAMED_MAX).map(|place| place.label.as_str()).collect();
            if places.len() > NAMED_MAX {
                labels.push("...");
            }
            labels.join(", ")
        };
        let steps = all.iter().map(labels).collect::<Vec<_>>().join("; ");
        return Err(CompareError::NoCommonStep { steps });
    }
    Ok(common)
}

fn point(sides: &[Side], place: &PointKey, method: &Method) -> Point {
    let values = |runs: &[Run], figure: &Figure| -> Vec<f64> {
        let of_run = |run: &Run| -> Vec<f64> {
            let here = steps(run).into_iter();
            let here = here.filter(|(known, _, verdict)| known == place && verdict.counts());
            here.filter_map(|(_, step, _)| figure.of(&run.record, step)).collect()
        };
        runs.iter().flat_map(of_run).collect()
    };
    let row = |figure: &Figure| -> Option<FigureRow> {
        let of_side = |side| {
            let side: &Side = side;
            (side.name.as_str(), values(&side.runs, figure))
        };
        let of_sides: Vec<(&str, Vec<f64>)> = sides.iter().map(of_side).collect();
        // All sides are compared with the first, so that its noise is the one that matters.
        let again = sides.first().map(|side| values(&side.again, figure)).unwrap_or_default();
        judge(figure, &of_sides, &again, method)
    };
    let figures: Vec<FigureRow> = FIGURES.iter().filter_map(row).collect();
    let label = match (place.series.as_str(), place.label.as_str()) {
        ("", label) => label.to_owned(),
        (series, label) if sides_have_one_series(sides) || series == label => label.to_owned(),
        (series, label) => format!("{series}, {label}"),
    };
    let changes = figures.iter().flat_map(|row| row.changes.iter().map(|change| change.verdict));
    Point { label, x: place.x, verdict: Judgement::together(changes), figures }
}

fn sides_have_one_series(sides: &[Side]) -> bool {
    sides.iter().flat_map(|side| &side.runs).all(|run| run.record.series.len() <= 1)
}

fn side(side: &Side) -> ComparisonSide {
    ComparisonSide {
        name: side.name.clone(),
        label: side.label.clone(),
        what: side.what.clone(),
        before: side.before.clone(),
        repeats: side.runs.iter().map(repeat).collect(),
    }
}

fn repeat(run: &Run) -> Repeat {
    Repeat {
        directory: run.shown.clone(),
        started_at: run.record.started_at.clone(),
        verdict: run.record.verdict,
        counts: run.counts(),
        reasons: run.record.reasons.clone(),
        causes: run.record.causes.clone(),
        made_up: run.made_up,
        before: run.before.clone(),
    }
}

impl Run {
    /// Whether its figures, or those of one of its steps, say something about the broker.
    pub fn counts(&self) -> bool {
        steps(self).iter().any(|(_, _, verdict)| verdict.counts())
    }
}

/// What a reader must know before believing the figures.
fn remarks(sides: &[Side], comparison: &Comparison) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for side in &comparison.sides {
        let out = side.repeats.iter().filter(|repeat| !repeat.counts).count() as u64;
        let Some(first) = side.repeats.iter().find(|repeat| !repeat.counts) else { continue };
        let told = || first.reasons.first().cloned().map(Cause::Message);
        let cause = first.causes.first().cloned().or_else(told);
        let (of, side) = (side.repeats.len() as u64, side.name.clone());
        remarks.push(Remark::RepeatsDoNotCount { out, of, side, cause });
    }
    if comparison.made_up > 0 {
        remarks.push(Remark::MadeUp { count: comparison.made_up });
    }
    let most = |figures: &[FigureRow], index: usize| {
        figures.iter().filter_map(|row| Some(row.sides.get(index)?.values.len())).max()
    };
    let repeats = comparison
        .points
        .iter()
        .flat_map(|point| (0..sides.len()).map(|index| most(&point.figures, index).unwrap_or(0)));
    let fewest = repeats.min().unwrap_or(0);
    if fewest == 0 {
        remarks.push(Remark::NoRepeatCounts);
    } else if fewest < REPEATS_MIN {
        let (fewest, least) = (fewest as u64, REPEATS_MIN as u64);
        remarks.push(Remark::FewRepeats { fewest, least });
    }
    remarks.extend(unsteady(&comparison.points, &comparison.sides[0].name));
    if !comparison.interleaved {
        remarks.push(Remark::NotInTurns);
    }
    let scenarios = named(&comparison.scenario_differences);
    remarks.extend(scenarios.map(|(names, more)| Remark::ScenariosDiffer { names, more }));
    // In one session the conditions are meant to differ.
    if !comparison.interleaved {
        let environments = named(&comparison.environment);
        remarks
            .extend(environments.map(|(names, more)| Remark::EnvironmentsDiffer { names, more }));
    }
    remarks
}

/// A condition that can be told apart from itself: what was measured on was not steady.
fn unsteady(points: &[Point], first: &str) -> Option<Remark> {
    let mut figures: Vec<String> = Vec::new();
    for row in points.iter().flat_map(|point| &point.figures) {
        let apart = row
            .aa
            .as_ref()
            .is_some_and(|aa| matches!(aa.change.verdict, Judgement::Better | Judgement::Worse));
        if apart && !figures.contains(&row.name) {
            figures.push(row.name.clone());
        }
    }
    let side = first.to_owned();
    (!figures.is_empty()).then_some(Remark::ApartFromItself { side, figures })
}

/// What the first differences are, and how many there are beside them.
fn named(differences: &[Difference]) -> Option<(Vec<Property>, u64)> {
    let first = differences.iter().take(NAMED_MAX);
    let names: Vec<Property> = first.filter_map(|one| one.property.clone()).collect();
    let more = differences.len().saturating_sub(NAMED_MAX) as u64;
    (!names.is_empty()).then_some((names, more))
}
