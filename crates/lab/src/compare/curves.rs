//! Percentile curves of a side: of all messages of its repeats together, and of its slowest repeat.

use std::fs;
use std::path::Path;

use super::read::{Run, Side};
use crate::record::{CurvePoint, RunKind};

/// Points per factor of ten of 1 / (1 - q).
const STEPS_PER_DECADE: u32 = 20;
/// Samples needed beyond a percentile, as everywhere.
const SAMPLES_BEYOND: f64 = 10.0;

/// The latency of one side by percentile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideCurve {
    /// Name of the side.
    pub name: String,
    /// Of the messages of all repeats that count, as one.
    pub pooled: Vec<CurvePoint>,
    /// The highest of the repeats' own curves at each percentile; empty with one repeat.
    pub slowest: Vec<CurvePoint>,
}

/// Values in microseconds with how many samples are at or below them.
type Cumulative = Vec<(f64, u64)>;

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

/// The curve of one `.hgrm` file; `None` where there is no such file.
pub(crate) fn curve_of_file(path: &Path) -> Option<Vec<CurvePoint>> {
    Some(points(&read(path)?))
}

/// Reads value and total count of each line; `None` where there is no such file.
fn read(path: &Path) -> Option<Cumulative> {
    let text = fs::read_to_string(path).ok()?;
    Some(parse(&text))
}

pub(super) fn parse(text: &str) -> Cumulative {
    let numbers = |line: &str| {
        let mut words = line.split_whitespace();
        let value_ms: f64 = words.next()?.parse().ok()?;
        let total: u64 = words.nth(1)?.parse().ok()?;
        Some((value_ms * 1e3, total))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(numbers).collect()
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

/// The curve, up to the last percentile that has enough samples.
pub(super) fn points(samples: &Cumulative) -> Vec<CurvePoint> {
    let total = samples.last().map_or(0, |(_, total)| *total) as f64;
    let quantiles = (0..=6 * STEPS_PER_DECADE)
        .map(|step| 1.0 - 10_f64.powf(-f64::from(step) / f64::from(STEPS_PER_DECADE)));
    quantiles
        .take_while(|quantile| total * (1.0 - quantile) >= SAMPLES_BEYOND - 1e-6)
        .filter_map(|quantile| {
            let at = samples.partition_point(|(_, below)| (*below as f64) < quantile * total);
            let (value, _) = samples.get(at)?;
            Some(CurvePoint { quantile, value_us: value.round() as u64 })
        })
        .collect()
}
