//! What to try next.

use tacho_record::{Purpose, SearchEnd, TrialOutcome};

use super::posterior::{Posterior, TAIL};

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

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Search {
    plan: SearchPlan,
    /// All trials so far.
    history: Vec<(Try, TrialOutcome)>,
    /// What they say about the limit.
    posterior: Posterior,
    /// The lowest value that the generator could not carry, time after time.
    generator: Option<f64>,
    /// Length of the next trial.
    length_s: f64,
    /// The last trial says nothing about the broker and is made again.
    again: Option<RepeatedTrial>,
    /// Trials in which the machine was disturbed.
    disturbed: usize,
}

/// A trial that is made again.
#[derive(Clone, Copy, Debug)]
struct RepeatedTrial {
    trial: Try,
    /// Times that the generator was its bottleneck.
    generator: u32,
    /// Times that the machine was disturbed, in a row.
    disturbed: u32,
}

/// Outcomes at one value.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    passes: u32,
    fails: u32,
}

impl SearchPlan {
    /// Factor of the bracketing trials.
    const STRIDE: f64 = 2.0;
    /// Factor by which trials grow after the bracketing.
    const GROWTH: f64 = 2.0;
    /// How near the bounds come before doubt about them is settled, in multiples of the precision:
    /// one that does not hold is replaced by one further out.
    const NEAR: f64 = 0.7;
    /// Widest interval that counts as found, in multiples of the precision: where chance decides
    /// within more than the precision asked for, no more trials make it narrower.
    const WIDEST: f64 = 4.0;

    /// Do the bounds lie within so many multiples of the precision?
    fn within(&self, multiples: f64, low: f64, high: f64) -> bool {
        high - low <= multiples * self.precision * high || self.whole && high - low <= 1.0
    }

    /// The value that a variable can be set to, five digits of it.
    fn rounded(&self, value: f64) -> f64 {
        let value = value.clamp(self.floor, self.ceiling);
        if self.whole || value >= 10_000.0 {
            return value.round();
        }
        let digits = 4 - value.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
        let factor = 10_f64.powi(digits);
        (value * factor).round() / factor
    }
}

impl Search {
    /// Times that the generator must be the bottleneck of a trial before that is its limit.
    const GENERATOR_TIMES: u32 = 3;
    /// Times in a row that a disturbed trial is made again.
    const DISTURBED_ROW_MAX: u32 = 5;
    /// Share of all trials that may be disturbed.
    const DISTURBED_SHARE: f64 = 0.5;
    /// Trials at a bound after which a bound further out is tried instead.
    const TRIALS_AT_BOUND: u32 = 4;

    /// Begins.
    pub fn new(plan: SearchPlan) -> Self {
        Self {
            length_s: plan.trial_s.min(plan.hold_s),
            posterior: Posterior::new(plan.precision),
            plan,
            history: Vec::new(),
            generator: None,
            again: None,
            disturbed: 0,
        }
    }

    /// The next trial, or why there is none.
    ///
    /// # Errors
    /// The search has ended; that is no failure.
    pub fn next(&self) -> Result<Try, SearchEnd> {
        let disturbed_max = self.plan.trials_max as f64 * Self::DISTURBED_SHARE;
        if self.disturbed as f64 >= disturbed_max
            || self.again.is_some_and(|again| again.disturbed > Self::DISTURBED_ROW_MAX)
        {
            return Err(SearchEnd::Disturbed);
        }
        if self.history.len() >= self.plan.trials_max {
            return Err(SearchEnd::GaveUp);
        }
        if let Some(again) = self.again {
            return Ok(again.trial);
        }
        match (self.any_pass(), self.any_bound()) {
            (None, None) => self.attempt(self.plan.from, Purpose::Bracket),
            (Some(low), None) => match low >= self.plan.ceiling {
                true => self.at_ceiling(),
                false => self.attempt(low * SearchPlan::STRIDE, Purpose::Bracket),
            },
            (None, Some(high)) => match high <= self.plan.floor {
                true => self.at_floor(),
                false => self.attempt(high / SearchPlan::STRIDE, Purpose::Bracket),
            },
            (Some(_), Some(_)) if self.length_s < self.plan.hold_s => {
                self.attempt(self.estimate(0.5), Purpose::Bisect)
            }
            (Some(_), Some(_)) => self.narrow(),
        }
    }

