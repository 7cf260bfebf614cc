//! A session: repeats of all sides in turns, and their comparison.

use tacho_record::{
    BeforeRun, Cause, Comparison, Series, SideCurve, SideLabel, Timestamp, Verdict,
};
use tacho_scenario::Scenario;

use super::before;
use super::build::{About, compare};
use super::condition::Condition;
use super::curves::side_curves;
use super::error::CompareError;
use super::outcome::{again_name, verdict_of};
use super::side::{Run, Side};
use super::turns::{Turn, Turns, Whose};
use crate::campaign::{CampaignError, Driver, Finished, Place, Step, StepNumber};

/// A session to hold.
#[derive(Debug)]
pub struct SessionRequest {
    /// The sides, at least two; the bench knows their brokers by their positions.
    pub sides: Vec<SidePlan>,
    /// Repeats of each side.
    pub repeats: usize,
    /// Further repeats of the first side, for the noise floor.
    pub again: usize,
    /// Repeats that may be made in place of those that do not count.
    pub make_up: usize,
    /// What the comparison must meet.
    pub conditions: Vec<Condition>,
}

/// One side before its repeats.
#[derive(Debug)]
pub struct SidePlan {
    /// Short name.
    pub name: String,
    /// What it is.
    pub label: String,
    /// The same as data.
    pub what: SideLabel,
    /// Command that is run before each repeat.
    pub before: Option<String>,
    /// What its repeats run.
    pub scenario: Scenario,
}

/// A session that was held.
#[derive(Debug)]
pub struct Session {
    /// The campaign of its repeats.
    pub finished: Finished,
    /// The comparison, where one could be made.
    pub comparison: Option<(Comparison, Vec<SideCurve>)>,
    /// Why there are not all repeats, or no comparison.
    pub failed: Option<SessionError>,
}

/// A session that could not be completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A repeat could not be made.
    #[error(transparent)]
    Repeat(#[from] CampaignError),
    /// A repeat could not be read.
    #[error("{0}")]
    Unreadable(CompareError),
    /// The repeats cannot be compared.
    #[error("{0}")]
    Incomparable(CompareError),
}

/// A repeat that left a directory.
struct Made {
    turn: Turn,
    /// Its directory below that of the comparison.
    directory: String,
    before: Option<BeforeRun>,
}

/// Makes the repeats of all sides in turns, and compares them.
///
/// # Errors
/// When the campaign's record cannot be written. A session that could not be completed is no error
/// but has [`Session::failed`].
pub fn hold_session(
    mut driver: Driver<'_>,
    request: &SessionRequest,
) -> Result<Session, CampaignError> {
    let started_at = Timestamp::now().rfc3339();
    request.announce_series(&mut driver);
    let mut made = Vec::new();
    let failed = request.repeat(&mut driver, &mut made).err();
    let comparison = request.compare(&driver, &made, started_at);
    let (comparison, unmade) = match comparison {
        Ok(comparison) => (Some(comparison), None),
        // A broker that is gone, or a signal, is named when the campaign ends.
        Err(error) => (None, Some(error).filter(|_| !driver.is_over())),
    };
    if let Some((comparison, _)) = &comparison {
        let (verdict, causes) = verdict_of(comparison);
        for cause in causes {
            driver.campaign.reason(verdict, cause);
        }
    }
    let failed = failed.map(SessionError::Repeat).or(unmade);
    if let Some(error) = &failed {
        let verdict = match error {
            SessionError::Incomparable(_) => Verdict::Unclear,
            SessionError::Repeat(_) | SessionError::Unreadable(_) => Verdict::Aborted,
        };
        driver.campaign.reason(verdict, Cause::Message(error.to_string()));
    }
    Ok(Session { finished: driver.finish(None)?, comparison, failed })
}

impl SessionRequest {
    fn announce_series(&self, driver: &mut Driver<'_>) {
        let again = self.sides.iter().take(1).filter(|_| self.again > 0);
        let again = again.map(|side| (again_name(&side.name), side));
        let sides = self.sides.iter().map(|side| (side.name.clone(), side));
        for (name, side) in sides.chain(again) {
            driver.campaign.series(Series {
                label: format!("{name}: {}", side.label),
                name,
                figure: "comparison".to_owned(),
                scenario: self.sides[0].scenario.name.clone(),
                ..Series::default()
            });
        }
    }

