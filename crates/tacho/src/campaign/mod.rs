//! Many runs under one name: `tacho ladder`, `tacho capacity`, and suites.

mod bench;
mod capacity;
mod ladder;
mod opening;
mod repeats;
mod suite;

use tacho_lab::campaign::CampaignError;
use tacho_report::Lang;
use tacho_scenario::TimeSpan;

use crate::exit::{self, Failure};

pub(crate) use bench::ArgumentBench;
pub(crate) use capacity::{CapacityArguments, capacity};
pub(crate) use ladder::{LadderArguments, ladder};
pub(crate) use opening::{Opened, Side};
pub(crate) use repeats::repeats;
pub(crate) use suite::{first_of_suite, suite};

/// Length of a step unless the arguments set one.
const HOLD: TimeSpan = TimeSpan::from_secs(15);

/// Reads `75%` or `75`.
fn parse_percent(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err("write a percentage above 0 and up to 100, such as 75%".to_owned()),
    }
}

impl From<CampaignError> for Failure {
    fn from(error: CampaignError) -> Self {
        if let CampaignError::Scenario(error) = &error {
            return crate::scenario::failure(error);
        }
        if let CampaignError::Infeasible { obstacle, .. } = &error {
            let sentence = format!("{error}: {}", Lang::En.obstacle(obstacle));
            return Self::new(code_of(&error), sentence);
        }
        Self::new(code_of(&error), error)
    }
}

/// The exit code of a campaign that could not go on.
fn code_of(error: &CampaignError) -> u8 {
    match error {
        CampaignError::Stopped(_) => exit::ABORTED,
        CampaignError::Target(_) => exit::TARGET_UNREACHABLE,
        CampaignError::Setting(_)
        | CampaignError::Scenario(_)
        | CampaignError::Infeasible { .. } => exit::INVALID_CONFIG,
        _ => exit::UNEXPECTED,
    }
}
