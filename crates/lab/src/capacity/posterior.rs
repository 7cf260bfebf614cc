//! What trials say about the limit: a posterior over its value.
//!
//! A trial passes below the limit and fails above it, near the limit by chance, and now and then
//! against the truth: a disturbance that no counter shows makes a trial fail far more often than
//! it makes one pass. How wide the region of chance is and how often outcomes mislead is unknown
//! on a machine, so both are part of the model and integrated out (a psychometric function with
//! lapses; Kontsevich and Tyler, Vision Research 39, 1999). The limit's prior is flat in its
//! logarithm between the values that were tried, and falls off beyond them.

use tacho_record::TrialOutcome;

/// Half of what may lie outside of a 95 % interval.
pub(super) const TAIL: f64 = 0.025;
/// Widths of the region of chance, relative, with their prior weights.
const SPREADS: [(f64, f64); 5] =
    [(0.002, 0.25), (0.008, 0.25), (0.02, 0.25), (0.05, 0.17), (0.1, 0.08)];
/// How often a trial fails below the limit.
const FALSE_FAILS: [(f64, f64); 3] = [(0.01, 0.55), (0.06, 0.3), (0.2, 0.15)];
/// How often a trial passes above the limit.
const FALSE_PASSES: [(f64, f64); 2] = [(0.002, 0.7), (0.03, 0.3)];
/// Spread of short trials on top: queues that still fill and caches that are still cold.
const SHORT_SPREAD: f64 = 0.15;
/// How often a short trial misleads.
const SHORT_MISLEADS: f64 = 0.05;
/// How far the grid reaches beyond the values that were tried, as a factor.
const MARGIN: f64 = 4.0;
/// A value that comes nearer to the edge of the grid than this factor makes it wider.
const MARGIN_MIN: f64 = 2.0;
/// The prior beyond the values that were tried falls with this power of the distance: a limit that
/// is twice as high has an eighth of the weight.
const FALL: f64 = 3.0;

/// A trial that says something.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    value_ln: f64,
    passed: bool,
    full: bool,
}

/// The posterior, on a grid of logarithms.
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    seen: Vec<Seen>,
    /// Distance of the grid's points.
    step: f64,
    /// The first point.
    from: f64,
    /// Likelihood times prior: one row of points for each spread and each of [`lapses`].
    rows: Vec<Vec<f64>>,
    /// The posterior of each point; adds up to 1.
    share: Vec<f64>,
}

/// How often outcomes mislead, with the prior weight of that.
#[derive(Clone, Copy, Debug)]
struct Lapses {
    false_fail: f64,
    false_pass: f64,
    weight: f64,
}

/// All that are possible.
fn lapses() -> impl Iterator<Item = Lapses> {
    FALSE_FAILS.into_iter().flat_map(|(false_fail, fail_weight)| {
        FALSE_PASSES.into_iter().map(move |(false_pass, pass_weight)| Lapses {
            false_fail,
            false_pass,
            weight: fail_weight * pass_weight,
        })
    })
}

/// Probability that a trial at `value_ln` would pass, were no outcome misleading. The logistic
/// function has heavier tails than the normal one, as machines do.
fn would_pass(limit_ln: f64, value_ln: f64, spread: f64) -> f64 {
    1.0 / (1.0 + ((value_ln - limit_ln) / (spread * 0.55)).exp())
}

impl Lapses {
    /// Probability of what was seen.
    fn likelihood(self, would_pass: f64, seen: Seen) -> f64 {
        let at_least = if seen.full { 0.0 } else { SHORT_MISLEADS };
        let (fail, pass) = (self.false_fail.max(at_least), self.false_pass.max(at_least));
        let passes = pass + (1.0 - fail - pass) * would_pass;
        if seen.passed { passes } else { 1.0 - passes }
    }
}

impl Posterior {
    /// Nothing is known; the interval is to come as near as `precision`.
    pub(super) fn new(precision: f64) -> Self {
        let step = (precision / 8.0).clamp(0.000_2, 0.01);
        Self { seen: Vec::new(), step, from: 0.0, rows: Vec::new(), share: Vec::new() }
    }

    /// Takes the outcome of a trial at `value`; `full` tells that it had the full length. Trials
    /// that say nothing about the broker are left out.
    pub(super) fn add(&mut self, value: f64, full: bool, outcome: TrialOutcome) {
        let passed = match outcome {
            TrialOutcome::Pass => true,
            TrialOutcome::Fail => false,
            TrialOutcome::GeneratorBound | TrialOutcome::Disturbed => return,
        };
        let seen = Seen { value_ln: value.ln(), passed, full };
        self.seen.push(seen);
        let margin = MARGIN_MIN.ln();
        let fits = seen.value_ln - margin >= self.from && seen.value_ln + margin <= self.end();
        match !self.share.is_empty() && fits {
            true => self.multiply(seen),
            false => self.lay_grid(),
        }
        self.normalise();
    }

    fn end(&self) -> f64 {
        self.from + self.step * self.share.len() as f64
    }

