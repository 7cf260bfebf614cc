//! Repeats of all sides in turns, in one session.

use std::path::PathBuf;

use tacho_lab::campaign::Subject;
use tacho_lab::compare::{Session, SessionError, SessionRequest, hold_session};
use tacho_record::RunKind;
use tacho_report::tell_comparison;

use super::arguments::CompareArguments;
use super::sides::{PlannedSide, plan};
use super::{conditions, publish};
use crate::campaign::{Opened, Side};
use crate::exit::{self, Failure};
use crate::run::OutputArguments;

/// Runs `scenario` on all sides and compares them.
pub(super) fn session(arguments: &CompareArguments, scenario: &str) -> Result<u8, Failure> {
    let path = PathBuf::from(scenario);
    if ["summary.json", "comparison.json"].iter().any(|file| path.join(file).exists()) {
        let sentence = format!("'{scenario}' is a run: give two or more of them, or a scenario");
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    let (targets, sides): (Vec<_>, Vec<_>) = plan(arguments, scenario)?
        .into_iter()
        .map(|PlannedSide { targets, plan }| (targets, plan))
        .unzip();
    let request = SessionRequest {
        sides,
        repeats: usize::from(arguments.repeats),
        again: usize::from(arguments.aa),
        make_up: usize::from(arguments.make_up),
        conditions: conditions(arguments),
    };
    let first = &request.sides[0].scenario;
    let about = Subject::scenario(first);
    let scenarios = request.sides.iter().map(|side| &side.scenario);
    let kinds: Vec<Side<'_>> = targets.iter().zip(scenarios).collect();
    let output = &arguments.output;
    let mut campaign = Opened::begin(RunKind::Comparison, about, &kinds, output)?;
    campaign.keep_source(scenario)?;
    let session = hold_session(campaign.driver(), &request)?;
    end(campaign, session, output)
}

/// Ends: reports the outcome in the record, on the terminal and on the live page.
fn end(
    mut campaign: Opened<'_>,
    session: Session,
    output: &OutputArguments,
) -> Result<u8, Failure> {
    let Session { mut finished, mut comparison, failed } = session;
    campaign.write(&mut finished)?;
    let mut failed = failed.map(Failure::from);
    if let Some((comparison, curves)) = &mut comparison {
        tell_comparison(comparison);
        comparison.given = output.given();
        let published = publish(comparison, curves, &finished.directory, output);
        failed = failed.or_else(|| published.err());
    }
    // It is said before a page that stays waits for its reader.
    if let Some(failure) = &failed {
        eprintln!("{}", failure.message);
    }
    let code = campaign.conclude(&finished);
    Ok(failed.map_or(code, |failure| failure.code))
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Repeat(error) => error.into(),
            SessionError::Incomparable(error) => Self::new(exit::INVALID_RUN, error),
            error => Self::new(exit::UNEXPECTED, error),
        }
    }
}