    fn attempt(&self, value: f64, purpose: Purpose) -> Result<Try, SearchEnd> {
        let value = self.plan.rounded(self.below_generator(value));
        Ok(Try { value, hold_s: self.length_s, purpose })
    }

    fn full(&self, value: f64, purpose: Purpose) -> Result<Try, SearchEnd> {
        Ok(Try { value: self.plan.rounded(value), hold_s: self.plan.hold_s, purpose })
    }

    fn below_generator(&self, value: f64) -> f64 {
        match (self.generator, self.any_pass()) {
            (Some(generator), Some(low)) if value >= generator => (low * generator).sqrt(),
            _ => value,
        }
    }

    /// The ceiling passed once; does it pass as often as asked?
    fn at_ceiling(&self) -> Result<Try, SearchEnd> {
        match self.tally(self.plan.ceiling).passes >= self.plan.confirm {
            true => Err(SearchEnd::Ceiling),
            false => self.full(self.plan.ceiling, Purpose::Confirm),
        }
    }

    /// The floor failed once; does it fail again?
    fn at_floor(&self) -> Result<Try, SearchEnd> {
        let is_generators = self.generator.is_some_and(|generator| generator <= self.plan.floor);
        match is_generators || self.tally(self.plan.floor).fails >= 2 {
            true => Err(SearchEnd::NothingPasses),
            false => self.full(self.plan.floor, Purpose::Verify),
        }
    }

    /// At full length: from both sides towards the limit, then against the doubt that is left.
    fn narrow(&self) -> Result<Try, SearchEnd> {
        let middle = self.estimate(0.5);
        let tried = |passed: bool| {
            self.full_trials()
                .filter(move |(_, outcome)| (*outcome == TrialOutcome::Pass) == passed)
        };
        let values = |passed| tried(passed).map(|(trial, _)| trial.value);
        // A bound next to the middle counts on its own side until more is known.
        let near = middle * (1.0 + self.plan.precision);
        let mostly = |value: &f64| self.tally(*value).is_mostly_passed();
        let low = values(true).filter(mostly).filter(|value| *value <= near).reduce(f64::max);
        let fails = values(false).filter(|value| *value > low.unwrap_or(middle));
        let high = fails.chain(self.generator).reduce(f64::min);
        match (low, high) {
            (None, _) => self.full(self.lower_side(high), Purpose::Bisect),
            (Some(low), None) => self.full(self.upper_side(low), Purpose::Bisect),
            (Some(low), Some(high)) if !self.plan.within(SearchPlan::NEAR, low, high) => {
                let between = self.plan.rounded((low * high).sqrt());
                match low < between && between < high {
                    true => self.full(between, Purpose::Bisect),
                    // Nothing lies between them that a variable could be set to.
                    false => self.settle(low, high),
                }
            }
            (Some(low), Some(high)) => self.settle(low, high),
        }
    }

    /// A value below the limit, by what is known; it has not been tried at full length.
    fn lower_side(&self, high: Option<f64>) -> f64 {
        let value = self.estimate(0.25);
        match high {
            Some(high) if self.plan.rounded(value) >= high => high / (1.0 + self.plan.precision),
            _ => value,
        }
    }

    /// The same, above the limit.
    fn upper_side(&self, low: f64) -> f64 {
        let value = self.estimate(0.75);
        match self.plan.rounded(value) <= low {
            true if self.plan.whole => (low * (1.0 + self.plan.precision)).max(low + 1.0),
            true => low * (1.0 + self.plan.precision),
            false => value,
        }
    }

