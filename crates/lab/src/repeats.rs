//! Repeats of one scenario, with statistics of its figures.

use std::time::Duration;

use tacho_record::{FigureRow, RunRecord, Series};
use tacho_scenario::Scenario;

use crate::campaign::{CampaignError, Driver, Finished, Place, Step, StepNumber};
use crate::compare::{FIGURES, judge, method};

/// Time between two runs, without clients.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs a scenario several times on the same brokers.
///
/// # Errors
/// When something is wrong that no broker is to blame for.
pub fn run_repeats(
    mut driver: Driver<'_>,
    scenario: &Scenario,
    repeats: u16,
) -> Result<Finished, CampaignError> {
    let name = &scenario.name;
    driver.campaign.series(Series {
        name: name.clone(),
        label: name.clone(),
        scenario: name.clone(),
        ..Series::default()
    });
    let mut counting = Vec::new();
    for number in 1..=repeats {
        if driver.is_over() {
            break;
        }
        if number > 1 {
            driver.pause(PAUSE);
        }
        let label = format!("run {number}");
        let place = Place { series: name.clone(), label, counts: true, ..Place::default() };
        let title = format!("run {number} of {repeats}");
        let number = StepNumber { number: usize::from(number), of: Some(usize::from(repeats)) };
        let step = Step { scenario: scenario.clone(), place, title, number };
        let Some(made) = driver.run_until_valid(step)? else { break };
        driver.blame(&made.outcome);
        counting.extend(Some(made.outcome.data.record).filter(|run| run.verdict.counts()));
    }
    driver.campaign.repeated(statistics(&counting, scenario.seed));
    driver.finish(None)
}

/// Median and range of the figures over the last windows of these runs.
pub fn statistics(runs: &[RunRecord], seed: u64) -> Vec<FigureRow> {
    let rows = FIGURES.iter().filter_map(|figure| {
        let values = runs.iter().filter_map(|run| figure.of(run, run.steps.last()?));
        judge(figure, &[("", values.collect())], &[], &method(seed))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use tacho_record::{LatencyStats, Step};

    use super::*;

    #[test]
    fn figures_have_their_median_and_their_range() {
        let run = |tps, p99| {
            let latency_us = LatencyStats { p99, ..LatencyStats::default() };
            let step = Step { tps, latency_us, ..Step::default() };
            RunRecord { steps: vec![step], ..RunRecord::default() }
        };
        let runs = [run(100.0, Some(900)), run(300.0, None), run(200.0, Some(700))];
        let rows = statistics(&runs, 1);
        let spread = |name: &str| {
            let row = rows.iter().find(|row| row.name == name)?;
            let spread = row.sides.first()?;
            Some((spread.min?, spread.median?, spread.max?, spread.values.len()))
        };
        assert_eq!(spread("tps"), Some((100.0, 200.0, 300.0, 3)));
        assert_eq!(spread("e2e_p99"), Some((700.0, 800.0, 900.0, 2)));
        assert_eq!(spread("ack_p99"), None, "not observed in any run");
        assert!(rows.iter().all(|row| row.changes.is_empty()), "nothing is compared");
        assert!(statistics(&[], 1).is_empty());
    }
}
