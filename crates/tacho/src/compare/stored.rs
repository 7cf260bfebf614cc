//! Runs that were made before.

use std::path::PathBuf;

use tacho_lab::compare::{
    About, CompareError, Side, compare, read_side, side_curves, stored_record,
};
use tacho_lab::run::Ending;
use tacho_record::Timestamp;

use tacho_report::{tell, tell_comparison};

use super::arguments::CompareArguments;
use super::{conditions, publish};
use crate::exit::{self, Failure};

/// Compares the runs in the directories that `runs` name.
pub(super) fn stored(arguments: &CompareArguments, runs: &[String]) -> Result<u8, Failure> {
    if arguments.is_about_new_runs() {
        let sentence = "arguments about brokers, load, repeats and outputs cannot be used here: \
                        the runs are made already";
        return Err(Failure::new(exit::UNEXPECTED, sentence));
    }
    let unusable = |error: CompareError| Failure::new(exit::INVALID_CONFIG, error);
    let letters = ('a'..='z').map(String::from);
    if runs.len() > 26 {
        return Err(Failure::new(exit::INVALID_CONFIG, "at most 26 sides can be compared"));
    }
    let sides = letters.zip(runs).map(|(name, run)| read_side(&name, run));
    let sides: Vec<Side> = sides.collect::<Result<_, _>>().map_err(unusable)?;
    let started = Timestamp::now();
    let scenario = &sides[0].runs.first().map_or("", |run| run.record.scenario.as_str());
    let name = arguments.output.run_name(&format!("compare-{scenario}"));
    let about = About {
        name: name.clone(),
        started_at: started.rfc3339(),
        elapsed_s: 0.0,
        interleaved: false,
        seed: 1,
    };
    let mut comparison = compare(&sides, &about, &conditions(arguments)).map_err(unusable)?;
    tell_comparison(&mut comparison);
    comparison.given = arguments.output.given();
    let path = arguments.output.dir.clone().unwrap_or_else(|| PathBuf::from("runs").join(&name));
    let directory = arguments.output.create(&path)?;
    let mut record = stored_record(&comparison, &sides);
    record.given = arguments.output.given();
    tell(&mut record);
    let written = tacho_report::write_record(&directory, &record);
    written.map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    publish(&comparison, &side_curves(&sides), &directory, &arguments.output)?;
    Ok(exit::code_of(record.verdict, &Ending::Completed))
}