    /// The logarithms of the lowest and the highest value that were tried.
    fn tried(&self) -> (f64, f64) {
        let values = || self.seen.iter().map(|seen| seen.value_ln);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    }

    /// A grid around everything that was tried.
    fn lay_grid(&mut self) {
        let (low, high) = self.tried();
        self.from = low - MARGIN.ln();
        let points = ((high + MARGIN.ln() - self.from) / self.step).ceil() as usize;
        self.rows = SPREADS
            .into_iter()
            .flat_map(|(_, weight)| {
                lapses().map(move |lapses| vec![weight * lapses.weight; points])
            })
            .collect();
        self.share = vec![0.0; points];
        for seen in self.seen.clone() {
            self.multiply(seen);
        }
    }

    fn multiply(&mut self, seen: Seen) {
        let mut rows = self.rows.iter_mut();
        let mut would = vec![0.0; self.share.len()];
        for (spread, _) in SPREADS {
            let spread = if seen.full { spread } else { spread + SHORT_SPREAD };
            for (index, would) in would.iter_mut().enumerate() {
                *would = would_pass(self.from + self.step * index as f64, seen.value_ln, spread);
            }
            for (lapses, row) in lapses().zip(&mut rows) {
                for (point, would) in row.iter_mut().zip(&would) {
                    *point *= lapses.likelihood(*would, seen);
                }
            }
        }
    }

    /// The largest likelihood becomes 1: products of many would vanish.
    fn normalise(&mut self) {
        let top = self.rows.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
        self.rows.iter_mut().flatten().for_each(|point| *point /= top);
        let (low, high) = self.tried();
        for (index, share) in self.share.iter_mut().enumerate() {
            let limit = self.from + self.step * index as f64;
            let beyond = (low - limit).max(limit - high).max(0.0);
            let likelihood: f64 = self.rows.iter().map(|row| row[index]).sum();
            *share = likelihood * (-FALL * beyond).exp();
        }
        let sum: f64 = self.share.iter().sum();
        self.share.iter_mut().for_each(|share| *share /= sum);
    }

    /// Probability that the limit lies below `value`.
    pub(super) fn below(&self, value: f64) -> f64 {
        // Each point stands for a step around it.
        let at = ((value.ln() - self.from) / self.step + 0.5).max(0.0);
        let whole: f64 = self.share.iter().take(at as usize).sum();
        whole + self.share.get(at as usize).map_or(0.0, |share| share * at.fract())
    }

    /// Probability that the limit lies above `value`.
    pub(super) fn above(&self, value: f64) -> f64 {
        1.0 - self.below(value)
    }

    /// The value below which the limit lies with this probability; `None` before the first trial.
    pub(super) fn quantile(&self, probability: f64) -> Option<f64> {
        let mut sum = 0.0;
        let at = self.share.iter().position(|share| {
            sum += share;
            sum >= probability
        });
        at.or_else(|| self.share.len().checked_sub(1))
            .map(|index| (self.from + self.step * index as f64).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(trials: &[(f64, TrialOutcome)]) -> Posterior {
        let mut posterior = Posterior::new(0.05);
        trials.iter().for_each(|(value, outcome)| posterior.add(*value, true, *outcome));
        posterior
    }

    #[test]
    fn a_repeated_failure_is_surer_than_one() {
        use TrialOutcome::{Fail, Pass};
        let once = seen(&[(1000.0, Pass), (1050.0, Fail)]);
        let twice = seen(&[(1000.0, Pass), (1050.0, Fail), (1050.0, Fail)]);
        assert!(twice.above(1050.0) < once.above(1050.0));
        assert!(twice.quantile(0.5).is_some_and(|limit| (950.0..1100.0).contains(&limit)));
    }

    #[test]
    fn one_failure_far_below_many_passes_does_not_move_the_limit() {
        use TrialOutcome::{Fail, Pass};
        let posterior =
            seen(&[(3000.0, Pass), (6.0, Fail), (3000.0, Pass), (3200.0, Fail), (3000.0, Pass)]);
        assert!(posterior.below(2500.0) < TAIL, "{}", posterior.below(2500.0));
    }

    #[test]
    fn a_trial_that_was_disturbed_says_nothing() {
        let mut posterior = seen(&[(1000.0, TrialOutcome::Pass)]);
        let before = posterior.quantile(0.5);
        posterior.add(1000.0, true, TrialOutcome::Disturbed);
        posterior.add(1000.0, true, TrialOutcome::GeneratorBound);
        assert_eq!(posterior.quantile(0.5), before);
    }

    #[test]
    fn the_grid_follows_the_limit() {
        let mut posterior = Posterior::new(0.05);
        posterior.add(10.0, false, TrialOutcome::Pass);
        posterior.add(20.0, false, TrialOutcome::Fail);
        for _ in 0..3 {
            posterior.add(100_000.0, true, TrialOutcome::Pass);
            posterior.add(110_000.0, true, TrialOutcome::Fail);
        }
        let limit = posterior.quantile(0.5).expect("trials were made");
        assert!((95_000.0..115_000.0).contains(&limit), "{limit}");
    }
}
