//! `tacho run --repeat`: one scenario several times, with statistics.

use tacho_lab::campaign::Subject;
use tacho_lab::repeats::run_repeats;
use tacho_record::RunKind;
use tacho_scenario::Scenario;

use super::Opened;
use crate::exit::Failure;
use crate::run::{OutputArguments, TargetArguments};

/// Runs `scenario` that many times; the exit code is that of the worst run.
pub(crate) fn repeats(
    scenario: &Scenario,
    count: u16,
    targets: &TargetArguments,
    output: &OutputArguments,
) -> Result<u8, Failure> {
    let about = Subject::scenario(scenario);
    let mut campaign = Opened::begin(RunKind::Repeats, about, &[(targets, scenario)], output)?;
    let finished = run_repeats(campaign.driver(), scenario, count)?;
    campaign.end(finished)
}
