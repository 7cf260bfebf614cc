//! `tacho ladder`: one scenario, step by step over the values of a variable.

use clap::Args;
use tacho_lab::campaign::Place;
use tacho_record::{Observation, RunKind, Series, Severity, Step as MeasuredStep};
use tacho_scenario::steps::{StepSpec, number, unit_of};
use tacho_scenario::threshold::Threshold;
use tacho_scenario::{Scenario, TimeSpan};

use super::driver::{Driver, Step};
use crate::exit::{self, Failure};
use crate::run::{LoadArguments, OutputArguments, TargetArguments};

/// Length of a step unless said otherwise.
pub(super) const HOLD: TimeSpan = TimeSpan::from_secs(15);

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

/// Reads `75%` or `75`.
pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err("write a percentage above 0 and up to 100, such as 75%".to_owned()),
    }
}

/// A point of the ladder.
struct Rung {
    label: String,
    x: Option<f64>,
    /// What this machine lacks for it, where it cannot run.
    scenario: Result<Scenario, String>,
}

/// Runs a ladder; the exit code tells the worst verdict.
pub(crate) fn ladder(arguments: &LadderArguments) -> Result<u8, Failure> {
    let rungs = arguments.rungs()?;
    let Some(first) = rungs.iter().find_map(|rung| rung.scenario.as_ref().ok()) else {
        let why = rungs.first().and_then(|rung| rung.scenario.as_ref().err());
        let why = why.map_or("", String::as_str);
        return Err(Failure::new(
            exit::INVALID_CONFIG,
            format!("this machine can run none of the steps; the first {why}"),
        ));
    };
    let LadderArguments { targets, output, .. } = arguments;
    let about = (first.name.as_str(), first.description.as_str());
    let mut driver = Driver::begin(RunKind::Ladder, about, targets, output, first)?;
    let series = arguments.series(first);
    let name = series.name.clone();
    driver.campaign.series(series);
    for rung in &rungs {
        if let Err(reason) = &rung.scenario {
            driver.campaign.skip(&name, &rung.label, reason);
        }
    }
    let mut top = rungs.len();
    for pass in 0..arguments.repeat {
        top = arguments.walk(&mut driver, &name, &rungs, (pass, top))?;
    }
    driver.campaign.recommend(arguments.recommend_at);
    driver.finish(None)
}

impl LadderArguments {
    /// All scenarios, checked before anything runs.
    fn rungs(&self) -> Result<Vec<Rung>, Failure> {
        let mut load = self.load.clone();
        load.adjust.hold = load.adjust.hold.or(Some(HOLD));
        let StepSpec { variable, values } = &self.steps;
        let rung = |value: &String| {
            let vars = [(variable.clone(), value.clone())];
            let scenario = load.feasible(&self.scenario, &vars, &self.targets)?;
            Ok(Rung { label: format!("{variable}={value}"), x: number(value), scenario })
        };
        values.iter().map(rung).collect()
    }

    fn series(&self, scenario: &Scenario) -> Series {
        let variable = &self.steps.variable;
        Series {
            name: scenario.name.clone(),
            label: format!("{} over {variable}", scenario.name),
            figure: "ladder".to_owned(),
            scenario: scenario.name.clone(),
            variable: Some(variable.clone()),
            unit: unit_of(variable).to_owned(),
            ..Series::default()
        }
    }

    /// Runs the rungs below `top`, for the `pass`th time counted from 0. Returns the top of the
    /// next pass: lower where a condition ended the ladder.
    fn walk(
        &self,
        driver: &mut Driver<'_>,
        series: &str,
        rungs: &[Rung],
        (pass, top): (u16, usize),
    ) -> Result<usize, Failure> {
        for (index, rung) in rungs.iter().enumerate().take(top) {
            let Ok(scenario) = &rung.scenario else { continue };
            if driver.is_over() {
                break;
            }
            if index > 0 || pass > 0 {
                driver.setting.pause(self.pause.0);
            }
            let label = match pass {
                0 => rung.label.clone(),
                pass => format!("{} #{}", rung.label, pass + 1),
            };
            let place = Place {
                series: series.to_owned(),
                rung: index,
                label: label.clone(),
                x: rung.x,
                counts: false,
                ..Place::default()
            };
            let title = format!("step {} of {}: {label}", index + 1, rungs.len());
            let step = Step { scenario: scenario.clone(), place, title };
            let Some((outcome, position)) = driver.run(step)? else { break };
            driver.blame(&outcome);
            if let Some(condition) = self.stops(driver.campaign.steps(), position) {
                driver.say(&format!("  {condition} holds: the ladder ends here"));
                driver.campaign.remark(
                    "ladder_stopped",
                    Severity::Info,
                    Observation::LadderStopped { label, condition: condition.to_string() },
                );
                return Ok(index + 1);
            }
            // The step that ends the ladder as asked may be a bad one; the others count.
            driver.campaign.count(&label, &outcome.data.record);
        }
        Ok(top)
    }

    /// The condition that ends the ladder after the step at `position`.
    fn stops(&self, steps: &[MeasuredStep], position: Option<usize>) -> Option<&Threshold> {
        let step = steps.get(position?)?;
        self.stop_when.iter().find(|condition| {
            let value = step.metric(condition.metric);
            value.is_some_and(|value| condition.comparison.holds(value, condition.limit))
        })
    }
}
