//! Causes of verdicts, as data: `report` has the words.

use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::condition::{ConditionCause, Requirement};
use crate::direction::Direction;
use crate::disturbance::Disturbance;
use crate::observation::Observation;
use crate::obstacle::Obstacle;

/// One reason of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// Deliveries broke the QoS contract.
    QosBroken {
        /// Never delivered.
        lost: u64,
        /// Delivered again.
        duplicated: u64,
        /// Delivered out of order.
        out_of_order: u64,
        /// Delivered with another payload.
        damaged: u64,
    },
    /// Deliveries of acknowledged messages that never came.
    AcknowledgedLost {
        /// How many.
        deliveries: u64,
    },
    /// Deliveries of acknowledged messages that had not come when the drain ended.
    AcknowledgedPending {
        /// How many.
        deliveries: u64,
    },
    /// The hypervisor or other programs disturbed the window.
    Disturbed {
        /// How.
        disturbance: Disturbance,
    },
    /// A check of the generator failed.
    GeneratorCheck {
        /// Which.
        check: Check,
        /// The measured value.
        value: f64,
        /// Its upper limit.
        limit: f64,
        /// The agent whose figure it is; absent where the controller made the load.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Less was carried than offered.
    NotCarried {
        /// In or out.
        direction: Direction,
        /// Messages per second that were carried.
        achieved_per_s: f64,
        /// Messages per second that were offered.
        offered_per_s: f64,
    },
    /// Fewer logins were decided than were due.
    LoginsUndecided {
        /// Logins that had a decision.
        decided: u64,
        /// Logins that were due.
        due: u64,
        /// The first without one; absent where all of them were still waiting.
        first: Option<String>,
    },
    /// A group that no action concerned sent too little.
    BystanderSent {
        /// Its name.
        group: String,
        /// Messages sent.
        sent: u64,
        /// Messages due.
        offered: u64,
    },
    /// A group that no action concerned received too little.
    BystanderReceived {
        /// Its name.
        group: String,
        /// Messages received.
        received: u64,
        /// Messages expected.
        expected: u64,
    },
    /// Retained messages that new subscribers did not get.
    RetainedMissing {
        /// How many.
        count: u64,
    },
    /// Wills that did not come.
    WillsMissing {
        /// How many.
        count: u64,
    },
    /// First connections that outlived a second one with the same client identifier.
    NotTakenOver {
        /// How many.
        count: u64,
    },
    /// The rate was not steady.
    RateChanged {
        /// Messages per second out in the first third of the window.
        first_per_s: f64,
        /// The same in the last third.
        last_per_s: f64,
    },
    /// The latency was not steady.
    LatencyChanged {
        /// Median in the first third of the window, in microseconds.
        first_us: u64,
        /// The same in the last third.
        last_us: u64,
    },
    /// A threshold does not hold.
    ThresholdFailed {
        /// The threshold, as it was asked for.
        condition: String,
        /// The measured value; absent if it could not be measured.
        value: Option<f64>,
    },
    /// Clients failed.
    ClientsFailed {
        /// How often.
        count: u64,
        /// The first failure.
        first: String,
    },
    /// A finding decides the verdict.
    Observed {
        /// The finding.
        observation: Observation,
    },
    /// The run was stopped.
    RunStopped,
    /// An output failed whose failure ends the run.
    OutputFailed {
        /// The output, without its options.
        output: String,
        /// Its error.
        why: String,
    },
    /// The campaign was stopped.
    CampaignStopped,
    /// The run ended before its measured phase.
    EndedBeforeMeasuring,
    /// No step of a campaign measured anything.
    NothingMeasured,
    /// This machine can run no point of a campaign.
    NoPointRuns,
    /// No client could connect.
    Unreachable {
        /// The last reason.
        why: String,
    },
    /// All clients lost their connection.
    AllLost {
        /// The last reason.
        why: String,
    },
    /// The readiness probe failed.
    ProbeFailed {
        /// Deliveries missing.
        missing: u64,
        /// Deliveries expected.
        expected: u64,
        /// Time waited.
        waited_ms: u64,
        /// Topic of one of them.
        first_topic: String,
    },
    /// A generator thread failed.
    ThreadFailed {
        /// Why.
        why: String,
    },
    /// An agent that ran a part of the load was lost, and the run ended.
    AgentLost {
        /// The agent.
        agent: String,
        /// Generator threads that it ran.
        threads: u64,
        /// Generator threads of the run.
        of: u64,
        /// Why.
        why: String,
    },
    /// An agent was lost, and the run went on without its share of the load.
    LoadMissing {
        /// The agent.
        agent: String,
        /// When, in seconds since the start of the run.
        at_s: f64,
        /// Its clients in percent of those of the run.
        percent: f64,
        /// Why.
        why: String,
    },
    /// This machine lacks resources for the next trial of a search.
    MachineEndsSearch {
        /// The missing resources.
        needs: Obstacle,
    },
    /// This machine cannot run a trial.
    NotRun {
        /// The reason.
        obstacle: Obstacle,
    },
    /// The machine was disturbed in so many trials that the search has no result.
    SearchDisturbed {
        /// Trials in all.
        trials: u64,
        /// Of these, trials that were disturbed.
        disturbed: u64,
    },
    /// The generator ends a search.
    GeneratorEndsSearch,
    /// The generator was the bottleneck in all trials.
    GeneratorBoundEverywhere,
    /// No trial met the objectives.
    NoLoadPasses,
    /// Trials contradict each other.
    Contradictions {
        /// How many were made.
        trials: u64,
    },
    /// A trial broke the QoS contract.
    QosBreaches {
        /// How often.
        count: u64,
    },
    /// A trial missed an objective.
    ObjectiveMissed {
        /// The objective.
        objective: String,
        /// The measured value; absent if it could not be measured.
        value: Option<f64>,
    },
    /// A condition of a comparison does not hold.
    ConditionFailed {
        /// What was asked to hold.
        requirement: Requirement,
        /// Why it does not.
        because: Vec<ConditionCause>,
    },
    /// A condition of a comparison cannot be decided.
    ConditionUndecided {
        /// What was asked to hold.
        requirement: Requirement,
        /// Why it cannot be decided.
        because: Vec<ConditionCause>,
    },
    /// Too few repeats of a comparison count.
    TooFewRepeats {
        /// Repeats per side from which on differences are judged.
        least: u64,
    },
    /// Another reason, of one step of a campaign.
    InStep {
        /// The step.
        label: String,
        /// The reason.
        cause: Box<Self>,
    },
    /// A message of a program or of the system, as it is.
    #[serde(untagged)]
    Message(String),
}

impl Cause {
    /// The same, of one step of a campaign.
    pub fn in_step(self, label: &str) -> Self {
        Self::InStep { label: label.to_owned(), cause: Box::new(self) }
    }
}
