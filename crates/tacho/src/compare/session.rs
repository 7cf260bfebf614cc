//! Repeats of all sides in turns, in one session.

use std::path::PathBuf;

use tacho_lab::Timestamp;
use tacho_lab::campaign::Place;
use tacho_lab::compare::{About, BeforeRun, Run, Side, compare, side_curves};
use tacho_lab::record::{RunKind, Series, Verdict};

use super::arguments::CompareArguments;
use super::sides::{SidePlan, plan};
use super::{before, code_of_conditions, conditions, failed_conditions, is_lost, publish};
use crate::campaign::{Driver, Step};
use crate::exit::{self, Failure};

/// A repeat that left a directory.
struct Made {
    /// Which side it is of.
    side: usize,
    /// Its directory below that of the comparison.
    directory: String,
    before: Option<BeforeRun>,
}

/// Runs `scenario` on all sides and compares them.
pub(super) fn session(arguments: &CompareArguments, scenario: &str) -> Result<u8, Failure> {
    let path = PathBuf::from(scenario);
    if ["summary.json", "comparison.json"].iter().any(|file| path.join(file).exists()) {
        let sentence = format!("'{scenario}' is a run: give two or more of them, or a scenario");
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    let sides = plan(arguments, scenario)?;
    let started_at = Timestamp::now().rfc3339();
    let first = &sides[0].scenario;
    let about = (first.name.as_str(), first.description.as_str());
    let kinds: Vec<_> = sides.iter().map(|side| (&side.targets, &side.scenario)).collect();
    let mut driver = Driver::begin_sides(RunKind::Comparison, about, &kinds, &arguments.output)?;
    for side in &sides {
        driver.campaign.series(Series {
            name: side.name.clone(),
            label: format!("{}: {}", side.name, side.label),
            figure: "comparison".to_owned(),
            scenario: first.name.clone(),
            ..Series::default()
        });
    }
    let mut made = Vec::new();
    let failed = repeat(arguments, &sides, &mut driver, &mut made).err();
    let comparison = read(&sides, &made, &driver).and_then(|read| {
        let about = About {
            name: driver.name().to_owned(),
            started_at,
            elapsed_s: driver.elapsed_s(),
            interleaved: true,
            seed: first.seed,
        };
        let comparison = compare(&read, &about, &conditions(arguments));
        let comparison =
            comparison.map_err(|error| Failure::new(exit::INVALID_RUN, error.to_string()))?;
        Ok((comparison, side_curves(&read)))
    });
    if let Ok((comparison, _)) = &comparison {
        for sentence in failed_conditions(comparison) {
            driver.campaign.reason(Verdict::ThresholdFailed, sentence);
        }
    }
    if let Some(failure) = &failed {
        let sentence = failure.message.trim_start_matches("error: ").to_owned();
        driver.campaign.reason(Verdict::Aborted, sentence);
    }
    let closed = driver.close(None)?;
    let comparison = match (comparison, failed) {
        (Ok((comparison, curves)), failed) => {
            publish(&comparison, &curves, &closed.directory, &arguments.output)?;
            match failed {
                None => comparison,
                Some(failure) => return Err(failure),
            }
        }
        (Err(_), Some(failure)) => return Err(failure),
        (Err(failure), None) => return closed.failure().map_or(Err(failure), Err),
    };
    Ok(match closed.conclude() {
        exit::OK | exit::THRESHOLD => match code_of_conditions(&comparison) {
            exit::OK if is_lost(&comparison) => exit::INVALID_RUN,
            code => code,
        },
        code => code,
    })
}

/// Makes all repeats, in turns.
fn repeat(
    arguments: &CompareArguments,
    sides: &[SidePlan],
    driver: &mut Driver<'_>,
    made: &mut Vec<Made>,
) -> Result<(), Failure> {
    let repeats = usize::from(arguments.repeats);
    let total = repeats * sides.len();
    for round in 0..repeats {
        // a b, then b a: what drifts meets both.
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            if driver.is_over() {
                return Ok(());
            }
            let side = &sides[index];
            driver.fresh_stage(&side.targets);
            let log = driver.file(&format!("before-{}-{}.log", side.name, round + 1));
            let stopped = || driver.is_over();
            let run =
                |command: &String| before::run(command, (&side.name, round + 1), &log, &stopped);
            let ran = side.before.as_ref().map(run).transpose()?;
            let label = format!("{}-{}", side.name, round + 1);
            let place = Place {
                series: side.name.clone(),
                rung: index,
                label: label.clone(),
                ..Place::default()
            };
            let number = made.len() + 1;
            let title = format!("repeat {number} of {total}: {} #{}", side.name, round + 1);
            let step = Step { scenario: side.scenario.clone(), place, title };
            let Some((outcome, _)) = driver.run(step)? else { return Ok(()) };
            driver.blame(&outcome);
            let directory = driver.last_directory().to_owned();
            made.push(Made { side: index, directory, before: ran });
        }
    }
    Ok(())
}

/// The repeats as they lie in their directories.
fn read(sides: &[SidePlan], made: &[Made], driver: &Driver<'_>) -> Result<Vec<Side>, Failure> {
    let of = |(index, plan): (usize, &SidePlan)| {
        let runs = made.iter().filter(|made| made.side == index).map(|made| {
            let run = Run::read(&driver.file(&made.directory), &made.directory);
            let run = run.map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
            Ok(Run { before: made.before.clone(), ..run })
        });
        Ok(Side {
            name: plan.name.clone(),
            label: plan.label.clone(),
            before: plan.before.clone(),
            runs: runs.collect::<Result<_, Failure>>()?,
        })
    };
    sides.iter().enumerate().map(of).collect()
}
