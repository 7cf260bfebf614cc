//! `tacho capacity`: the highest load that meets objectives, as an interval.

use std::time::Duration;

use clap::Args;
use tacho_lab::campaign::Place;
use tacho_lab::capacity::{
    Judgement, Purpose, Search, SearchEnd, SearchPlan, Try, default_objectives, judge,
};
use tacho_record::{
    Capacity, Cause, Observation, RunKind, Series, Severity, Trial, TrialOutcome, Verdict,
};
use tacho_report::Lang;
use tacho_scenario::steps::{number, shown, unit_of};
use tacho_scenario::threshold::{Metric, Threshold};
use tacho_scenario::{Scenario, TimeSpan, VarValue};

use super::driver::{Driver, Step};
use super::ladder::HOLD;
use crate::exit::{self, Failure};
use crate::run::{LoadArguments, OutputArguments, TargetArguments};

/// Name of the series of trials.
const TRIALS: &str = "trials";
/// Name of the series of runs at parts of the capacity.
const PROFILE: &str = "profile";
/// Parts of the capacity at which latency is recorded.
const PROFILE_PERCENT: [f64; 3] = [10.0, 50.0, 90.0];
/// Trials after which a search gives up.
const TRIALS_MAX: usize = 60;

#[derive(Debug, Args)]
#[command(after_help = exit::campaign_help())]
pub(crate) struct CapacityArguments {
    /// Name of a scenario (see 'tacho scenario list'), a scenario file or a JMeter plan (.jmx)
    scenario: String,

    /// Condition that a load must meet to pass; may be given several times
    ///
    /// By default 'cpu<=75%', 'p99<10ms', 'loss==0' and 'achieved>=99%'. Figures and comparisons
    /// as with --threshold. A load that breaks the QoS contract or is not sustained never passes.
    #[arg(long = "objective", value_name = "CONDITION", value_parser = Threshold::parse)]
    objectives: Vec<Threshold>,

    /// Variable to maximise
    #[arg(long, value_name = "NAME", default_value = "target_throughput")]
    variable: String,

    /// First value to try; default: the scenario's
    #[arg(long, value_name = "VALUE", value_parser = parse_value)]
    from: Option<f64>,

    /// Highest value to try; default: unbounded
    #[arg(long, value_name = "VALUE", value_parser = parse_value)]
    to: Option<f64>,

    /// Largest distance between the highest pass and the lowest fail
    #[arg(long, value_name = "PERCENT", value_parser = super::ladder::parse_percent,
          default_value = "5%")]
    precision: f64,

    /// Measured time of the first trials; bisecting trials double it up to --hold
    #[arg(long, value_name = "TIME", value_parser = TimeSpan::parse, default_value = "5s")]
    trial: TimeSpan,

    /// Time between two trials, without clients; longer after a trial that left messages queued
    #[arg(long, value_name = "TIME", value_parser = TimeSpan::parse, default_value = "1s")]
    pause: TimeSpan,

    /// Full-length trials that must pass at the result
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=20))]
    confirm: u32,

    /// Skip the runs at 10, 50 and 90 % of the result
    #[arg(long)]
    no_profile: bool,

    #[command(flatten)]
    targets: TargetArguments,

    #[command(flatten)]
    load: LoadArguments,

    #[command(flatten)]
    output: OutputArguments,
}

fn parse_value(text: &str) -> Result<f64, String> {
    number(text)
        .filter(|value| *value > 0.0)
        .ok_or_else(|| format!("'{text}' is not a number above 0"))
}

/// Searches; the exit code is 0 for a confirmed result.
pub(crate) fn capacity(arguments: &CapacityArguments) -> Result<u8, Failure> {
    let start = arguments.scenario(None, HOLD)?;
    let plan = arguments.plan(&start)?;
    let first = arguments.scenario(Some(plan.from), arguments.trial)?;
    let CapacityArguments { targets, output, variable, .. } = arguments;
    let about = (first.name.as_str(), first.description.as_str());
    let driver = Driver::begin(RunKind::Capacity, about, targets, output, &first)?;
    let mut hunt = Hunt {
        arguments,
        driver,
        objectives: arguments.objectives(),
        trials: Vec::new(),
        whose_cpu: String::new(),
        needs: None,
    };
    for (name, label) in [(TRIALS, "trials"), (PROFILE, "latency at parts of the capacity")] {
        hunt.driver.campaign.series(Series {
            name: name.to_owned(),
            label: label.to_owned(),
            figure: name.to_owned(),
            scenario: first.name.clone(),
            variable: Some(variable.clone()),
            unit: unit_of(variable).to_owned(),
            ..Series::default()
        });
    }
    let mut search = Search::new(plan);
    let ending = hunt.search(&mut search)?;
    if let (Some(pass), false) = (search.highest_pass(), arguments.no_profile) {
        hunt.profile(pass, &plan)?;
    }
    hunt.finish(&search, ending)
}

