//! Runs one after another below one directory, on stages that are set up as needed.

use std::path::PathBuf;
use std::time::Instant;

use tacho_lab::campaign::{Campaign, Place, target_failed};
use tacho_lab::run::{Ending, Outcome};
use tacho_record::RunDirectory;
use tacho_record::Timestamp;
use tacho_record::{Capacity, Cause, RunKind, RunRecord, Verdict};
use tacho_report::{campaign_text, step_line, write_run};
use tacho_scenario::Scenario;

use crate::exit::{self, Failure};
use crate::run::{OutputArguments, Performance, Setting, Stage, TargetArguments, create, show};

/// A campaign under way.
pub(crate) struct Driver<'a> {
    pub(crate) setting: Setting,
    pub(crate) campaign: Campaign,
    output: &'a OutputArguments,
    directory: RunDirectory,
    name: String,
    stage: Option<Stage>,
    /// Runs so far.
    runs: usize,
    /// Stages so far.
    stages: usize,
    started: Instant,
    /// Directory of the last run, below the campaign's.
    last_directory: String,
    /// Why the campaign cannot go on.
    failed: Option<Failure>,
    /// Exit code of a failure that did not end the campaign.
    forgiven: Option<u8>,
}

/// A run to make.
pub(crate) struct Step {
    pub(crate) scenario: Scenario,
    pub(crate) place: Place,
    /// What the progress display says.
    pub(crate) title: String,
}

impl<'a> Driver<'a> {
    /// Begins: takes over the process and creates the directory. `first` is the scenario of the
    /// first run, whose broker must be there.
    pub(crate) fn begin(
        kind: RunKind,
        (name, description): (&str, &str),
        targets: &TargetArguments,
        output: &'a OutputArguments,
        first: &Scenario,
    ) -> Result<Self, Failure> {
        Self::begin_sides(kind, (name, description), &[(targets, first)], output)
    }

    /// As [`Driver::begin`], with several conditions: the first run of each must be possible.
    pub(crate) fn begin_sides(
        kind: RunKind,
        (name, description): (&str, &str),
        sides: &[(&TargetArguments, &Scenario)],
        output: &'a OutputArguments,
    ) -> Result<Self, Failure> {
        // Invariant: there is one side at least.
        let [(targets, first), ..] = sides else {
            return Err(Failure::new(exit::UNEXPECTED, "there is nothing to run"));
        };
        let mut setting = Setting::new(targets, output.quiet)?;
        setting.report_in(output.lang);
        if kind == RunKind::Suite {
            setting.for_several();
        }
        // A broker that is not there, or cores that do not exist: before anything is created.
        match sides.len() {
            1 => drop(setting.targets(first)?),
            _ => setting.divide_for(sides)?,
        }
        let run_name = match kind {
            RunKind::Comparison => format!("compare-{name}"),
            _ => name.to_owned(),
        };
        let run_name = RunDirectory::run_name(Timestamp::now(), &run_name);
        let path = output.dir.clone().unwrap_or_else(|| PathBuf::from("runs").join(&run_name));
        setting.serve(&output.ui, (&run_name, kind), &path)?;
        let directory = create(&path)?;
        setting.announce(&directory, (name, kind))?;
        let unexpected = |error| Failure::new(exit::UNEXPECTED, error);
        directory.write_scenario(&first.to_toml()).map_err(unexpected)?;
        Ok(Self {
            setting,
            campaign: Campaign::new(kind, name, description, &run_name),
            output,
            directory,
            name: run_name,
            stage: None,
            runs: 0,
            stages: 0,
            started: Instant::now(),
            last_directory: String::new(),
            failed: None,
            forgiven: None,
        })
    }

    /// Is no further run possible?
    pub(crate) fn is_over(&self) -> bool {
        self.failed.is_some() || self.setting.is_stopped()
    }

    /// Prints a line, unless quiet.
    pub(crate) fn say(&self, text: &str) {
        if !self.output.quiet {
            eprintln!("{text}");
        }
    }

    /// Makes one run. `None` when it could not begin since the broker is gone or the process is to
    /// stop; [`Driver::is_over`] then.
    ///
    /// # Errors
    /// When something is wrong that no broker is to blame for.
    pub(crate) fn run(&mut self, step: Step) -> Result<Option<(Outcome, Option<usize>)>, Failure> {
        if self.is_over() {
            return Ok(None);
        }
        if self.stage.is_none()
            && let Err(failure) = self.set_stage(&step.scenario)
        {
            return match failure.code {
                exit::TARGET_UNREACHABLE | exit::ABORTED => {
                    self.failed = Some(failure);
                    Ok(None)
                }
                _ => Err(failure),
            };
        }
        self.runs += 1;
        let mut place = step.place;
        place.directory = format!("steps/{:02}-{}", self.runs, safe(&place.label));
        let directory = create(&self.directory.file(&place.directory))?;
        self.last_directory.clone_from(&place.directory);
        let thresholds = step.scenario.thresholds.clone();
        let performance = Performance {
            scenario: step.scenario,
            name: format!("{}/{:02}", self.name, self.runs),
            title: Some(step.title),
        };
        // Invariant: set above.
        let Some(stage) = &mut self.stage else { return Ok(None) };
        let outcome = stage.perform(performance, &directory)?;
        if let Some(words) = stage.broker_failure() {
            self.failed = Some(Failure::new(exit::TARGET_UNREACHABLE, words));
        }
        let label = place.label.clone();
        let position = self.campaign.add(place, &outcome, &thresholds);
        if let Some(step) = position.and_then(|position| self.campaign.steps().get(position)) {
            self.say(&step_line(&label, step));
        }
        Ok(Some((outcome, position)))
    }

