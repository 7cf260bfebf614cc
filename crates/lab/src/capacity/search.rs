//! What to try next.

use tacho_record::TrialOutcome;

/// How a search goes about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// The first value to try.
    pub from: f64,
    /// The lowest one that makes sense; below it the search gives up.
    pub floor: f64,
    /// The highest one that makes sense; the search ends where it passes.
    pub ceiling: f64,
    /// How near the bounds must come, as a share of the upper one.
    pub precision: f64,
    /// Length of the first trials in seconds.
    pub trial_s: f64,
    /// Length of the last ones.
    pub hold_s: f64,
    /// Only whole numbers make sense.
    pub whole: bool,
    /// Passes of full length that the result needs.
    pub confirm: u32,
    /// Trials after which the search gives up.
    pub trials_max: usize,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Finding a value that passes and one that fails.
    Bracket,
    /// Narrowing the bracket.
    Bisect,
    /// Making sure, at full length, that the upper bound fails.
    Verify,
    /// Making sure, at full length, that the lower bound passes.
    Confirm,
}

/// A trial to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Try {
    /// The value of the variable.
    pub value: f64,
    /// Length of its measured window in seconds.
    pub hold_s: f64,
    /// What it is for.
    pub purpose: Purpose,
}

/// Why a search has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// The bounds are near enough and confirmed.
    Found,
    /// The ceiling passes.
    Ceiling,
    /// Nothing passes, down to the floor.
    NothingPasses,
    /// Too many trials: outcomes contradict each other.
    GaveUp,
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Search {
    plan: SearchPlan,
    /// All trials so far.
    history: Vec<(Try, TrialOutcome)>,
    /// The highest value that counts as passed.
    low: Option<f64>,
    /// The lowest value above it that does not pass, and whose limit it is.
    high: Option<Upper>,
    /// Passes of full length at `low`.
    confirmed: u32,
    /// Length of the next trial.
    length_s: f64,
    /// Factor from one bracketing trial to the next.
    stride: f64,
    /// The last trial said nothing about the broker and is made again, and how often it was.
    again: Option<(Try, u32)>,
}

/// An upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Upper {
    value: f64,
    /// The generator could not carry it, so nothing is known about the broker there.
    generator: bool,
    /// It was seen in a trial of full length.
    verified: bool,
}

impl SearchPlan {
    /// Factor of the bracketing trials.
    const STRIDE: f64 = 2.0;
    /// Factor by which bisecting trials grow.
    const GROWTH: f64 = 2.0;

    fn near_enough(&self, low: f64, high: f64) -> bool {
        high - low <= self.precision * high || self.whole && high - low <= 1.0
    }

    /// The value that a variable can be set to, five digits of it.
    fn rounded(&self, value: f64) -> f64 {
        if self.whole || value >= 10_000.0 {
            return value.round();
        }
        let digits = 4 - value.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
        let factor = 10_f64.powi(digits);
        (value * factor).round() / factor
    }
}

impl Search {
    /// Times in a row that the generator must be the bottleneck before that is its limit.
    const TIMES: u32 = 3;

    /// Begins.
    pub fn new(plan: SearchPlan) -> Self {
        Self {
            length_s: plan.trial_s.min(plan.hold_s),
            plan,
            history: Vec::new(),
            low: None,
            high: None,
            confirmed: 0,
            stride: SearchPlan::STRIDE,
            again: None,
        }
    }

    /// The next trial, or why there is none.
    ///
    /// # Errors
    /// The search has ended; that is no failure.
    pub fn next(&self) -> Result<Try, SearchEnd> {
        if self.history.len() >= self.plan.trials_max {
            return Err(SearchEnd::GaveUp);
        }
        if let Some((again, _)) = self.again {
            return Ok(again);
        }
        let trial = |value: f64, hold_s: f64, purpose| {
            let value = self.plan.rounded(value).clamp(self.plan.floor, self.plan.ceiling);
            Ok(Try { value, hold_s, purpose })
        };
        match (self.low, self.high) {
            (None, None) => trial(self.plan.from, self.length_s, Purpose::Bracket),
            (Some(low), None) if low >= self.plan.ceiling => match self.is_confirmed() {
                true => Err(SearchEnd::Ceiling),
                false => trial(low, self.plan.hold_s, Purpose::Confirm),
            },
            (Some(low), None) => trial(low * self.stride, self.length_s, Purpose::Bracket),
            (None, Some(high)) if high.value <= self.plan.floor => Err(SearchEnd::NothingPasses),
            (None, Some(high)) => trial(high.value / self.stride, self.length_s, Purpose::Bracket),
            (Some(low), Some(high)) if !self.plan.near_enough(low, high.value) => {
                let middle = self.plan.rounded((low * high.value).sqrt());
                match low < middle && middle < high.value {
                    true => trial(middle, self.length_s, Purpose::Bisect),
                    // Nothing lies between them that a variable could be set to.
                    false => self.closing(low, high),
                }
            }
            (Some(low), Some(high)) => self.closing(low, high),
        }
    }