    /// Bounds next to the limit: tries the one that is in doubt, or one further out.
    fn settle(&self, low: f64, high: f64) -> Result<Try, SearchEnd> {
        let generators = self.generator.filter(|generator| *generator <= high);
        if let Some(trial) = self.doubtful(low, high, Self::TRIALS_AT_BOUND) {
            return trial;
        }
        let Some(surely) = self.surely_passes() else {
            return self.full(self.further_out(TAIL / 2.0, low), Purpose::Confirm);
        };
        let Some(bound) = generators.or_else(|| self.surely_fails()) else {
            return self.full(self.further_out(1.0 - TAIL / 2.0, high), Purpose::Verify);
        };
        let tally = self.tally(surely);
        if tally.passes < self.plan.confirm && tally.passes + 1 >= tally.fails {
            return self.full(surely, Purpose::Confirm);
        }
        if self.plan.within(1.0, surely, bound) {
            return Err(SearchEnd::Found);
        }
        if let Some(trial) = self.doubtful(low, high, 2 * Self::TRIALS_AT_BOUND) {
            return trial;
        }
        match self.plan.within(SearchPlan::WIDEST, surely, bound) {
            true => Err(SearchEnd::Found),
            // The interval is wide by chance: its ends say most.
            false if self.history.len().is_multiple_of(2) => {
                self.full(self.estimate(2.0 * TAIL), Purpose::Confirm)
            }
            false => self.full(self.estimate(1.0 - 2.0 * TAIL), Purpose::Verify),
        }
    }

    /// A trial at a bound that is in doubt and was tried less than `times` times.
    fn doubtful(&self, low: f64, high: f64, times: u32) -> Option<Result<Try, SearchEnd>> {
        let may_try = |value| self.tally(value).trials() < times;
        if self.posterior.below(low) > TAIL && may_try(low) {
            return Some(self.full(low, Purpose::Confirm));
        }
        let is_brokers = self.generator.is_none_or(|generator| generator > high);
        let is_in_doubt = is_brokers && self.posterior.above(high) > TAIL && may_try(high);
        is_in_doubt.then(|| self.full(high, Purpose::Verify))
    }

    /// A value at this probability of the limit, and beyond `bound`, where trials do not settle.
    fn further_out(&self, probability: f64, bound: f64) -> f64 {
        let value = self.estimate(probability);
        let outward = match probability < 0.5 {
            true => value.min(bound / (1.0 + self.plan.precision / 2.0)),
            false => value.max(bound * (1.0 + self.plan.precision / 2.0)),
        };
        match self.plan.whole && (outward - bound).abs() < 1.0 {
            true => bound + (outward - bound).signum(),
            false => outward,
        }
    }

    fn estimate(&self, probability: f64) -> f64 {
        let value = self.posterior.quantile(probability).unwrap_or(self.plan.from);
        self.below_generator(value)
    }

    /// Takes the outcome of the trial that [`Search::next`] asked for.
    pub fn answer(&mut self, trial: Try, outcome: TrialOutcome) {
        let full = trial.hold_s >= self.plan.hold_s;
        self.history.push((trial, outcome));
        let made = self.again.take().unwrap_or(RepeatedTrial { trial, generator: 0, disturbed: 0 });
        match outcome {
            TrialOutcome::Pass | TrialOutcome::Fail => {
                self.posterior.add(trial.value, full, outcome);
                // What passes, the generator can carry.
                let carried = |limit: &f64| outcome != TrialOutcome::Pass || *limit > trial.value;
                self.generator = self.generator.filter(carried);
            }
            TrialOutcome::Disturbed => {
                self.disturbed += 1;
                self.again = Some(RepeatedTrial { disturbed: made.disturbed + 1, ..made });
                return;
            }
            // Once may be the machine's mood; again and again is the generator's limit.
            TrialOutcome::GeneratorBound if made.generator + 1 < Self::GENERATOR_TIMES => {
                self.again =
                    Some(RepeatedTrial { generator: made.generator + 1, disturbed: 0, ..made });
                return;
            }
            TrialOutcome::GeneratorBound => {
                let lowest = self.generator.map_or(trial.value, |known| known.min(trial.value));
                self.generator = Some(lowest);
            }
        }
        if trial.purpose == Purpose::Bisect {
            self.length_s = (self.length_s * SearchPlan::GROWTH).min(self.plan.hold_s);
        }
    }

