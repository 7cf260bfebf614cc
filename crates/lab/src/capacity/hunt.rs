//! The search for a capacity, performed: trials, their judgement, and the profile at parts of the
//! result.

use std::time::Duration;

use tacho_record::{
    Capacity, Cause, Observation, Obstacle, Purpose, SearchEnd, Series, Severity, Trial,
    TrialOutcome, Verdict,
};
use tacho_scenario::steps::{shown, unit_of};
use tacho_scenario::threshold::{Metric, Threshold};
use tacho_scenario::{Scenario, ScenarioError, TimeSpan};

use super::judge::{Judgement, default_objectives, judge};
use super::search::{Search, SearchPlan, Try};
use crate::campaign::{CampaignError, CampaignNews, Driver, Finished, Place, Step, StepNumber};

/// Name of the series of trials.
const TRIALS: &str = "trials";
/// Name of the series of runs at parts of the capacity.
const PROFILE: &str = "profile";
/// Parts of the capacity at which latency is recorded.
const PROFILE_PERCENT: [f64; 3] = [10.0, 50.0, 90.0];
/// Factor by which a pause is longer after a trial that left messages over.
const PAUSE_FACTOR_UNDRAINED: u32 = 5;

/// A search to perform.
pub struct CapacityRequest<'a> {
    /// The variable whose highest value is searched.
    pub variable: &'a str,
    /// How to search.
    pub plan: SearchPlan,
    /// What a load must meet to pass; without any, [`default_objectives`].
    pub objectives: &'a [Threshold],
    /// Time between two trials, without clients.
    pub pause: Duration,
    /// Record latency at parts of the result?
    pub with_profile: bool,
    /// The scenario with a value of the variable and a length of the measured phase.
    pub scenario: &'a TrialScenario<'a>,
}

/// Makes the scenario of a trial, from the value of the variable and the length of the measured
/// phase; else what this machine lacks for it.
pub type TrialScenario<'a> =
    dyn Fn(f64, TimeSpan) -> Result<Result<Scenario, Obstacle>, ScenarioError> + 'a;

/// Searches the highest load that meets the objectives.
///
/// # Errors
/// When something is wrong that no broker is to blame for.
pub fn run_search(
    mut driver: Driver<'_>,
    request: &CapacityRequest<'_>,
    scenario: &str,
) -> Result<Finished, CampaignError> {
    for (name, label) in [(TRIALS, "trials"), (PROFILE, "latency at parts of the capacity")] {
        driver.campaign.series(Series {
            name: name.to_owned(),
            label: label.to_owned(),
            figure: name.to_owned(),
            scenario: scenario.to_owned(),
            variable: Some(request.variable.to_owned()),
            unit: unit_of(request.variable).to_owned(),
            ..Series::default()
        });
    }
    let objectives = match request.objectives {
        [] => default_objectives(),
        given => given.to_vec(),
    };
    let mut hunt = Hunt {
        request,
        driver,
        objectives,
        trials: Vec::new(),
        whose_cpu: String::new(),
        needs: None,
    };
    let mut search = Search::new(request.plan);
    let end = hunt.search(&mut search)?;
    if let (Some(pass), true) = (search.highest_pass(), request.with_profile) {
        hunt.profile(pass)?;
    }
    hunt.finish(&search, end)
}

/// A search under way.
struct Hunt<'a, 'b> {
    request: &'a CapacityRequest<'a>,
    driver: Driver<'b>,
    objectives: Vec<Threshold>,
    trials: Vec<Trial>,
    whose_cpu: String,
    /// What this machine lacks for a value that was to be tried.
    needs: Option<(f64, Obstacle)>,
}

impl Hunt<'_, '_> {
    /// Makes trials until the search has ended.
    fn search(&mut self, search: &mut Search) -> Result<SearchEnd, CampaignError> {
        loop {
            let trial = match search.next() {
                Ok(trial) => trial,
                Err(end) => return Ok(end),
            };
            match self.attempt(trial, TRIALS)? {
                Some(outcome) => search.answer(trial, outcome),
                None => return Ok(SearchEnd::CutShort),
            }
        }
    }

    /// Runs one trial. `None` when nothing can be run any more.
    fn attempt(&mut self, trial: Try, series: &str) -> Result<Option<TrialOutcome>, CampaignError> {
        let purpose = trial.purpose.name();
        let (variable, value) = (self.request.variable, shown(trial.value));
        let title = format!("{purpose}: {variable}={value}, {} s", trial.hold_s);
        let scenario = match self.scenario(trial)? {
            Ok(scenario) => scenario,
            Err(needs) => {
                // What the machine cannot offer is the generator's limit, not the broker's.
                self.driver.tell(CampaignNews::Infeasible { title: &title, needs: &needs });
                let judgement = Judgement {
                    outcome: TrialOutcome::GeneratorBound,
                    causes: vec![Cause::NotRun { obstacle: needs.clone() }],
                };
                self.needs = Some((trial.value, needs));
                return Ok(Some(self.record(trial, judgement, None)));
            }
        };
        self.pause();
        let place = Place {
            series: series.to_owned(),
            rung: self.trials.len(),
            label: format!("{purpose} {variable}={value}"),
            x: Some(trial.value),
            ..Place::default()
        };
        let number = StepNumber { number: self.trials.len() + 1, of: None };
        let Some(made) = self.driver.run(Step { scenario, place, title, number })? else {
            return Ok(None);
        };
        if self.driver.is_over() {
            return Ok(None);
        }
        let position = made.position;
        let steps = self.driver.campaign.steps();
        if let Some(step) = position.and_then(|position| steps.get(position)) {
            self.whose_cpu = step.whose_cpu.clone().unwrap_or_default();
            self.drop_blind_objectives(position);
        }
        let judgement = judge(&made.outcome.data.record, &self.objectives);
        self.driver.tell(CampaignNews::Judged {
            outcome: judgement.outcome,
            cause: judgement.causes.first(),
        });
        Ok(Some(self.record(trial, judgement, position)))
    }

