//! `tacho run`: finds or starts the broker, runs the scenario, shows its record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Parser};
use tacho_lab::campaign::Performance;
use tacho_lab::lacks_secret;
use tacho_lab::run::{Ending, Left, ResumeState};
use tacho_record::{RunKind, Step};
use tacho_report::summary_text;
use tacho_scenario::suite::Suite;
use tacho_scenario::{ActionKind, Password, Scenario, SourceText};

use crate::campaign;
use crate::exit::{self, Failure};
use crate::run::{
    Fitting, Keeping, LoadArguments, OutputArguments, Setting, TargetArguments, agents_of, create,
    show,
};
use crate::scenario::tell_misprint;

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct RunArguments {
    /// Name of a scenario or suite (see 'tacho scenario list'), a scenario file or a JMeter plan
    #[arg(required_unless_present = "resume")]
    scenario: Option<String>,

    /// Take up the run in this directory, whose controller is gone while its agents go on (see
    /// --resume-within): with the command that made it, and until its end
    #[arg(long, value_name = "DIR", exclusive = true)]
    resume: Option<PathBuf>,

    /// Run only the rows of a suite whose series or label contains this text, or matches it as a
    /// whole where it has a '*'; may be given several times
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,

    /// Hold each row of a suite as long as its report did, and connect clients as fast: 'guide' 5
    /// minutes and 20 s
    #[arg(long, conflicts_with_all = ["hold", "ramp_up"])]
    as_published: bool,

    /// Run the scenario this many times, and show median and range of its figures; each run has its
    /// own directory below steps/, and the exit code is that of the worst
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    repeat: u16,

    #[command(flatten)]
    targets: TargetArguments,

    #[command(flatten)]
    load: LoadArguments,

    #[command(flatten)]
    output: OutputArguments,
}

/// Runs one scenario; the exit code tells the verdict.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    if let Some(directory) = &arguments.resume {
        return resume(directory);
    }
    let RunArguments { only, as_published, repeat, targets, load, output, .. } = arguments;
    let scenario = arguments.scenario();
    if let Some(suite) = Suite::find(scenario) {
        if *repeat > 1 {
            let sentence = format!(
                "--repeat applies to scenarios only, and '{scenario}' is a suite: repeat one of its \
                 rows by its scenario"
            );
            return Err(Failure::new(exit::INVALID_CONFIG, sentence));
        }
        let load = if *as_published { &held_as_published(&suite, load)? } else { load };
        return campaign::suite(&suite, only, load, targets, output);
    }
    let flags = [("--only", !only.is_empty()), ("--as-published", *as_published)];
    if let Some((flag, _)) = flags.iter().find(|(_, given)| *given) {
        let sentence = format!("{flag} applies to suites only, and '{scenario}' is not a suite");
        return Err(Failure::new(exit::UNEXPECTED, sentence));
    }
    let scenario = Fitting::new(load, targets)?.only_scenario(scenario, &[])?;
    if !output.quiet {
        tell_misprint(arguments.scenario());
        scenario.notes.iter().for_each(|note| eprintln!("note: {note}"));
    }
    if *repeat > 1 {
        return campaign::repeats(&scenario, *repeat, targets, output);
    }
    let is_timed = |action: &ActionKind| matches!(action, ActionKind::Run(_));
    let has_commands = scenario.schedule().iter().any(|timed| is_timed(&timed.action.kind));
    let keeping = if has_commands { Keeping::No } else { Keeping::Kept };
    once(scenario, targets, output, keeping).map(|ended| ended.code)
}

/// Takes up the run in `directory`.
fn resume(directory: &Path) -> Result<u8, Failure> {
    let invalid = |why: String| Failure::new(exit::INVALID_CONFIG, why);
    let state = ResumeState::read(directory).map_err(|error| invalid(error.to_string()))?;
    let broken = |why: &str| invalid(format!("{}: {why}", directory.display()));
    let directory = directory.canonicalize();
    let directory = directory.map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    let words = state.command().iter().skip(1);
    if words.clone().any(|word| lacks_secret(word)) {
        return Err(broken(
            "the command of the run had a secret in it, which is not kept: give secrets in files",
        ));
    }
    let line = MadeLine::try_parse_from(words).map_err(|_| broken("not a run of 'tacho run'"))?;
    std::env::set_current_dir(state.folder()).map_err(|error| {
        broken(&format!("the folder of its command, {}: {error}", state.folder().display()))
    })?;
    let RunArguments { targets, load, mut output, scenario, .. } = line.run;
    output.dir = Some(directory);
    let scenario = scenario.unwrap_or_default();
    let scenario = Fitting::new(&load, &targets)?.only_scenario(&scenario, &[])?;
    let fleet = Arc::new(agents_of(&targets, state.ticket())?);
    let keeping = Keeping::TakenUp(Box::new(state), fleet);
    once(scenario, &targets, &output, keeping).map(|ended| ended.code)
}

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) code: u8,
    /// Its figures, if it came so far.
    pub(crate) step: Option<Step>,
}

