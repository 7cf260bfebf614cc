//! Ladders: one scenario, step by step over the values of a variable.

use std::time::Duration;

use tacho_record::{Observation, Obstacle, Series, Severity, Step as MeasuredStep};
use tacho_scenario::Scenario;
use tacho_scenario::steps::{is_rate, number, scaled_label, unit_of};
use tacho_scenario::threshold::Threshold;

use super::bench::{CampaignNews, StepNumber};
use super::driver::{Driver, Finished, Step, first_feasible};
use super::error::CampaignError;
use super::parent::Place;

/// A ladder to run.
#[derive(Debug)]
pub struct LadderRequest {
    /// The variable that is stepped.
    pub variable: String,
    /// Its values, in order.
    pub rungs: Vec<Rung>,
    /// Time between two steps, without clients.
    pub pause: Duration,
    /// Conditions that end the ladder after a step in which one holds.
    pub stop_when: Vec<Threshold>,
    /// How often the whole ladder is run.
    pub repeat: u16,
    /// CPU in percent at which the recommended workload is interpolated.
    pub recommend_at_percent: f64,
}

/// A point of a ladder.
#[derive(Debug)]
pub struct Rung {
    label: String,
    x: Option<f64>,
    /// What this machine lacks for it, where it cannot run.
    scenario: Result<Scenario, Obstacle>,
}

impl Rung {
    /// The point at which `variable` is `value`; of one that this machine cannot run, what it
    /// lacks.
    pub fn new(variable: &str, value: &str, scenario: Result<Scenario, Obstacle>) -> Self {
        Self { label: format!("{variable}={value}"), x: number(value), scenario }
    }

    /// The same point with all publish rates multiplied by `scale`; `variable` is as in
    /// [`Rung::new`].
    #[must_use]
    pub fn scaled(self, variable: &str, scale: f64) -> Self {
        let x = self.x.map(|x| if is_rate(variable) { x * scale } else { x });
        Self { label: scaled_label(&self.label, scale), x, ..self }
    }
}

/// Runs a ladder.
///
/// # Errors
/// When something is wrong that no broker is to blame for.
pub fn run_ladder(
    mut driver: Driver<'_>,
    request: &LadderRequest,
) -> Result<Finished, CampaignError> {
    let series = request.series(request.first()?);
    let name = series.name.clone();
    driver.campaign.series(series);
    for rung in &request.rungs {
        if let Err(obstacle) = &rung.scenario {
            driver.campaign.skip(&name, &rung.label, obstacle.clone());
        }
    }
    let mut top = request.rungs.len();
    for pass in 0..request.repeat {
        top = request.walk(&mut driver, &name, (pass, top))?;
    }
    driver.campaign.recommend(request.recommend_at_percent);
    driver.finish(None)
}

impl LadderRequest {
    /// The scenario of the first point that this machine can run.
    ///
    /// # Errors
    /// When it can run none.
    pub fn first(&self) -> Result<&Scenario, CampaignError> {
        first_feasible(self.rungs.iter().map(|rung| &rung.scenario), "steps")
    }

    fn series(&self, scenario: &Scenario) -> Series {
        let variable = &self.variable;
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
        (pass, top): (u16, usize),
    ) -> Result<usize, CampaignError> {
        for (index, rung) in self.rungs.iter().enumerate().take(top) {
            let Ok(scenario) = &rung.scenario else { continue };
            if driver.is_over() {
                break;
            }
            if index > 0 || pass > 0 {
                driver.pause(self.pause);
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
            let title = format!("step {} of {}: {label}", index + 1, self.rungs.len());
            let number = StepNumber {
                number: usize::from(pass) * self.rungs.len() + index + 1,
                of: Some(usize::from(self.repeat) * self.rungs.len()),
            };
            let step = Step { scenario: scenario.clone(), place, title, number };
            let Some(made) = driver.run_until_valid(step)? else { break };
            driver.blame(&made.outcome);
            if let Some(condition) = self.stops(driver.campaign.steps(), made.position) {
                driver.tell(CampaignNews::LadderStopped { condition });
                driver.campaign.remark(
                    "ladder_stopped",
                    Severity::Info,
                    Observation::LadderStopped { label, condition: condition.to_string() },
                );
                return Ok(index + 1);
            }
            // The step that ends the ladder as asked may be a bad one; the others count.
            driver.campaign.count(&label, &made.outcome.data.record);
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