/// A search under way.
struct Hunt<'a> {
    arguments: &'a CapacityArguments,
    driver: Driver<'a>,
    objectives: Vec<Threshold>,
    trials: Vec<Trial>,
    whose_cpu: String,
    /// What this machine lacks for a value that was to be tried.
    needs: Option<(f64, String)>,
}

impl Hunt<'_> {
    /// Makes trials until the search has ended; `None` when it was cut short.
    fn search(&mut self, search: &mut Search) -> Result<Option<SearchEnd>, Failure> {
        loop {
            let trial = match search.next() {
                Ok(trial) => trial,
                Err(ending) => return Ok(Some(ending)),
            };
            match self.attempt(trial, TRIALS, trial.purpose.name())? {
                Some(outcome) => search.answer(trial, outcome),
                None => return Ok(None),
            }
        }
    }

    /// Runs one trial. `None` when nothing can be run any more.
    fn attempt(
        &mut self,
        trial: Try,
        series: &str,
        purpose: &str,
    ) -> Result<Option<TrialOutcome>, Failure> {
        let Self { arguments, driver, .. } = self;
        let hold = TimeSpan(Duration::from_secs_f64(trial.hold_s));
        let (variable, value) = (&arguments.variable, shown(trial.value));
        let title = format!("{purpose}: {variable}={value}, {} s", trial.hold_s);
        let scenario = match arguments.feasible(Some(trial.value), hold)? {
            Ok(scenario) => scenario,
            Err(needs) => {
                // What the machine cannot offer is the generator's limit, not the broker's.
                driver.say(&format!("{title}: {needs}"));
                self.trials.push(Trial {
                    value: trial.value,
                    hold_s: trial.hold_s,
                    purpose: purpose.to_owned(),
                    outcome: TrialOutcome::GeneratorBound,
                    reasons: Vec::new(),
                    causes: vec![Cause::Message(needs.clone())],
                    step: None,
                });
                self.needs = Some((trial.value, needs));
                return Ok(Some(TrialOutcome::GeneratorBound));
            }
        };
        if !self.trials.is_empty() {
            let drained = driver.campaign.steps().last().is_none_or(|step| step.drained);
            driver.setting.pause(arguments.pause.0 * if drained { 1 } else { 5 });
        }
        let place = Place {
            series: series.to_owned(),
            rung: self.trials.len(),
            label: format!("{purpose} {variable}={value}"),
            x: Some(trial.value),
            ..Place::default()
        };
        let Some((outcome, position)) = driver.run(Step { scenario, place, title })? else {
            return Ok(None);
        };
        if driver.is_over() {
            return Ok(None);
        }
        if let Some(step) = position.and_then(|position| driver.campaign.steps().get(position)) {
            self.whose_cpu = step.whose_cpu.clone().unwrap_or_default();
            self.drop_blind_objectives(position);
        }
        let Judgement { outcome, causes } = judge(&outcome.data.record, &self.objectives);
        let verdict = match outcome {
            TrialOutcome::Pass => "pass",
            TrialOutcome::Fail => "fail",
            TrialOutcome::GeneratorBound => "generator bound",
        };
        let why = causes.first().map(|cause| format!(": {}", Lang::En.cause(cause)));
        let why = why.unwrap_or_default();
        self.driver.say(&format!("  {verdict}{why}"));
        self.trials.push(Trial {
            value: trial.value,
            hold_s: trial.hold_s,
            purpose: purpose.to_owned(),
            outcome,
            reasons: Vec::new(),
            causes,
            step: position,
        });
        Ok(Some(outcome))
    }

    /// Of the default objectives, those about figures that cannot be observed here are left out;
    /// the user's own objectives stay, and fail.
    fn drop_blind_objectives(&mut self, position: Option<usize>) {
        if !self.arguments.objectives.is_empty() || !self.trials.is_empty() {
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
    fn profile(&mut self, pass: f64, plan: &SearchPlan) -> Result<(), Failure> {
        for percent in PROFILE_PERCENT {
            let value = pass * percent / 100.0;
            let value = if plan.whole { value.round().max(1.0) } else { value };
            let trial = Try { value, hold_s: plan.hold_s, purpose: Purpose::Confirm };
            if self.driver.is_over() || self.attempt(trial, PROFILE, "profile")?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn finish(mut self, search: &Search, ending: Option<SearchEnd>) -> Result<u8, Failure> {
        let arguments = self.arguments;
        let pass = search.highest_pass();
        let bound = search.lowest_generator_bound();
        let tps = self.tps_at(pass);
        let sentence = match ending {
            None => "the search was cut short",
            Some(SearchEnd::Found) => "the bounds are as near as asked",
            Some(SearchEnd::Ceiling) => "the highest value to try passes",
            Some(SearchEnd::NothingPasses) => "nothing passes, down to the lowest value",
            Some(SearchEnd::GaveUp) => "outcomes contradict each other, the search gave up",
        };
        let campaign = &mut self.driver.campaign;
        match ending {
            Some(SearchEnd::Found) if bound.is_some() => campaign.reason(
                Verdict::GeneratorBound,
                match &self.needs {
                    Some((_, needs)) => Cause::MachineEndsSearch { needs: needs.to_string() },
                    None => Cause::GeneratorEndsSearch,
                },
            ),
            Some(SearchEnd::NothingPasses) if search.lowest_fail().is_none() => {
                campaign.reason(Verdict::GeneratorBound, Cause::GeneratorBoundEverywhere);
            }
            Some(SearchEnd::NothingPasses) => {
                campaign.reason(Verdict::ThresholdFailed, Cause::NoLoadPasses);
            }
            Some(SearchEnd::GaveUp) => {
                let trials = search.trials() as u64;
                campaign.reason(Verdict::NotSteady, Cause::Contradictions { trials });
            }
            Some(SearchEnd::Found | SearchEnd::Ceiling) | None => {}
        }
        let capacity = Capacity {
            variable: arguments.variable.clone(),
            unit: unit_of(&arguments.variable).to_owned(),
            objectives: self.objectives.iter().map(ToString::to_string).collect(),
            whose_cpu: self.whose_cpu.clone(),
            highest_pass: pass,
            lowest_fail: search.lowest_fail(),
            lowest_generator_bound: bound,
            tps,
            confirmed: search.confirmed(),
            confirm: arguments.confirm,
            precision: arguments.precision / 100.0,
            ending: sentence.to_owned(),
            trials: self.trials,
        };
        self.driver.finish(Some(capacity))
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

impl CapacityArguments {
    /// The objectives asked for, or the default ones.
    fn objectives(&self) -> Vec<Threshold> {
        match self.objectives.is_empty() {
            true => default_objectives(),
            false => self.objectives.clone(),
        }
    }

    /// The scenario with a value of the variable and a length.
    fn feasible(
        &self,
        value: Option<f64>,
        hold: TimeSpan,
    ) -> Result<Result<Scenario, String>, Failure> {
        let vars: Vec<(String, String)> =
            value.map(|value| (self.variable.clone(), shown(value))).into_iter().collect();
        let scenario = self.load.feasible(&self.scenario, &vars, &self.targets)?;
        Ok(scenario.map(|mut scenario| {
            scenario.phases.measure = hold;
            scenario
        }))
    }

    /// The same, where this machine must be able to run it.
    fn scenario(&self, value: Option<f64>, hold: TimeSpan) -> Result<Scenario, Failure> {
        self.feasible(value, hold)?
            .map_err(|needs| Failure::new(exit::INVALID_CONFIG, format!("the first trial {needs}")))
    }

    fn plan(&self, start: &Scenario) -> Result<SearchPlan, Failure> {
        let invalid = |sentence: String| Failure::new(exit::INVALID_CONFIG, sentence);
        let variable = &self.variable;
        let (own, whole) = match start.vars.get(variable) {
            Some(VarValue::Integer(value)) => (*value as f64, true),
            Some(VarValue::Float(value)) => (*value, false),
            Some(other) => {
                return Err(invalid(format!(
                    "--variable {variable}: it is '{other}', and only a number can be searched"
                )));
            }
            None => {
                let names: Vec<&str> = start.vars.keys().map(String::as_str).collect();
                return Err(invalid(format!(
                    "--variable {variable}: the scenario has no such variable, only {}",
                    names.join(", ")
                )));
            }
        };
        let from = self.from.unwrap_or(own).max(if whole { 1.0 } else { f64::MIN_POSITIVE });
        let ceiling = self.to.unwrap_or(1e9);
        if ceiling < from {
            return Err(invalid(format!(
                "--to {} is below --from {}: raise it, or lower --from",
                shown(ceiling),
                shown(from)
            )));
        }
        let hold = self.load.adjust.hold.unwrap_or(HOLD);
        Ok(SearchPlan {
            from,
            // 1/1024 of the start: below it the search reports that no load passes.
            floor: if whole { (from / 1024.0).round().max(1.0) } else { from / 1024.0 },
            ceiling,
            precision: self.precision / 100.0,
            trial_s: self.trial.0.min(hold.0).as_secs_f64().max(0.1),
            hold_s: hold.0.as_secs_f64(),
            whole,
            confirm: self.confirm,
            trials_max: TRIALS_MAX,
        })
    }
}
