//! The bench of campaigns: brokers as the arguments describe them, news on standard error.

use std::time::Duration;

use tacho_lab::campaign::{Bench, CampaignError, CampaignNews, Performance};
use tacho_lab::run::Outcome;
use tacho_record::{RunDirectory, RunRecord, TrialOutcome};
use tacho_report::{Lang, step_line};
use tacho_scenario::Scenario;

use crate::exit::{self, Failure};
use crate::run::{Setting, Stage, TargetArguments};

/// Performs the runs of a campaign on the brokers that the arguments name.
pub(crate) struct ArgumentBench<'a> {
    setting: Setting,
    stage: Option<Stage>,
    /// Brokers of each side.
    sides: Vec<&'a TargetArguments>,
    quiet: bool,
}

impl<'a> ArgumentBench<'a> {
    /// A bench for runs with these arguments about brokers, one for each side.
    pub(crate) fn new(setting: Setting, sides: Vec<&'a TargetArguments>, quiet: bool) -> Self {
        Self { setting, stage: None, sides, quiet }
    }

    /// Tells the live page how everything ended.
    pub(crate) fn conclude(&mut self, record: Option<&RunRecord>) {
        self.setting.conclude(record);
    }
}

impl Bench for ArgumentBench<'_> {
    fn choose_side(&mut self, side: usize) {
        if let Some(arguments) = self.sides.get(side) {
            self.setting.take_arguments(arguments);
        }
    }

    fn set_up(
        &mut self,
        scenario: &Scenario,
        directory: &RunDirectory,
    ) -> Result<(), CampaignError> {
        let targets = self.setting.targets(scenario).map_err(campaign_error)?;
        self.stage = Some(self.setting.stage(targets, directory).map_err(campaign_error)?);
        Ok(())
    }

    fn clear(&mut self) {
        self.stage = None;
    }

    fn perform(
        &mut self,
        performance: Performance,
        directory: &RunDirectory,
    ) -> Result<Outcome, CampaignError> {
        match &self.stage {
            Some(stage) => stage.perform(performance, directory).map_err(campaign_error),
            None => Err(CampaignError::Failed("no broker was set up for the run".to_owned())),
        }
    }

    fn broker_failure(&self) -> Option<String> {
        self.stage.as_ref().and_then(Stage::broker_failure)
    }

    fn is_stopped(&self) -> bool {
        self.setting.is_stopped()
    }

    fn pause(&self, length: Duration) {
        self.setting.pause(length);
    }

    fn tell(&self, news: CampaignNews<'_>) {
        if !self.quiet {
            eprintln!("{}", line(news));
        }
    }
}

/// News as a line of the terminal.
fn line(news: CampaignNews<'_>) -> String {
    match news {
        CampaignNews::Measured { label, step } => step_line(label, step),
        CampaignNews::Judged { outcome, cause } => {
            let verdict = match outcome {
                TrialOutcome::Pass => "pass",
                TrialOutcome::Fail => "fail",
                TrialOutcome::GeneratorBound => "generator bound",
                TrialOutcome::Disturbed => "disturbed",
            };
            let why = cause.map(|cause| format!(": {}", Lang::En.cause(cause)));
            format!("  {verdict}{}", why.unwrap_or_default())
        }
        CampaignNews::Infeasible { title, needs } => {
            format!("{title}: {}", Lang::En.obstacle(needs))
        }
        CampaignNews::Skipped { title, obstacle } => {
            format!("{title}: skipped: {}", Lang::En.obstacle(obstacle))
        }
        CampaignNews::Repeated { verdict } => {
            format!("  {}: this row says nothing and is measured again", verdict.name())
        }
        CampaignNews::LadderStopped { condition } => {
            format!("  {condition} holds: the ladder ends here")
        }
        CampaignNews::Forgiven { error } => format!("error: {error}"),
    }
}

/// A failure as campaigns tell them apart.
fn campaign_error(failure: Failure) -> CampaignError {
    let sentence = failure.sentence().to_owned();
    match failure.code {
        exit::ABORTED => CampaignError::Stopped(sentence),
        exit::TARGET_UNREACHABLE => CampaignError::Target(sentence),
        exit::INVALID_CONFIG => CampaignError::Setting(sentence),
        _ => CampaignError::Failed(sentence),
    }
}
