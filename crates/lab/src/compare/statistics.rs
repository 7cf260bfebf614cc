//! Medians, and what resampling says about their difference.

use tacho_record::{Method, Scale};

/// Repeats per side from which on there is an interval: with fewer, a bootstrap only repeats what
/// little it has seen.
pub const REPEATS_MIN: usize = 5;
/// Draws of a bootstrap.
const DRAWS: usize = 1000;
/// Confidence of intervals, and the part of the draws between equals that the floor is above.
const CONFIDENCE: f64 = 0.95;

/// Changes below this percentage are never reported.
const FLOOR_PERCENT_MIN: f64 = 1.0;

/// How differences are distinguished from noise, with this seed of the draws.
pub(crate) fn method(seed: u64) -> Method {
    Method {
        confidence: CONFIDENCE,
        draws: DRAWS as u64,
        repeats_min: REPEATS_MIN as u64,
        seed,
        floor_percent_min: FLOOR_PERCENT_MIN,
    }
}

/// The difference of two medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The second median against the first.
    pub change: f64,
    /// The 95 % confidence interval; absent with fewer than [`REPEATS_MIN`] repeats on a side.
    pub interval: Option<(f64, f64)>,
    /// What the first condition differs by from itself; absent where the interval is.
    pub floor: Option<Floor>,
}

/// What a condition differs by from itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// What 95 % of the A/A comparisons that were drawn stay below.
    pub drawn: f64,
    /// The A/A comparison that was made; absent where the scale has nothing to refer to.
    pub seen: Option<f64>,
}

impl Floor {
    /// A change must exceed both.
    pub fn height(&self) -> f64 {
        self.seen.map_or(self.drawn, |seen| seen.max(self.drawn))
    }
}

/// The median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    median_of(&mut values)
}

fn median_of(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    match values.len() % 2 {
        1 => Some(*upper),
        _ => Some((values[values.len() / 2 - 1] + upper) / 2.0),
    }
}

/// The difference of the medians of `second` and `first`, with its percentile bootstrap interval
/// and what the first condition differs by from itself; `None` where a side has no values or the
/// scale has nothing to refer to. `again` has further repeats of the first condition, perhaps none.
///
/// For the interval both sides are drawn anew from their repeats, independently. For the floor both
/// are drawn, as large as they are, from all repeats of the first condition: A/A comparisons as
/// there would be if nothing had changed. What draws cannot show, since they know no order, is
/// taken from an A/A comparison that was really made: of `first` with `again`, or without enough of
/// these of every other repeat of `first` with the ones between. The same `seed` gives the same
/// result.
pub fn shift(
    first: &[f64],
    again: &[f64],
    second: &[f64],
    scale: Scale,
    seed: u64,
) -> Option<Shift> {
    let change = difference(median(first)?, median(second)?, scale)?;
    if first.len() < REPEATS_MIN || second.len() < REPEATS_MIN {
        return Some(Shift { change, interval: None, floor: None });
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let sizes = (first.len(), second.len());
    let changes = draws((first, second), sizes, scale, &mut random);
    let same: Vec<f64> = first.iter().chain(again).copied().collect();
    let nulls = draws((&same, &same), sizes, scale, &mut random);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let interval = quantile(&changes, tail).zip(quantile(&changes, 1.0 - tail));
    let mut distances: Vec<f64> = nulls.iter().map(|change| change.abs()).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let floor = quantile(&distances, CONFIDENCE)
        .map(|drawn| Floor { drawn, seen: seen(first, again, second.len(), scale) });
    Some(Shift { change, interval, floor })
}

/// How far apart two groups of repeats of the first condition are.
fn seen(first: &[f64], again: &[f64], second: usize, scale: Scale) -> Option<f64> {
    if again.len() >= REPEATS_MIN {
        return difference(median(first)?, median(again)?, scale).map(f64::abs);
    }
    // Made in turns, every other one was the first of its turn, and those between the last.
    let every_other =
        |from: usize| -> Vec<f64> { first.iter().skip(from).step_by(2).copied().collect() };
    let (odd, even) = (every_other(0), every_other(1));
    let apart = difference(median(&odd)?, median(&even)?, scale)?.abs();
    // Medians of fewer repeats scatter more: as of groups as large as the sides.
    let scatter = |one: usize, other: usize| (1.0 / one as f64 + 1.0 / other as f64).sqrt();
    Some(apart * scatter(first.len(), second) / scatter(odd.len(), even.len()))
}

/// Differences of medians of groups of these sizes, drawn with replacement; sorted.
fn draws(
    (first, second): (&[f64], &[f64]),
    sizes: (usize, usize),
    scale: Scale,
    random: &mut fastrand::Rng,
) -> Vec<f64> {
    let mut scratch = Vec::new();
    let mut drawn = |values: &[f64], size: usize| {
        scratch.clear();
        scratch.extend((0..size).map(|_| values[random.usize(..values.len())]));
        median_of(&mut scratch)
    };
    let mut changes: Vec<f64> = (0..DRAWS)
        .filter_map(|_| difference(drawn(first, sizes.0)?, drawn(second, sizes.1)?, scale))
        .collect();
    changes.sort_unstable_by(f64::total_cmp);
    changes
}

fn difference(first: f64, second: f64, scale: Scale) -> Option<f64> {
    match scale {
        Scale::Absolute => Some(second - first),
        Scale::Percent if first > 0.0 => Some((second / first - 1.0) * 100.0),
        Scale::Percent => None,
    }
}

/// The value at a share of sorted values.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((share * last as f64).round() as usize).copied()
}
