//! Percentile curves of a side: of all messages of its repeats together, and of its slowest repeat.

use super::side::{Run, Side};
use tacho_record::{
    Cumulative, CurvePoint, RunKind, SideCurve, curve_of as points, read_percentiles as read,
};

/// The curves of all sides, from the `e2e.hgrm` of their repeats; empty for ladders, whose steps
/// are loads of their own.
pub fn side_curves(sides: &[Side]) -> Vec<SideCurve> {
    let runs = || sides.iter().flat_map(|side| &side.runs);
    if runs().any(|run| run.record.kind != RunKind::Run) {
        return Vec::new();
    }
    sides.iter().map(curve_of).collect()
}

fn curve_of(side: &Side) -> SideCurve {
    let counted = side.runs.iter().filter(|run| run.record.verdict.counts());
    let repeats: Vec<Cumulative> =
        counted.filter_map(|run: &Run| read(&run.path.join("e2e.hgrm"))).collect();
    let pooled = points(&pool(&repeats));
    let slowest = match repeats.len() {
        0 | 1 => Vec::new(),
        _ => {
            let curves: Vec<Vec<CurvePoint>> = repeats.iter().map(points).collect();
            let longest = curves.iter().map(Vec::len).max().unwrap_or(0);
            let at = |index: usize| {
                let here = curves.iter().filter_map(|curve| curve.get(index));
                here.copied().max_by_key(|point| point.value_us)
            };
            (0..longest).filter_map(at).collect()
        }
    };
    SideCurve { name: side.name.clone(), pooled, slowest }
}

/// The samples of several as one. Each stands at the end of its line's step, as in its own file.
pub(super) fn pool(all: &[Cumulative]) -> Cumulative {
    let mut samples: Vec<(f64, u64)> = Vec::new();
    for one in all {
        let mut before = 0;
        for (value, total) in one {
            samples.push((*value, total.saturating_sub(before)));
            before = before.max(*total);
        }
    }
    samples.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
    let mut total = 0;
    for (_, count) in &mut samples {
        total += *count;
        *count = total;
    }
    samples
}