    /// The scenario of a trial; else what this machine lacks for it.
    fn scenario(&self, trial: Try) -> Result<Result<Scenario, Obstacle>, CampaignError> {
        let hold = TimeSpan(Duration::from_secs_f64(trial.hold_s));
        Ok((self.request.scenario)(trial.value, hold)?)
    }

    /// Waits between two trials.
    fn pause(&self) {
        if self.trials.is_empty() {
            return;
        }
        let is_drained = self.driver.campaign.steps().last().is_none_or(|step| step.drained);
        let factor = if is_drained { 1 } else { PAUSE_FACTOR_UNDRAINED };
        self.driver.pause(self.request.pause * factor);
    }

    /// Keeps a trial that was judged.
    fn record(
        &mut self,
        trial: Try,
        Judgement { outcome, causes }: Judgement,
        step: Option<usize>,
    ) -> TrialOutcome {
        self.trials.push(Trial {
            value: trial.value,
            hold_s: trial.hold_s,
            purpose: trial.purpose,
            outcome,
            reasons: Vec::new(),
            causes,
            step,
        });
        outcome
    }

    /// Of the default objectives, those about figures that cannot be observed here are left out;
    /// the user's own objectives stay, and fail.
    fn drop_blind_objectives(&mut self, position: Option<usize>) {
        if !self.request.objectives.is_empty() || !self.trials.is_empty() {
            return;
        }
        let campaign = &mut self.driver.campaign;
        let step = position.and_then(|position| campaign.steps().get(position));
        if step.is_some_and(|step| step.cpu_percent.is_none()) {
            self.objectives.retain(|objective| objective.metric != Metric::Cpu);
            campaign.remark("cpu_not_observed", Severity::Warning, Observation::CpuNotObserved);
        }
    }

    /// Records latency at parts of the capacity.
    fn profile(&mut self, pass: f64) -> Result<(), CampaignError> {
        let plan = self.request.plan;
        for percent in PROFILE_PERCENT {
            let value = pass * percent / 100.0;
            let value = if plan.whole { value.round().max(1.0) } else { value };
            let trial = Try { value, hold_s: plan.hold_s, purpose: Purpose::Profile };
            if self.driver.is_over() || self.attempt(trial, PROFILE)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn finish(mut self, search: &Search, end: SearchEnd) -> Result<Finished, CampaignError> {
        if let Some((verdict, cause)) = self.ending_cause(search, end) {
            self.driver.campaign.reason(verdict, cause);
        }
        let (request, pass) = (self.request, search.highest_pass());
        let capacity = Capacity {
            variable: request.variable.to_owned(),
            unit: unit_of(request.variable).to_owned(),
            objectives: self.objectives.iter().map(ToString::to_string).collect(),
            tps: self.tps_at(pass),
            whose_cpu: self.whose_cpu,
            highest_pass: pass,
            lowest_fail: search.lowest_fail(),
            lowest_generator_bound: search.lowest_generator_bound(),
            confirmed: search.confirmed(),
            confirm: request.plan.confirm,
            disturbed: search.disturbed() as u32,
            precision: request.plan.precision,
            ending: String::new(),
            end: Some(end),
            trials: self.trials,
        };
        self.driver.finish(Some(capacity))
    }

    /// What the end of the search means for the verdict.
    fn ending_cause(&self, search: &Search, end: SearchEnd) -> Option<(Verdict, Cause)> {
        match end {
            SearchEnd::Found if search.lowest_generator_bound().is_some() => {
                let cause = match &self.needs {
                    Some((_, needs)) => Cause::MachineEndsSearch { needs: needs.clone() },
                    None => Cause::GeneratorEndsSearch,
                };
                Some((Verdict::GeneratorBound, cause))
            }
            SearchEnd::NothingPasses if search.lowest_fail().is_none() => {
                Some((Verdict::GeneratorBound, Cause::GeneratorBoundEverywhere))
            }
            SearchEnd::NothingPasses => Some((Verdict::ThresholdFailed, Cause::NoLoadPasses)),
            SearchEnd::Disturbed => {
                let (trials, disturbed) = (search.trials() as u64, search.disturbed() as u64);
                Some((Verdict::Disturbed, Cause::SearchDisturbed { trials, disturbed }))
            }
            SearchEnd::GaveUp => {
                let trials = search.trials() as u64;
                Some((Verdict::NotSteady, Cause::Contradictions { trials }))
            }
            SearchEnd::Found | SearchEnd::Ceiling | SearchEnd::CutShort => None,
        }
    }

    /// Messages in and out per second in the longest trials at `value`, their mean.
    fn tps_at(&self, value: Option<f64>) -> Option<f64> {
        let passes = self
            .trials
            .iter()
            .filter(|trial| Some(trial.value) == value && trial.outcome == TrialOutcome::Pass);
        let longest = passes.clone().map(|trial| trial.hold_s).reduce(f64::max)?;
        let steps = self.driver.campaign.steps();
        let tps: Vec<f64> = passes
            .filter(|trial| trial.hold_s >= longest)
            .filter_map(|trial| steps.get(trial.step?))
            .map(|step| step.tps)
            .collect();
        let mean = tps.iter().sum::<f64>() / tps.len() as f64;
        (!tps.is_empty()).then(|| (mean * 100.0).round() / 100.0)
    }
}
