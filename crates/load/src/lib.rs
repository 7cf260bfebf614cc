//! Tacho's load generator: thousands of virtual MQTT clients per thread that publish on an
//! absolute schedule, verify every delivery, and record latency from the *intended* send time.
//!
//! The crate takes a resolved [`Plan`] (pure data, no scenario files), runs it with an
//! [`Engine`], and reports [`Event`]s: phase changes, one [`IntervalSnapshot`] per second, the
//! [`Totals`] of each measured step, and at last a [`Summary`].
//!
//! ```text
//! Plan -> Engine::start -> threads of virtual clients -> Event, Event, .. -> Event::Finished
//! ```
//!
//! What each message carries is in [`payload`]; when it is due, in [`schedule`].

mod cells;
mod controller;
mod engine;
pub mod events;
mod mail;
pub mod null_broker;
pub mod payload;
mod placement;
pub mod plan;
mod recorder;
mod rtt;
pub mod schedule;
mod verifier;
mod worker;

pub use engine::{AbortHandle, Engine, StartError};
pub use events::{
    ActionCounts, ActionTotals, Counters, Delivery, End, Event, Failure, Gap, GroupInterval,
    GroupTotals, Histogram, IntervalSnapshot, Outcomes, PhaseKind, SharedTotals, Summary,
    TargetInterval, TargetTotals, ThreadUsage, Totals, Violations,
};
pub use payload::{Template, TemplateError};
pub use plan::{
    Action, Arrivals, Bridge, CatchUp, Client, ClientIndex, DeclaredLoss, Deed, Group, Offline,
    Pace, Payload, Phase, PhasePolicy, Plan, PlanError, PublishBlock, Rate, RateFrom, Receiver,
    Reconnect, Route, Scale, SharedGroup, Stream, StreamIndex, Subscription, Target, Timing, Trace,
    Transport, Will, local_port_range,
};

/// Parts of a [`Transport`].
pub use tacho_net::tls::{TlsClient, TlsClientSettings, TlsError};
pub use tacho_net::ws::WsClient;

/// Parts of a [`Plan`] that are the protocol's own.
pub use tacho_codec::{QoS, RetainHandling, Version};