    /// Makes all repeats, in turns.
    fn repeat(&self, driver: &mut Driver<'_>, made: &mut Vec<Made>) -> Result<(), CampaignError> {
        let mut turns = Turns::new(self.sides.len(), self.repeats, self.again, self.make_up);
        let mut counted = true;
        while let Some(turn) = turns.next(counted) {
            if driver.is_over() {
                return Ok(());
            }
            let (index, name) = match turn.whose {
                Whose::Side(index) => (index, self.sides[index].name.clone()),
                Whose::Again => (0, again_name(&self.sides[0].name)),
            };
            let nth = made.iter().filter(|made| made.turn.whose == turn.whose).count() + 1;
            let label = format!("{name}-{nth}");
            driver.change_side(index);
            let before = self.sides[index].prepare(driver, turn.whose, nth, &label)?;
            let (number, total) = (made.len() + 1, turns.total());
            let again = if turn.made_up { ", in place of one that does not count" } else { "" };
            let title = format!("repeat {number} of {total}: {name} #{nth}{again}");
            let rung = match turn.whose {
                Whose::Side(index) => index,
                Whose::Again => self.sides.len(),
            };
            let place = Place { series: name, rung, label, ..Place::default() };
            let scenario = self.sides[index].scenario.clone();
            let number = StepNumber { number, of: Some(total) };
            let step = Step { scenario, place, title, number };
            let Some(run) = driver.run(step)? else { return Ok(()) };
            driver.blame(&run.outcome);
            counted = run.position.is_some() && run.outcome.data.record.verdict.counts();
            let directory = driver.last_directory().to_owned();
            made.push(Made { turn, directory, before });
        }
        Ok(())
    }

    fn compare(
        &self,
        driver: &Driver<'_>,
        made: &[Made],
        started_at: String,
    ) -> Result<(Comparison, Vec<SideCurve>), SessionError> {
        let sides = self.read(driver, made).map_err(SessionError::Unreadable)?;
        let about = About {
            name: driver.name().to_owned(),
            started_at,
            elapsed_s: driver.elapsed_s(),
            interleaved: true,
            seed: self.sides[0].scenario.seed,
        };
        let comparison = compare(&sides, &about, &self.conditions);
        Ok((comparison.map_err(SessionError::Incomparable)?, side_curves(&sides)))
    }

    /// The repeats as they lie in their directories.
    fn read(&self, driver: &Driver<'_>, made: &[Made]) -> Result<Vec<Side>, CompareError> {
        let repeats_of = |whose: Whose| -> Result<Vec<Run>, CompareError> {
            let made = made.iter().filter(|made| made.turn.whose == whose);
            let read = |made: &Made| {
                let run = Run::read(&driver.file(&made.directory), &made.directory)?;
                Ok(Run { before: made.before.clone(), made_up: made.turn.made_up, ..run })
            };
            made.map(read).collect()
        };
        let side = |(index, plan): (usize, &SidePlan)| {
            Ok(Side {
                name: plan.name.clone(),
                label: plan.label.clone(),
                what: Some(plan.what.clone()),
                before: plan.before.clone(),
                runs: repeats_of(Whose::Side(index))?,
                again: if index == 0 { repeats_of(Whose::Again)? } else { Vec::new() },
            })
        };
        self.sides.iter().enumerate().map(side).collect()
    }
}

impl SidePlan {
    /// Runs the side's command, where it has one, before its `nth` repeat.
    fn prepare(
        &self,
        driver: &Driver<'_>,
        whose: Whose,
        nth: usize,
        label: &str,
    ) -> Result<Option<BeforeRun>, CampaignError> {
        let Some(command) = &self.before else { return Ok(None) };
        let repeat = match whose {
            Whose::Side(_) => nth.to_string(),
            Whose::Again => format!("aa-{nth}"),
        };
        let log = driver.file(&format!("before-{label}.log"));
        let is_stopped = || driver.is_over();
        before::run(command, (&self.name, &repeat), &log, &is_stopped).map(Some)
    }
}
