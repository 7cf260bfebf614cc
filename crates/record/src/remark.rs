//! What a reader must know before comparing figures, as data: `report` has the words.

use serde::{Deserialize, Serialize};

/// One note of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A note of the scenario, as it is.
    #[serde(untagged)]
    Message(String),
}
