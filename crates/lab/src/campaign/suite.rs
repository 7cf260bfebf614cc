//! Suites: all series of a published report, one after another.

use tacho_record::{Obstacle, Series};
use tacho_scenario::Scenario;
use tacho_scenario::steps::{is_rate, number, scaled_label, unit_of};
use tacho_scenario::suite::{SuitePoint, SuiteSeries};

use super::bench::{CampaignNews, StepNumber};
use super::driver::{Driver, Finished, Step};
use super::error::CampaignError;
use super::parent::Place;

/// CPU in percent at which workloads are recommended, as the guide has it.
const RECOMMEND_AT_PERCENT: f64 = 75.0;

/// One run of a suite.
#[derive(Debug)]
pub struct SuiteRow<'a> {
    /// Its series.
    pub series: &'a SuiteSeries,
    /// The point of the series.
    pub point: &'a SuitePoint,
    /// What its publish rates were multiplied by.
    pub scale: f64,
    /// What this machine lacks for it, where it cannot run.
    pub scenario: Result<Scenario, Obstacle>,
}

/// Runs the rows of a suite, with fresh brokers for each series.
///
/// # Errors
/// When something is wrong that no broker is to blame for.
pub fn run_suite(mut driver: Driver<'_>, rows: &[SuiteRow<'_>]) -> Result<Finished, CampaignError> {
    let mut before: Option<&str> = None;
    let mut done = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if driver.is_stopped() {
            break;
        }
        let name = row.series.name.as_str();
        if before != Some(name) {
            driver.forgive();
            driver.campaign.series(row.about_series());
            before = Some(name);
        }
        // Figures share runs: a point measured for one appears in the other too.
        let key = (row.series.scenario.as_str(), row.point.vars.as_slice());
        let known = done.iter().find(|(known, _)| *known == key);
        if let Some((_, position)) = known {
            driver.campaign.share(name, *position);
        } else if let Some(position) = row.run(&mut driver, (index, rows.len()))? {
            done.push((key, position));
        }
    }
    driver.campaign.recommend(RECOMMEND_AT_PERCENT);
    driver.finish(None)
}

impl SuiteRow<'_> {
    /// Runs it; returns the position of its step, if one was measured.
    fn run(
        &self,
        driver: &mut Driver<'_>,
        (index, count): (usize, usize),
    ) -> Result<Option<usize>, CampaignError> {
        let (series, point) = (self.series, self.point);
        let label = match series.label == point.label {
            true => point.label.clone(),
            false => format!("{}, {}", series.label, point.label),
        };
        let title = format!("row {} of {count}: {label}", index + 1);
        let scenario = match &self.scenario {
            Ok(scenario) if !driver.is_over() => scenario.clone(),
            other => {
                let obstacle = other.as_ref().err().cloned().unwrap_or(Obstacle::BrokerGone);
                driver.tell(CampaignNews::Skipped { title: &title, obstacle: &obstacle });
                driver.campaign.skip(&series.name, &point.label, obstacle);
                return Ok(None);
            }
        };
        let place = self.place(index);
        let number = StepNumber { number: index + 1, of: Some(count) };
        let Some(made) = driver.run_until_valid(Step { scenario, place, title, number })? else {
            return Ok(None);
        };
        driver.blame(&made.outcome);
        Ok(made.position)
    }

    fn place(&self, index: usize) -> Place {
        let (series, point) = (self.series, self.point);
        let value = series.variable.as_ref().and_then(|variable| {
            point.vars.iter().find(|(name, _)| name == variable).map(|(_, value)| value)
        });
        let label = if series.points.len() == 1 { &series.label } else { &point.label };
        let is_scaled = series.variable.as_deref().is_none_or(is_rate);
        let scale = if is_scaled { self.scale } else { 1.0 };
        Place {
            series: series.name.clone(),
            rung: series.points.iter().position(|known| known == point).unwrap_or(index),
            label: scaled_label(label, scale),
            x: value.and_then(|value| number(value)).map(|x| x * scale),
            counts: true,
            ..Place::default()
        }
    }

    fn about_series(&self) -> Series {
        let series = self.series;
        Series {
            name: series.name.clone(),
            label: scaled_label(&series.label, self.scale),
            figure: series.figure.clone(),
            scenario: series.scenario.clone(),
            variable: series.variable.clone(),
            unit: series.variable.as_deref().map_or("", unit_of).to_owned(),
            steps: Vec::new(),
            published: series.published.clone(),
        }
    }
}
