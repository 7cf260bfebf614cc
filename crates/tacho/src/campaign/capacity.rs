//! `tacho capacity`: the highest load that meets objectives, as an interval.

use clap::Args;
use tacho_lab::campaign::Subject;
use tacho_lab::capacity::{CapacityRequest, SearchPlan, run_search};
use tacho_record::{Obstacle, RunKind};
use tacho_report::Lang;
use tacho_scenario::steps::{number, shown};
use tacho_scenario::threshold::Threshold;
use tacho_scenario::{Scenario, ScenarioError, TimeSpan, VarValue};

use super::{HOLD, Opened, parse_percent};
use crate::exit::{self, Failure};
use crate::run::{Fitting, LoadArguments, OutputArguments, TargetArguments};
use crate::scenario::failure;

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
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent,
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

/// A search needs no advice on a smaller load: it finds one.
fn without_remedy(obstacle: Obstacle) -> Obstacle {
    match obstacle {
        Obstacle::Lacks { shortages, rates, .. } => {
            Obstacle::Lacks { shortages, rates, remedy: None }
        }
        other => other,
    }
}

fn parse_value(text: &str) -> Result<f64, String> {
    number(text)
        .filter(|value| *value > 0.0)
        .ok_or_else(|| format!("'{text}' is not a number above 0"))
}

/// Searches; the exit code is 0 for a confirmed result.
pub(crate) fn capacity(arguments: &CapacityArguments) -> Result<u8, Failure> {
    let (plan, fitting) = (arguments.whole_plan()?, arguments.fitting()?);
    let scenario = |value, hold| arguments.trial(&fitting, value, hold);
    let first = arguments.first_trial(&plan, &fitting)?;
    let about = Subject::scenario(&first);
    let sides = [(&arguments.targets, &first)];
    let mut campaign = Opened::begin(RunKind::Capacity, about, &sides, &arguments.output)?;
    campaign.keep_source(&arguments.scenario)?;
    let request = CapacityRequest {
        variable: &arguments.variable,
        plan,
        objectives: &arguments.objectives,
        pause: arguments.pause.0,
        with_profile: !arguments.no_profile,
        scenario: &scenario,
    };
    let finished = run_search(campaign.driver(), &request, &first.name)?;
    campaign.end(finished)
}

impl CapacityArguments {
    /// The scenario of the first trial.
    pub(crate) fn first_scenario(&self) -> Result<Scenario, Failure> {
        self.first_trial(&self.whole_plan()?, &self.fitting()?)
    }

    /// Brokers and results.
    pub(crate) fn parts(&self) -> (&TargetArguments, &OutputArguments) {
        (&self.targets, &self.output)
    }

    fn whole_plan(&self) -> Result<SearchPlan, Failure> {
        let start = self.load.try_scenario(&self.scenario, &[], &self.targets);
        self.plan(&start.map_err(|error| failure(&error))?)
    }

    fn fitting(&self) -> Result<Fitting<'_>, Failure> {
        Ok(Fitting::new(&self.load, &self.targets)?.trusting_only_calibrations())
    }

    fn first_trial(&self, plan: &SearchPlan, fitting: &Fitting<'_>) -> Result<Scenario, Failure> {
        let first = self.trial(fitting, plan.from, self.trial).map_err(|error| failure(&error))?;
        first.map_err(|obstacle| {
            let needs = Lang::En.obstacle(&obstacle);
            Failure::new(exit::INVALID_CONFIG, format!("the first trial {needs}"))
        })
    }

    /// The scenario with a value of the variable and a length; else what this machine lacks for it.
    fn trial(
        &self,
        fitting: &Fitting<'_>,
        value: f64,
        hold: TimeSpan,
    ) -> Result<Result<Scenario, Obstacle>, ScenarioError> {
        let vars = [(self.variable.clone(), shown(value))];
        let found = fitting.scenario(&self.scenario, &vars)?;
        Ok(found.map_err(without_remedy).map(|mut scenario| {
            scenario.phases.measure = hold;
            scenario
        }))
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
