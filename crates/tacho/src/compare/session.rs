//! Repeats of all sides in turns, in one session.

use std::path::PathBuf;

use tacho_lab::campaign::Place;
use tacho_lab::compare::{About, Run, Side, compare, side_curves};
use tacho_record::Timestamp;
use tacho_record::{BeforeRun, Cause, Comparison, RunKind, Series, SideCurve, Verdict};

use tacho_report::tell_comparison;

use super::arguments::CompareArguments;
use super::sides::{SidePlan, plan};
use super::turns::{Turn, Turns, Whose};
use super::{
    again_name, before, code_of_conditions, conditions, failed_conditions, is_lost, publish,
};
use crate::campaign::{Driver, Step};
use crate::exit::{self, Failure};
use crate::run::OutputArguments;

/// A repeat that left a directory.
struct Made {
    turn: Turn,
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
    let mut series = |name: &str, label: &str| {
        driver.campaign.series(Series {
            name: name.to_owned(),
            label: format!("{name}: {label}"),
            figure: "comparison".to_owned(),
            scenario: first.name.clone(),
            ..Series::default()
        });
    };
    for side in &sides {
        series(&side.name, &side.label);
    }
    if arguments.aa > 0 {
        series(&again_name(&sides[0].name), &sides[0].label);
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
        let mut comparison =
            comparison.map_err(|error| Failure::new(exit::INVALID_RUN, error.to_string()))?;
        tell_comparison(&mut comparison);
        Ok((comparison, side_curves(&read)))
    });
    end(driver, comparison, failed, &arguments.output)
}

/// Ends: reports the outcome in the record, on the terminal and on the live page.
fn end(
    mut driver: Driver<'_>,
    comparison: Result<(Comparison, Vec<SideCurve>), Failure>,
    failed: Option<Failure>,
    output: &OutputArguments,
) -> Result<u8, Failure> {
    if let Ok((comparison, _)) = &comparison {
        for sentence in failed_conditions(comparison) {
            driver.campaign.reason(Verdict::ThresholdFailed, Cause::Message(sentence));
        }
    }
    // A broker that is gone, or a signal, is named when the campaign is closed.
    let unmade = comparison.as_ref().err().filter(|_| !driver.is_over()).cloned();
    let failed = failed.or(unmade);
    if let Some(failure) = &failed {
        let sentence = failure.message.trim_start_matches("error: ").to_owned();
        driver.campaign.reason(Verdict::Aborted, Cause::Message(sentence));
    }
    let closed = driver.close(None)?;
    let written = comparison
        .as_ref()
        .ok()
        .map(|(comparison, curves)| publish(comparison, curves, &closed.directory, output));
    let failed = failed.or_else(|| written.transpose().err());
    // It is said before a page that stays waits for its reader.
    if let Some(failure) = &failed {
        eprintln!("{}", failure.message);
    }
    let code = closed.conclude();
    Ok(match (failed, comparison) {
        (Some(failure), _) => failure.code,
        (None, Ok((comparison, _))) if matches!(code, exit::OK | exit::THRESHOLD) => {
            match code_of_conditions(&comparison) {
                exit::OK if is_lost(&comparison) => exit::INVALID_RUN,
                code => code,
            }
        }
        (None, _) => code,
    })
}

/// Makes all repeats, in turns.
fn repeat(
    arguments: &CompareArguments,
    sides: &[SidePlan],
    driver: &mut Driver<'_>,
    made: &mut Vec<Made>,
) -> Result<(), Failure> {
    let [repeats, again, make_up] =
        [arguments.repeats, arguments.aa, arguments.make_up].map(usize::from);
    let mut turns = Turns::new(sides.len(), repeats, again, make_up);
    let mut counted = true;
    while let Some(turn) = turns.next(counted) {
        if driver.is_over() {
            return Ok(());
        }
        let (index, name) = match turn.whose {
            Whose::Side(index) => (index, sides[index].name.clone()),
            Whose::Again => (0, again_name(&sides[0].name)),
        };
        let side = &sides[index];
        let nth = made.iter().filter(|made| made.turn.whose == turn.whose).count() + 1;
        let label = format!("{name}-{nth}");
        let repeat = match turn.whose {
            Whose::Side(_) => nth.to_string(),
            Whose::Again => format!("aa-{nth}"),
        };
        driver.fresh_stage(&side.targets);
        let log = driver.file(&format!("before-{label}.log"));
        let stopped = || driver.is_over();
        let run = |command: &String| before::run(command, (&side.name, &repeat), &log, &stopped);
        let ran = side.before.as_ref().map(run).transpose()?;
        let (number, total) = (made.len() + 1, turns.total());
        let again = if turn.made_up { ", in place of one that does not count" } else { "" };
        let title = format!("repeat {number} of {total}: {name} #{nth}{again}");
        let place = Place {
            series: name,
            rung: match turn.whose {
                Whose::Side(index) => index,
                Whose::Again => sides.len(),
            },
            label,
            ..Place::default()
        };
        let step = Step { scenario: side.scenario.clone(), place, title };
        let Some((outcome, position)) = driver.run(step)? else { return Ok(()) };
        driver.blame(&outcome);
        counted = position.is_some() && outcome.data.record.verdict.counts();
        let directory = driver.last_directory().to_owned();
        made.push(Made { turn, directory, before: ran });
    }
    Ok(())
}

/// The repeats as they lie in their directories.
fn read(sides: &[SidePlan], made: &[Made], driver: &Driver<'_>) -> Result<Vec<Side>, Failure> {
    let of = |whose: Whose| -> Result<Vec<Run>, Failure> {
        let made = made.iter().filter(|made| made.turn.whose == whose);
        let read = |made: &Made| {
            let run = Run::read(&driver.file(&made.directory), &made.directory);
            let run = run.map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
            Ok(Run { before: made.before.clone(), made_up: made.turn.made_up, ..run })
        };
        made.map(read).collect()
    };
    let side = |(index, plan): (usize, &SidePlan)| {
        Ok(Side {
            name: plan.name.clone(),
            label: plan.label.clone(),
            before: plan.before.clone(),
            runs: of(Whose::Side(index))?,
            again: if index == 0 { of(Whose::Again)? } else { Vec::new() },
        })
    };
    sides.iter().enumerate().map(side).collect()
}