    /// The trials at the end: both bounds at full length.
    fn closing(&self, low: f64, high: Upper) -> Result<Try, SearchEnd> {
        let trial = |value, purpose| Ok(Try { value, hold_s: self.plan.hold_s, purpose });
        match (high.verified, self.is_confirmed()) {
            (false, _) => trial(high.value, Purpose::Verify),
            (true, false) => trial(low, Purpose::Confirm),
            (true, true) => Err(SearchEnd::Found),
        }
    }

    fn is_confirmed(&self) -> bool {
        self.confirmed >= self.plan.confirm
    }

    /// Takes the outcome of the trial that [`Search::next`] asked for.
    pub fn answer(&mut self, trial: Try, outcome: TrialOutcome) {
        let full = trial.hold_s >= self.plan.hold_s;
        self.history.push((trial, outcome));
        let made = self.again.take().map_or(1, |(_, made)| made + 1);
        match outcome {
            TrialOutcome::Pass => self.passed(trial, full),
            TrialOutcome::Fail => {
                self.failed(Upper { value: trial.value, generator: false, verified: full });
            }
            // Once may be the machine's mood; again and again is the generator's limit.
            TrialOutcome::GeneratorBound if made < Self::TIMES => {
                self.again = Some((trial, made));
            }
            TrialOutcome::GeneratorBound => {
                self.failed(Upper { value: trial.value, generator: true, verified: true });
            }
        }
        if trial.purpose == Purpose::Bisect {
            self.length_s = (self.length_s * SearchPlan::GROWTH).min(self.plan.hold_s);
        }
    }

    fn passed(&mut self, trial: Try, full: bool) {
        if self.low != Some(trial.value) {
            (self.low, self.confirmed) = (Some(trial.value), 0);
        }
        if full {
            self.confirmed += 1;
        }
        if self.high.is_some_and(|high| high.value <= trial.value) {
            // A failure that did not repeat: the limit is a little higher.
            self.high = None;
            self.widen();
        }
    }

    fn failed(&mut self, upper: Upper) {
        self.high = Some(upper);
        if self.low.is_some_and(|low| low >= upper.value) {
            // A pass that did not repeat: the limit is a little lower.
            let below = self.history.iter().filter(|(trial, outcome)| {
                *outcome == TrialOutcome::Pass && trial.value < upper.value
            });
            let full = self.plan.hold_s;
            let low = below.clone().map(|(trial, _)| trial.value).reduce(f64::max);
            let passes = |(trial, _): &&(Try, TrialOutcome)| {
                Some(trial.value) == low && trial.hold_s >= full
            };
            self.confirmed = below.clone().filter(passes).count() as u32;
            self.low = low;
            self.widen();
        }
    }

    /// After a contradiction the search goes on near by, at full length, with strides that grow
    /// again.
    fn widen(&mut self) {
        self.length_s = self.plan.hold_s;
        self.stride = match self.stride {
            stride if stride >= SearchPlan::STRIDE => 1.0 + 2.0 * self.plan.precision,
            stride => (stride * stride).min(SearchPlan::STRIDE),
        };
    }

    /// The highest value that passed.
    pub fn highest_pass(&self) -> Option<f64> {
        self.low
    }

    /// The lowest value above it at which the broker failed.
    pub fn lowest_fail(&self) -> Option<f64> {
        self.lowest(TrialOutcome::Fail)
    }

    /// The lowest value above it that the generator could not carry, when that is what ends the
    /// interval.
    pub fn lowest_generator_bound(&self) -> Option<f64> {
        self.high.filter(|high| high.generator).map(|high| high.value)
    }

    fn lowest(&self, wanted: TrialOutcome) -> Option<f64> {
        let above = |value: f64| self.low.is_none_or(|low| value > low);
        self.history
            .iter()
            .filter(|(trial, outcome)| *outcome == wanted && above(trial.value))
            .map(|(trial, _)| trial.value)
            .reduce(f64::min)
    }

    /// Passes of full length at the highest pass.
    pub fn confirmed(&self) -> u32 {
        self.confirmed
    }

    /// How many trials were made.
    pub fn trials(&self) -> usize {
        self.history.len()
    }
}

impl Purpose {
    /// As the record writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bracket => "bracket",
            Self::Bisect => "bisect",
            Self::Verify => "verify",
            Self::Confirm => "confirm",
        }
    }
}
