//! From the repeats' values of one figure to what its difference is worth.

use super::figure::Figure;
use super::statistics::{REPEATS_MIN, median, shift};
use tacho_record::{Again, Basis, Better, Change, FigureRow, Judgement, Method, Scale, Spread};

/// Judges one figure: `sides` has the values of each side's repeats, by the side's name, and
/// `again` those of further repeats of the first condition. `None` where no side has any.
pub fn judge(
    figure: &Figure,
    sides: &[(&str, Vec<f64>)],
    again: &[f64],
    method: &Method,
) -> Option<FigureRow> {
    if sides.iter().all(|(_, values)| values.is_empty()) {
        return None;
    }
    let (first_name, first) = sides.first()?;
    let changes = sides[1..]
        .iter()
        .map(|(name, values)| change(figure, (first, again), name, values, method));
    let aa = (!again.is_empty()).then(|| Again {
        spread: spread(again),
        // By itself: the floor must not have it inside.
        change: change(figure, (first, &[]), first_name, again, method),
    });
    Some(FigureRow {
        name: figure.name.name().to_owned(),
        label: String::new(),
        unit: figure.unit,
        better: figure.better,
        scale: figure.scale,
        changes: changes.collect(),
        sides: sides.iter().map(|(_, values)| spread(values)).collect(),
        aa,
    })
}

fn spread(values: &[f64]) -> Spread {
    Spread {
        values: values.to_vec(),
        median: median(values),
        min: values.iter().copied().reduce(f64::min),
        max: values.iter().copied().reduce(f64::max),
    }
}

fn change(
    figure: &Figure,
    (first, again): (&[f64], &[f64]),
    name: &str,
    second: &[f64],
    method: &Method,
) -> Change {
    let side = name.to_owned();
    // Figures have draws of their own, the same at every run of the same data.
    let seed = figure.name.name().bytes().fold(method.seed, |seed, byte| {
        seed.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(byte))
    });
    let Some(found) = shift(first, again, second, figure.scale, seed) else {
        let basis = match (first.is_empty(), second.is_empty()) {
            (false, false) => Basis::FirstIsZero,
            (true, false) => Basis::FirstNotObserved,
            _ => Basis::NotObserved,
        };
        return Change { side, basis: Some(basis), ..Change::default() };
    };
    let least = match (figure.scale, median(first)) {
        (Scale::Percent, Some(base)) if base > 0.0 => {
            method.floor_percent_min.max(figure.resolution * 100.0 / base)
        }
        _ => figure.resolution,
    };
    let floor = found.floor.map(|floor| floor.height().max(least));
    let (verdict, basis) = match (found.interval, floor) {
        (Some((low, high)), Some(floor)) => weigh(figure.better, found.change, (low, high), floor),
        _ => {
            let repeats = first.len().min(second.len()) as u64;
            (Judgement::Unclear, Basis::FewRepeats { repeats, least: REPEATS_MIN as u64 })
        }
    };
    Change {
        side,
        change: Some(shown(found.change)),
        low: found.interval.map(|(low, _)| shown(low)),
        high: found.interval.map(|(_, high)| shown(high)),
        floor: floor.map(shown),
        floor_drawn: found.floor.map(|floor| shown(floor.drawn)),
        floor_seen: found.floor.and_then(|floor| floor.seen).map(shown),
        verdict,
        reason: String::new(),
        basis: Some(basis),
    }
}

/// More digits than a reader needs.
fn shown(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn weigh(better: Better, change: f64, (low, high): (f64, f64), floor: f64) -> (Judgement, Basis) {
    if low <= 0.0 && high >= 0.0 {
        return (Judgement::NoChange, Basis::IncludesZero);
    }
    // A little slack: one microsecond of fifty must not be more than two percent.
    if change.abs() <= floor * (1.0 + 1e-9) {
        return (Judgement::NoChange, Basis::BelowFloor);
    }
    let verdict = match ((change > 0.0), better) {
        (true, Better::Higher) | (false, Better::Lower) => Judgement::Better,
        (true, Better::Lower) | (false, Better::Higher) => Judgement::Worse,
    };
    (verdict, Basis::AboveFloor)
}
