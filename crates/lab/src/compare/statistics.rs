//! Medians, and what resampling says about their difference.

use serde::{Deserialize, Serialize};

/// Repeats per side from which on there is an interval: with fewer, a bootstrap only repeats what
/// little it has seen.
pub const REPEATS_MIN: usize = 5;
/// Draws of a bootstrap.
pub(super) const DRAWS: usize = 1000;
/// Confidence of intervals, and the part of the draws between equals that the floor is above.
pub(super) const CONFIDENCE: f64 = 0.95;

/// How two figures are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// In percent of the first.
    #[default]
    Percent,
    /// In the figure's own unit, where zero is a usual value.
    Absolute,
}

/// The difference of two medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The second median against the first.
    pub change: f64,
    /// The 95 % confidence interval; absent with fewer than [`REPEATS_MIN`] repeats on a side.
    pub interval: Option<(f64, f64)>,
    /// What 95 % of comparisons of the first side with itself stay below.
    pub floor: Option<f64>,
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
/// and the noise floor; `None` where a side has no values or the scale has nothing to refer to.
///
/// Both sides are drawn anew from their repeats, independently. For the floor both sides are drawn
/// from `first`: the differences that there would be if nothing had changed. The same `seed` gives
/// the same result.
pub fn shift(first: &[f64], second: &[f64], scale: Scale, seed: u64) -> Option<Shift> {
    let change = difference(median(first)?, median(second)?, scale)?;
    if first.len() < REPEATS_MIN || second.len() < REPEATS_MIN {
        return Some(Shift { change, interval: None, floor: None });
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let changes = draws(first, second, scale, &mut random);
    let nulls = draws(first, first, scale, &mut random);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let interval = quantile(&changes, tail).zip(quantile(&changes, 1.0 - tail));
    let mut sizes: Vec<f64> = nulls.iter().map(|change| change.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    Some(Shift { change, interval, floor: quantile(&sizes, CONFIDENCE) })
}

/// Differences of resampled medians, sorted.
fn draws(first: &[f64], second: &[f64], scale: Scale, random: &mut fastrand::Rng) -> Vec<f64> {
    let mut scratch = Vec::new();
    let mut drawn = |values: &[f64]| {
        scratch.clear();
        scratch.extend(values.iter().map(|_| values[random.usize(..values.len())]));
        median_of(&mut scratch)
    };
    let mut changes: Vec<f64> =
        (0..DRAWS).filter_map(|_| difference(drawn(first)?, drawn(second)?, scale)).collect();
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
