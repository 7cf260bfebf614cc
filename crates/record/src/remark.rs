//! Conditions that limit comparisons of figures, as data: `report` has the words.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::property::Property;
use crate::target::NoOwnCore;

/// One note of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remark {
    /// Broker and generator share a machine.
    OneMachine,
    /// Publishers wait for the broker.
    ClosedModel,
    /// A certificate was not verified.
    CertificateNotVerified {
        /// The broker.
        broker: String,
    },
    /// CPU and memory of the broker are not known.
    BrokerNotObserved,
    /// Round trips were not measured all the time.
    RoundTripsMissing {
        /// Why.
        why: String,
    },
    /// The broker was killed.
    BrokerKilled,
    /// Actions happened while the run was measured.
    Eventful,
    /// Clients were interrupted and tried again.
    Interrupted {
        /// How often.
        count: u64,
        /// The first reason.
        first: String,
    },
    /// Generator threads never slept.
    GeneratorNeverSlept {
        /// How many.
        threads: u64,
    },
    /// Generator threads spun while they waited, within a budget.
    GeneratorSpun {
        /// How many.
        threads: u64,
        /// What each may spin, in percent of its core.
        budget_percent: u8,
    },
    /// Generator threads slept between messages.
    GeneratorSlept {
        /// Why, where they were not asked to.
        why: Option<NoOwnCore>,
    },
    /// Generator threads served messages in batches, as they were asked to.
    GeneratorBatched,
    /// Generator threads served messages in batches, because their work filled their cores.
    GeneratorRested,
    /// Agents made the load.
    Agents {
        /// How many.
        count: u64,
        /// Bound of the error of latencies between two of them, in microseconds; 0 on one machine.
        clock_error_us: u64,
    },
    /// Another controller took the run up, and host figures before that are missing.
    TakenUp {
        /// When, in seconds since the start of the run.
        at_s: f64,
    },
    /// `results.jtl` holds a part of the samples.
    SamplesThinned {
        /// There is a row for one of so many.
        one_in: u64,
        /// All samples.
        of: u64,
    },
    /// Repeats of a side do not count.
    RepeatsDoNotCount {
        /// How many.
        out: u64,
        /// Of how many.
        of: u64,
        /// The side.
        side: String,
        /// Why the first of them does not.
        cause: Option<Cause>,
    },
    /// Repeats were made in place of others.
    MadeUp {
        /// How many.
        count: u64,
    },
    /// A side has no repeat that counts.
    NoRepeatCounts,
    /// A side has too few repeats for an interval.
    FewRepeats {
        /// Repeats that count, of the side that has the fewest.
        fewest: u64,
        /// How many an interval needs.
        least: u64,
    },
    /// The first condition differs from itself.
    ApartFromItself {
        /// The side.
        side: String,
        /// Names of the figures.
        figures: Vec<String>,
    },
    /// The runs were not made in turns.
    NotInTurns,
    /// The scenarios of the sides differ.
    ScenariosDiffer {
        /// The differing items.
        names: Vec<Property>,
        /// How many more differences there are.
        more: u64,
    },
    /// The environments of the sides differ.
    EnvironmentsDiffer {
        /// The differing items.
        names: Vec<Property>,
        /// How many more differences there are.
        more: u64,
    },
    /// A note of the scenario, as it is.
    #[serde(untagged)]
    Message(String),
}