    fn set_stage(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        let targets = self.setting.targets(scenario)?;
        self.stages += 1;
        // The first broker's output is where that of a single run is.
        let directory = match self.stages {
            1 => None,
            number => Some(create(&self.directory.file(&format!("brokers/{number:02}")))?),
        };
        let directory = directory.as_ref().unwrap_or(&self.directory);
        self.stage = Some(self.setting.stage(targets, directory)?);
        Ok(())
    }

    /// Remembers that a run could not come to its end because of its broker.
    pub(crate) fn blame(&mut self, outcome: &Outcome) {
        if let (None, Some(sentence)) = (&self.failed, target_failed(outcome)) {
            let code = match outcome.ending {
                Ending::GeneratorFailed(_) => exit::UNEXPECTED,
                _ => exit::TARGET_UNREACHABLE,
            };
            self.failed = Some(Failure::new(code, sentence));
        }
    }

    /// Lets go of the brokers: the next run starts fresh ones. One that has ended is no reason to
    /// end the campaign any more, but one for its verdict.
    pub(crate) fn forgive(&mut self) {
        self.stage = None;
        if let Some(failure) = self.failed.take() {
            self.say(&failure.message);
            let sentence = failure.message.trim_start_matches("error: ").to_owned();
            self.campaign.reason(Verdict::Aborted, Cause::Message(sentence));
            self.forgiven = Some(failure.code);
        }
    }

    /// Lets go of the brokers: the next run starts those of `targets`.
    pub(crate) fn fresh_stage(&mut self, targets: &TargetArguments) {
        self.stage = None;
        self.setting.take_arguments(targets);
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Time since it began.
    pub(crate) fn elapsed_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// A file of its directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    /// Directory of the last run, below that of the campaign.
    pub(crate) fn last_directory(&self) -> &str {
        &self.last_directory
    }

    /// Ends: stops the brokers, writes the record and the report, prints the table.
    pub(crate) fn finish(self, capacity: Option<Capacity>) -> Result<u8, Failure> {
        let output = self.output;
        let closed = self.close(capacity)?;
        show(output, &closed.record, &closed.directory, campaign_text)?;
        Ok(closed.conclude())
    }

    /// Stops the brokers, writes the record and the report.
    pub(crate) fn close(mut self, capacity: Option<Capacity>) -> Result<Closed, Failure> {
        self.stage = None;
        let stopped = self.setting.is_stopped();
        if stopped {
            self.campaign.reason(Verdict::Aborted, Cause::CampaignStopped);
        } else if let Some(failure) = &self.failed {
            let sentence = failure.message.trim_start_matches("error: ").to_owned();
            self.campaign.reason(Verdict::Aborted, Cause::Message(sentence));
        }
        let mut results = self.campaign.finish(self.started.elapsed().as_secs_f64(), capacity);
        let unexpected = |error| Failure::new(exit::UNEXPECTED, error);
        if let Some(environment) = &results.environment {
            self.directory.write_environment(environment).map_err(unexpected)?;
        }
        write_run(&self.directory, &mut results, self.output.lang).map_err(unexpected)?;
        Ok(Closed {
            setting: self.setting,
            directory: self.directory,
            record: results.record,
            stopped,
            failed: self.failed,
            forgiven: self.forgiven,
        })
    }
}

/// A campaign whose record is written.
pub(crate) struct Closed {
    pub(crate) directory: RunDirectory,
    pub(crate) record: RunRecord,
    setting: Setting,
    stopped: bool,
    failed: Option<Failure>,
    forgiven: Option<u8>,
}

impl Closed {
    /// Ends the live page; returns the exit code.
    pub(crate) fn conclude(mut self) -> u8 {
        if let Some(failure) = &self.failed {
            eprintln!("{}", failure.message);
        }
        self.setting.conclude(Some(&self.record));
        match (self.stopped, self.failed) {
            (true, _) => exit::ABORTED,
            (false, Some(failure)) => failure.code,
            (false, None) => match (self.record.verdict, self.forgiven) {
                (Verdict::Aborted, Some(code)) => code,
                (verdict, _) => exit::code_of(verdict, &Ending::Completed),
            },
        }
    }
}

/// A label as a part of a file name.
fn safe(label: &str) -> String {
    let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = label.chars().map(|c| if usable(c) { c } else { '-' }).collect();
    let name: String = name.trim_matches(['.', '-']).chars().take(60).collect();
    if name.is_empty() { "step".to_owned() } else { name }
}
