//! What a campaign asks of its surroundings: brokers, runs on them, and an audience.

use std::time::Duration;

use tacho_record::{Obstacle, RunDirectory, Step, TrialOutcome, Verdict};
use tacho_scenario::Scenario;
use tacho_scenario::threshold::Threshold;

use super::error::CampaignError;
use crate::run::Outcome;
use tacho_record::Cause;

/// One run to perform.
#[derive(Debug)]
pub struct Performance {
    /// What to run.
    pub scenario: Scenario,
    /// Name of the run.
    pub name: String,
    /// Which run this is among several, for the progress display.
    pub title: Option<String>,
    /// The same as numbers.
    pub step: Option<StepNumber>,
}

/// Which of several runs one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepNumber {
    /// From 1.
    pub number: usize,
    /// How many are planned; absent where results decide that.
    pub of: Option<usize>,
}

/// Where the runs of a campaign are performed.
///
/// Campaigns know no brokers: tests perform their runs by a model.
pub trait Bench {
    /// Chooses the side whose brokers the next [`Bench::set_up`] starts; the first one unless
    /// called.
    fn choose_side(&mut self, side: usize);

    /// Starts the brokers that `scenario` needs, unless they run already; their files go to
    /// `directory`.
    ///
    /// # Errors
    /// When they cannot be started or reached.
    fn set_up(
        &mut self,
        scenario: &Scenario,
        directory: &RunDirectory,
    ) -> Result<(), CampaignError>;

    /// Ends the brokers that [`Bench::set_up`] started.
    fn clear(&mut self);

    /// Performs a run on these brokers and writes all its files to `directory`.
    ///
    /// # Errors
    /// When it cannot begin, or its files cannot be written.
    fn perform(
        &mut self,
        performance: Performance,
        directory: &RunDirectory,
    ) -> Result<Outcome, CampaignError>;

    /// Why one of the brokers has ended by itself.
    fn broker_failure(&self) -> Option<String>;

    /// Was the campaign asked to stop?
    fn is_stopped(&self) -> bool;

    /// Waits that long, or until the campaign is asked to stop.
    fn pause(&self, length: Duration);

    /// Shows news of the campaign.
    fn tell(&self, news: CampaignNews<'_>);
}

/// What a campaign tells while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum CampaignNews<'a> {
    /// A run has measured a step.
    Measured {
        /// Its label.
        label: &'a str,
        /// The step.
        step: &'a Step,
    },
    /// A trial was judged.
    Judged {
        /// Its judgement.
        outcome: TrialOutcome,
        /// The first reason for that.
        cause: Option<&'a Cause>,
    },
    /// A trial that this machine cannot run.
    Infeasible {
        /// Which.
        title: &'a str,
        /// What the machine lacks.
        needs: &'a Obstacle,
    },
    /// A row of a suite was left out.
    Skipped {
        /// Which.
        title: &'a str,
        /// Why.
        obstacle: &'a Obstacle,
    },
    /// A row says nothing about the broker and is measured again.
    Repeated {
        /// Its verdict.
        verdict: Verdict,
    },
    /// A ladder ends at this condition.
    LadderStopped {
        /// The condition that holds.
        condition: &'a Threshold,
    },
    /// Brokers failed, and the campaign goes on with fresh ones.
    Forgiven {
        /// What happened.
        error: &'a CampaignError,
    },
}