/// Runs a scenario that was made of other arguments, with a password for its clients and with
/// flags of this command.
pub(crate) fn run_text(
    source: SourceText,
    password: Option<Password>,
    flags: &[String],
) -> Result<Ended, Failure> {
    let name = source.name.to_string();
    let words = ["tacho run", &name].into_iter().chain(flags.iter().map(String::as_str));
    let line = match MadeLine::try_parse_from(words) {
        Ok(line) => line,
        Err(error) if !error.use_stderr() => {
            // What `--help` among these flags asks for.
            let _ = error.print();
            return Ok(Ended { code: exit::OK, step: None });
        }
        Err(error) => {
            let sentence = error.to_string();
            let sentence = sentence.trim_start_matches("error: ").trim_end();
            return Err(Failure::new(exit::UNEXPECTED, sentence));
        }
    };
    let RunArguments { mut targets, mut load, output, only, as_published, repeat, .. } = line.run;
    if !only.is_empty() || as_published || repeat > 1 {
        let sentence = "--only, --as-published and --repeat are not for such a run";
        return Err(Failure::new(exit::UNEXPECTED, sentence));
    }
    if let Some(password) = password {
        targets.give_password(password);
    }
    load.source = Some(source);
    let scenario = Fitting::new(&load, &targets)?.only_scenario(&name, &[])?;
    once(scenario, &targets, &output, Keeping::No)
}

/// Flags of 'tacho run' behind those of another command.
#[derive(Parser)]
struct MadeLine {
    #[command(flatten)]
    run: RunArguments,
}

fn once(
    scenario: Scenario,
    targets: &TargetArguments,
    output: &OutputArguments,
    keeping: Keeping,
) -> Result<Ended, Failure> {
    let page = output.ui.wish()?;
    let mut setting = Setting::new(targets, output.quiet)?;
    setting.report_in(output.lang);
    setting.give(output.given());
    let resumed = keeping.resumed();
    let name = match resumed {
        Some(state) => state.name().to_owned(),
        None => output.run_name(&scenario.name),
    };
    let path = output.dir.clone().unwrap_or_else(|| PathBuf::from("runs").join(&name));
    let brokers = setting.targets(&scenario)?;
    setting.serve(page, (&name, RunKind::Run), &path)?;
    if resumed.is_none() {
        output.check_place(&path)?;
    }
    setting.open_outputs(&output.out)?;
    let directory = match resumed {
        Some(_) => create(&path)?,
        None => output.create(&path)?,
    };
    setting.keep(keeping);
    setting.announce(&directory, (&scenario.name, RunKind::Run))?;
    let stage = setting.stage(brokers, &directory)?;
    let performance = Performance { scenario, name, title: None, step: None };
    let outcome = stage.perform(performance, &directory);
    let (broker_failure, stayed_away) = (stage.broker_failure(), stage.lost_a_broker());
    drop(stage);
    let outcome = outcome?;

    show(output, &outcome.data.record, &directory, summary_text)?;
    if let Ending::TargetFailed(sentence) | Ending::GeneratorFailed(sentence) = &outcome.ending {
        eprintln!("error: {sentence}");
    }
    if outcome.left.as_ref().is_some_and(Left::is_open) {
        let path = directory.path().display();
        eprintln!("'tacho run --resume {path}' takes the run up while its agents keep the load");
    }
    if let Some(sentence) = broker_failure {
        eprintln!("error: {sentence}");
    }
    setting.conclude(Some(&outcome.data.record));
    let code = match stayed_away {
        true => exit::TARGET_UNREACHABLE,
        false => exit::code_of(outcome.data.record.verdict, &outcome.ending),
    };
    Ok(Ended { code, step: outcome.data.record.steps.into_iter().next_back() })
}

impl RunArguments {
    /// The scenario of the first run, checked as the command checks it before anything starts.
    pub(crate) fn first_scenario(&self) -> Result<Scenario, Failure> {
        let scenario = self.scenario();
        if let Some(suite) = Suite::find(scenario) {
            return campaign::first_of_suite(&suite, &self.only, &self.load, &self.targets);
        }
        Fitting::new(&self.load, &self.targets)?.only_scenario(scenario, &[])
    }

    /// Its name; empty where a run is taken up.
    fn scenario(&self) -> &str {
        self.scenario.as_deref().unwrap_or_default()
    }

    /// Brokers and results.
    pub(crate) fn parts(&self) -> (&TargetArguments, &OutputArguments) {
        (&self.targets, &self.output)
    }
}

/// The same load, held as long as the report of `suite` held it.
fn held_as_published(suite: &Suite, load: &LoadArguments) -> Result<LoadArguments, Failure> {
    let Some(published) = suite.as_published() else {
        let sentence = format!(
            "--as-published: the report of '{}' does not say how long it held its rows; use --hold \
             and --ramp-up",
            suite.name
        );
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    };
    let mut load = load.clone();
    load.adjust = load.adjust.as_published(published);
    Ok(load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_is_held_for_five_minutes_with_clients_within_20_seconds() {
        let line = MadeLine::parse_from(["run", "guide", "--as-published"]);
        let suite = Suite::find("guide").expect("a suite");
        let load = held_as_published(&suite, &line.run.load).map_err(|error| error.message);
        let adjustment = load.expect("the guide says it").adjust.adjustment();
        let seconds = |span: Option<tacho_scenario::TimeSpan>| span.map(|span| span.0.as_secs());
        assert_eq!((seconds(adjustment.hold), seconds(adjustment.ramp_up)), (Some(300), Some(20)));
    }
}
