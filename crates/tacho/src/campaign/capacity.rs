//! `tacho capacity`: the highest load that meets objectives, as an interval.

use clap::Args;
use tacho_lab::campaign::Subject;
use tacho_lab::capacity::{CapacityRequest, SearchPlan, run_search};
use tacho_record::RunKind;
use tacho_scenario::steps::{number, shown};
use tacho_scenario::threshold::Threshold;
use tacho_scenario::{Scenario, ScenarioError, TimeSpan, VarValue};

use super::{HOLD, Opened, parse_percent};
use crate::exit::{self, Failure};
use crate::run::{LoadArguments, OutputArguments, TargetArguments};
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

fn parse_value(text: &str) -> Result<f64, String> {
    number(text)
        .filter(|value| *value > 0.0)
        .ok_or_else(|| format!("'{text}' is not a number above 0"))
}

/// Searches; the exit code is 0 for a confirmed result.
pub(crate) fn capacity(arguments: &CapacityArguments) -> Result<u8, Failure> {
    let start = arguments.first_scenario(None, HOLD)?;
    let plan = arguments.plan(&start)?;
    let first = arguments.first_scenario(Some(plan.from), arguments.trial)?;
    let about = Subject::scenario(&first);
    let sides = [(&arguments.targets, &first)];
    let mut campaign = Opened::begin(RunKind::Capacity, about, &sides, &arguments.output)?;
    let request = CapacityRequest {
        variable: &arguments.variable,
        plan,
        objectives: &arguments.objectives,
        pause: arguments.pause.0,
        with_profile: !arguments.no_profile,
        scenario: &|value, hold| arguments.scenario(Some(value), hold),
    };
    let finished = run_search(campaign.driver(), &request, &first.name)?;
    campaign.end(finished)
}

impl CapacityArguments {
    /// The scenario with a value of the variable and a length.
    fn scenario(&self, value: Option<f64>, hold: TimeSpan) -> Result<Scenario, ScenarioError> {
        let vars: Vec<(String, String)> =
            value.map(|value| (self.variable.clone(), shown(value))).into_iter().collect();
        let mut scenario = self.load.try_scenario(&self.scenario, &vars, &self.targets)?;
        scenario.phases.measure = hold;
        Ok(scenario)
    }

    /// The same, where this machine must be able to run it.
    fn first_scenario(&self, value: Option<f64>, hold: TimeSpan) -> Result<Scenario, Failure> {
        self.scenario(value, hold).map_err(|error| match error.shortage() {
            Some(needs) => Failure::new(exit::INVALID_CONFIG, format!("the first trial {needs}")),
            None => failure(&error),
        })
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
