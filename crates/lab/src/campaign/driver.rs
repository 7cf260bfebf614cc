//! Runs one after another below one directory, on brokers that are set up as needed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tacho_record::{
    Capacity, Cause, Check, Gate, Observation, Obstacle, RunData, RunDirectory, RunKind, RunRecord,
    Severity, Verdict,
};
use tacho_scenario::Scenario;

use super::bench::{Bench, CampaignNews, Performance, StepNumber};
use super::error::CampaignError;
use super::parent::{Campaign, Place, target_failed};
use super::subject::Subject;
use crate::run::{Ending, Outcome};

/// A campaign under way.
pub struct Driver<'b> {
    bench: &'b mut dyn Bench,
    pub(crate) campaign: Campaign,
    directory: RunDirectory,
    name: String,
    is_set_up: bool,
    /// Runs so far.
    runs: usize,
    /// How often brokers were set up so far.
    setups: usize,
    started: Instant,
    /// Directory of the last run, below the campaign's.
    last_directory: String,
    /// Why the campaign cannot go on.
    failed: Option<CampaignError>,
    /// The last failure that did not end the campaign.
    forgiven: Option<CampaignError>,
}

/// What a campaign is called.
#[derive(Clone, Copy, Debug)]
pub struct CampaignAbout<'a> {
    /// What kind it is.
    pub kind: RunKind,
    /// Its name.
    pub name: &'a str,
    /// Its scenario, or the suite.
    pub subject: Subject<'a>,
}

/// A run to make.
#[derive(Clone, Debug)]
pub struct Step {
    /// What to run.
    pub scenario: Scenario,
    /// Where it belongs.
    pub place: Place,
    /// What the progress display says.
    pub title: String,
    /// The same as numbers.
    pub number: StepNumber,
}

/// A run that was made.
#[derive(Debug)]
pub struct MadeRun {
    /// What it measured.
    pub outcome: Outcome,
    /// Position of its step, if it measured one.
    pub position: Option<usize>,
}

/// A campaign that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Where its files are.
    pub directory: RunDirectory,
    /// What it measured; the caller writes the record.
    pub data: RunData,
    /// How it ended.
    pub end: CampaignEnd,
}

/// How a campaign ended.
#[derive(Debug)]
pub enum CampaignEnd {
    /// All runs were made.
    Completed {
        /// The last failure of brokers that did not end it.
        forgiven: Option<CampaignError>,
    },
    /// It was stopped on request.
    Stopped {
        /// What had failed before.
        failed: Option<CampaignError>,
    },
    /// It could not go on.
    Failed(CampaignError),
}

impl<'b> Driver<'b> {
    /// Begins a campaign whose runs lie below `directory`.
    pub fn new(
        bench: &'b mut dyn Bench,
        about: &CampaignAbout<'_>,
        directory: RunDirectory,
    ) -> Self {
        let CampaignAbout { kind, name, subject } = *about;
        Self {
            bench,
            campaign: Campaign::new(kind, subject, name),
            directory,
            name: name.to_owned(),
            is_set_up: false,
            runs: 0,
            setups: 0,
            started: Instant::now(),
            last_directory: String::new(),
            failed: None,
            forgiven: None,
        }
    }

    /// Is no further run possible?
    pub(crate) fn is_over(&self) -> bool {
        self.failed.is_some() || self.is_stopped()
    }

    /// Was the campaign asked to stop?
    pub(crate) fn is_stopped(&self) -> bool {
        self.bench.is_stopped()
    }

    /// Waits that long, or until the campaign is asked to stop.
    pub(crate) fn pause(&self, length: Duration) {
        self.bench.pause(length);
    }

    /// Shows news of the campaign.
    pub(crate) fn tell(&self, news: CampaignNews<'_>) {
        self.bench.tell(news);
    }

    /// Makes one run, and makes it again where the machine was disturbed: twice, or once where
    /// only the generator was late. Only the last one counts.
    ///
    /// # Errors
    /// As for [`Driver::run`].
    pub(crate) fn run_until_valid(&mut self, step: Step) -> Result<Option<MadeRun>, CampaignError> {
        let (label, counts) = (step.place.label.clone(), step.place.counts);
        let mut times = 0;
        loop {
            let mut attempt = step.clone();
            attempt.place.counts = false;
            if times > 0 {
                attempt.place.label = format!("{label} (repeat {times})");
            }
            let Some(made) = self.run(attempt)? else { return Ok(None) };
            let record = &made.outcome.data.record;
            if times >= repeats_max(record) || self.is_over() {
                if counts {
                    self.campaign.count(&label, record);
                }
                return Ok(Some(made));
            }
            times += 1;
            let (label, verdict) = (label.clone(), record.verdict);
            self.tell(CampaignNews::Repeated { verdict });
            let repeated = Observation::Repeated { label, verdict };
            self.campaign.remark("repeated", Severity::Info, repeated);
        }
    }

