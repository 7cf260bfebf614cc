//! `tacho ladder`: one scenario, step by step over the values of a variable.

use clap::Args;
use tacho_lab::campaign::{LadderRequest, Rung, Subject, run_ladder};
use tacho_record::RunKind;
use tacho_scenario::steps::StepSpec;
use tacho_scenario::threshold::Threshold;
use tacho_scenario::{Scenario, TimeSpan};

use super::{HOLD, Opened, parse_percent};
use crate::exit::{self, Failure};
use crate::run::{Fitting, LoadArguments, OutputArguments, TargetArguments};
use crate::scenario::failure;

#[derive(Debug, Args)]
#[command(after_help = exit::campaign_help())]
pub(crate) struct LadderArguments {
    /// Name of a scenario (see 'tacho scenario list'), a scenario file or a JMeter plan (.jmx)
    scenario: String,

    /// The variable and its values: a list (payload_size=128,1024,8192), a range with a step
    /// (target_throughput=5000..30000:5000) or with a factor (publishers=100..1600*2)
    #[arg(value_name = "VARIABLE=VALUES", value_parser = StepSpec::parse)]
    steps: StepSpec,

    /// Time between two steps, without clients
    #[arg(long, value_name = "TIME", value_parser = TimeSpan::parse, default_value = "2s")]
    pause: TimeSpan,

    /// End the ladder after a step in which this holds, for example 'cpu>95%' or 'achieved<99%';
    /// may be given several times. Figures and comparisons as with --threshold
    #[arg(long = "stop-when", value_name = "CONDITION", value_parser = Threshold::parse)]
    stop_when: Vec<Threshold>,

    /// Run the whole ladder this many times
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    repeat: u16,

    /// CPU in percent at which the recommended workload is interpolated
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "75%")]
    recommend_at: f64,

    #[command(flatten)]
    targets: TargetArguments,

    #[command(flatten)]
    load: LoadArguments,

    #[command(flatten)]
    output: OutputArguments,
}

/// Runs a ladder; the exit code tells the worst verdict.
pub(crate) fn ladder(arguments: &LadderArguments) -> Result<u8, Failure> {
    let request = arguments.request()?;
    let first = request.first()?;
    let about = Subject::scenario(first);
    let sides = [(&arguments.targets, first)];
    let mut campaign = Opened::begin(RunKind::Ladder, about, &sides, &arguments.output)?;
    campaign.keep_source(&arguments.scenario)?;
    let finished = run_ladder(campaign.driver(), &request)?;
    campaign.end(finished)
}

impl LadderArguments {
    /// The scenario of the first step that this machine can run.
    pub(crate) fn first_scenario(&self) -> Result<Scenario, Failure> {
        Ok(self.request()?.first()?.clone())
    }

    /// Brokers and results.
    pub(crate) fn parts(&self) -> (&TargetArguments, &OutputArguments) {
        (&self.targets, &self.output)
    }

    /// What they ask for: all scenarios are checked before anything runs.
    fn request(&self) -> Result<LadderRequest, Failure> {
        let mut load = self.load.clone();
        load.adjust.hold = load.adjust.hold.or(Some(HOLD));
        let scale = load.adjust.adjustment().scale;
        let StepSpec { variable, values } = &self.steps;
        let fitting = Fitting::new(&load, &self.targets)?;
        let rung = |value: &String| {
            let vars = [(variable.clone(), value.clone())];
            let scenario = fitting.scenario(&self.scenario, &vars);
            let scenario = scenario.map_err(|error| failure(&error))?;
            Ok(Rung::new(variable, value, scenario).scaled(variable, scale))
        };
        Ok(LadderRequest {
            variable: variable.clone(),
            rungs: values.iter().map(rung).collect::<Result<_, Failure>>()?,
            pause: self.pause.0,
            stop_when: self.stop_when.clone(),
            repeat: self.repeat,
            recommend_at_percent: self.recommend_at,
        })
    }
}