    /// The highest value that ever passed.
    fn any_pass(&self) -> Option<f64> {
        self.values(TrialOutcome::Pass).reduce(f64::max)
    }

    /// The lowest value that ever failed, or that the generator could not carry.
    fn any_bound(&self) -> Option<f64> {
        self.values(TrialOutcome::Fail).chain(self.generator).reduce(f64::min)
    }

    fn values(&self, wanted: TrialOutcome) -> impl Iterator<Item = f64> {
        let of_kind = self.history.iter().filter(move |(_, outcome)| *outcome == wanted);
        of_kind.map(|(trial, _)| trial.value)
    }

    /// Trials of full length that say something about the broker.
    fn full_trials(&self) -> impl Iterator<Item = &(Try, TrialOutcome)> {
        self.history.iter().filter(|(trial, outcome)| {
            let tells = matches!(outcome, TrialOutcome::Pass | TrialOutcome::Fail);
            tells && trial.hold_s >= self.plan.hold_s
        })
    }

    fn tally(&self, value: f64) -> Tally {
        let mut tally = Tally::default();
        for (trial, outcome) in self.full_trials() {
            match (trial.value == value, outcome) {
                (true, TrialOutcome::Pass) => tally.passes += 1,
                (true, _) => tally.fails += 1,
                (false, _) => {}
            }
        }
        tally
    }

    /// The highest value that passed at full length and that the limit lies below with a
    /// probability of 2.5 % at most.
    fn surely_passes(&self) -> Option<f64> {
        let sure = |value: &f64| self.posterior.below(*value) <= TAIL;
        let passed = |value: &f64| self.tally(*value).passes > 0;
        let tried = self.full_trials().map(|(trial, _)| trial.value);
        tried.filter(passed).filter(sure).reduce(f64::max)
    }

    /// The lowest value that failed at full length and that the limit lies above with a
    /// probability of 2.5 % at most.
    fn surely_fails(&self) -> Option<f64> {
        let sure = |value: &f64| self.posterior.above(*value) <= TAIL;
        let failed = |value: &f64| self.tally(*value).fails > 0;
        let tried = self.full_trials().map(|(trial, _)| trial.value);
        tried.filter(failed).filter(sure).reduce(f64::min)
    }

    /// Lower end of the 95 % interval: the highest value that passes for sure.
    pub fn highest_pass(&self) -> Option<f64> {
        match self.any_bound() {
            Some(_) => self.surely_passes(),
            None => self.any_pass(),
        }
    }

    /// Upper end of the 95 % interval: the lowest value at which the broker fails for sure.
    pub fn lowest_fail(&self) -> Option<f64> {
        match self.any_pass() {
            Some(_) => self.surely_fails(),
            None => self.values(TrialOutcome::Fail).reduce(f64::min),
        }
    }

    /// The lowest value that the generator could not carry, when that is what ends the interval.
    pub fn lowest_generator_bound(&self) -> Option<f64> {
        self.generator.filter(|generator| self.lowest_fail().is_none_or(|fail| fail > *generator))
    }

    /// Passes of full length at the highest pass.
    pub fn confirmed(&self) -> u32 {
        self.highest_pass().map_or(0, |value| self.tally(value).passes)
    }

    /// How many trials were made.
    pub fn trials(&self) -> usize {
        self.history.len()
    }

    /// In how many of them the machine was disturbed.
    pub fn disturbed(&self) -> usize {
        self.disturbed
    }
}

impl Tally {
    fn is_mostly_passed(self) -> bool {
        self.passes > self.fails
    }

    fn trials(self) -> u32 {
        self.passes + self.fails
    }
}