    /// Makes one run. `None` when it could not begin since the broker is gone or the process is to
    /// stop; [`Driver::is_over`] then.
    ///
    /// # Errors
    /// When something is wrong that no broker is to blame for.
    pub(crate) fn run(&mut self, step: Step) -> Result<Option<MadeRun>, CampaignError> {
        if self.is_over() {
            return Ok(None);
        }
        if !self.is_set_up
            && let Err(error) = self.set_up(&step.scenario)
        {
            return match error {
                CampaignError::Target(_) | CampaignError::Stopped(_) => {
                    self.failed = Some(error);
                    Ok(None)
                }
                _ => Err(error),
            };
        }
        self.runs += 1;
        let mut place = step.place;
        place.directory = format!("steps/{:02}-{}", self.runs, file_name(&place.label));
        let directory = RunDirectory::create(&self.directory.file(&place.directory))?;
        self.last_directory.clone_from(&place.directory);
        let thresholds = step.scenario.thresholds.clone();
        let performance = Performance {
            scenario: step.scenario,
            name: format!("{}/{:02}", self.name, self.runs),
            title: Some(step.title),
            step: Some(step.number),
        };
        let outcome = self.bench.perform(performance, &directory)?;
        if let Some(sentence) = self.bench.broker_failure() {
            self.failed = Some(CampaignError::Target(sentence));
        }
        let label = place.label.clone();
        let position = self.campaign.add(place, &outcome, &thresholds);
        if let Some(step) = position.and_then(|position| self.campaign.steps().get(position)) {
            self.bench.tell(CampaignNews::Measured { label: &label, step });
        }
        Ok(Some(MadeRun { outcome, position }))
    }

    fn set_up(&mut self, scenario: &Scenario) -> Result<(), CampaignError> {
        self.setups += 1;
        // The first broker's output is where that of a single run is.
        let directory = match self.setups {
            1 => None,
            number => {
                let path = self.directory.file(&format!("brokers/{number:02}"));
                Some(RunDirectory::create(&path)?)
            }
        };
        self.bench.set_up(scenario, directory.as_ref().unwrap_or(&self.directory))?;
        self.is_set_up = true;
        Ok(())
    }

    /// Remembers that a run could not come to its end because of its broker.
    pub(crate) fn blame(&mut self, outcome: &Outcome) {
        if let (None, Some(sentence)) = (&self.failed, target_failed(outcome)) {
            let sentence = sentence.to_owned();
            self.failed = Some(match outcome.ending {
                Ending::GeneratorFailed(_) => CampaignError::Failed(sentence),
                _ => CampaignError::Target(sentence),
            });
        }
    }

    /// Ends the brokers: the next run starts fresh ones. One that has ended is no reason to end the
    /// campaign any more, but one for its verdict.
    pub(crate) fn forgive(&mut self) {
        self.clear();
        if let Some(error) = self.failed.take() {
            self.bench.tell(CampaignNews::Forgiven { error: &error });
            self.abort(&error);
            self.forgiven = Some(error);
        }
    }

    /// Ends the brokers: the next run starts those of `side`.
    pub(crate) fn change_side(&mut self, side: usize) {
        self.clear();
        self.bench.choose_side(side);
    }

    fn clear(&mut self) {
        self.bench.clear();
        self.is_set_up = false;
    }

    /// Makes `error` a cause of the verdict.
    pub(crate) fn abort(&mut self, error: &CampaignError) {
        self.campaign.reason(Verdict::Aborted, Cause::Message(error.to_string()));
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

    /// Ends the brokers and the campaign.
    ///
    /// # Errors
    /// When the record of the environment cannot be written.
    pub(crate) fn finish(mut self, capacity: Option<Capacity>) -> Result<Finished, CampaignError> {
        self.clear();
        let is_stopped = self.is_stopped();
        match self.failed.take() {
            failed if is_stopped => {
                self.campaign.reason(Verdict::Aborted, Cause::CampaignStopped);
                self.end(capacity, CampaignEnd::Stopped { failed })
            }
            Some(error) => {
                self.abort(&error);
                self.end(capacity, CampaignEnd::Failed(error))
            }
            None => {
                let forgiven = self.forgiven.take();
                self.end(capacity, CampaignEnd::Completed { forgiven })
            }
        }
    }

    fn end(self, capacity: Option<Capacity>, end: CampaignEnd) -> Result<Finished, CampaignError> {
        let data = self.campaign.finish(self.started.elapsed().as_secs_f64(), capacity);
        if let Some(environment) = &data.environment {
            self.directory.write_environment(environment)?;
        }
        Ok(Finished { directory: self.directory, data, end })
    }
}

/// The first of the scenarios that this machine can run.
///
/// # Errors
/// When it can run none of the `points`.
pub fn first_feasible<'s>(
    scenarios: impl IntoIterator<Item = &'s Result<Scenario, Obstacle>>,
    points: &'static str,
) -> Result<&'s Scenario, CampaignError> {
    let mut obstacles = Vec::new();
    for scenario in scenarios {
        match scenario {
            Ok(scenario) => return Ok(scenario),
            Err(obstacle) => obstacles.push(obstacle),
        }
    }
    let greatest = Obstacle::greatest(obstacles.iter().copied());
    let obstacle = greatest.or_else(|| obstacles.first().copied().cloned());
    let obstacle = Box::new(obstacle.unwrap_or(Obstacle::BrokerGone));
    Err(CampaignError::Infeasible { points, obstacle })
}

/// A label as a part of a file name.
fn file_name(label: &str) -> String {
    let is_usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = label.chars().map(|c| if is_usable(c) { c } else { '-' }).collect();
    let name: String = name.trim_matches(['.', '-']).chars().take(60).collect();
    if name.is_empty() { "step".to_owned() } else { name }
}

/// How often a run is made again that ended like this.
fn repeats_max(record: &RunRecord) -> u32 {
    let is_busy = |gate: &Gate| !gate.passed && gate.name.known() == Some(Check::ThreadBusy);
    match record.verdict {
        Verdict::Disturbed => 2,
        // A generator at its limit is at its limit the next time, too.
        Verdict::GeneratorBound => {
            u32::from(!record.steps.iter().flat_map(|step| &step.gates).any(is_busy))
        }
        _ => 0,
    }
}
