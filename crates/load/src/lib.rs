//! Tacho's load generator: thousands of virtual MQTT clients per thread that publish on an
//! absolute schedule, verify every delivery, and record latency from the *intended* send time
//! (which avoids coordinated omission).
//!
//! An [`Engine`] runs a resolved [`Plan`] (pure data, no scenario files) and reports [`Event`]s:
//! phase changes, one [`IntervalSnapshot`] per second, the [`Totals`] of each measured window, and
//! finally a [`Summary`].
//!
//! ```text
//! Plan -> Engine::start -> threads of virtual clients -> Event, Event, .. -> Event::Finished
//! ```
//!
//! A sample takes this way through the modules:
//!
//! 1. [`schedule`]: the stream's next intended time, absolute, in nanoseconds;
//! 2. `worker::send`: the message is written; `lateness` judges how late;
//! 3. [`payload`]: the header carries run, stream, sequence number, intended and send time;
//! 4. `worker::input`: a receiving client passes the delivery to `verifier`, which finds loss,
//!    duplicates, reordering and damage, and to `recorder`, which records its latency;
//! 5. `worker::phase`: once per second the thread's figures leave as one interval;
//! 6. `controller::intervals`: the intervals of all threads become snapshots and totals
//!    ([`events`]).

mod authentication;
mod cells;
mod context;
mod controller;
pub mod division;
mod engine;
pub mod events;
mod histogram;
mod index;
mod lateness;
mod mail;
pub mod null_broker;
mod past;
pub mod payload;
mod placement;
pub mod plan;
mod recorder;
mod rtt;
pub mod schedule;
mod sound;
mod verifier;
mod window;
mod wire;
mod worker;

pub use engine::{AbortHandle, Engine, StartError};
pub use events::{
    ActionCounts, ActionTotals, BegunPhase, ConnectCause, ConnectError, Counters, Delivery, End,
    Event, Failure, Gap, GroupInterval, GroupTotals, Histogram, IntervalSnapshot, JudgedLogin,
    LoadBegun, LoginCounts, LoginFigures, LoginTotals, LostPart, Outcomes, OversizedPacket,
    PhaseKind, ShareTotals, SharedTotals, Summary, TargetInterval, TargetTotals, ThreadUsage,
    Totals, Violations,
};
pub use wire::WireError;

pub use payload::{Payload, Template, TemplateError};
pub use plan::{
    Action, ActionKind, Arrivals, Authentication, Bridge, CatchUp, Client, ClientIndex,
    DeclaredLoss, Group, Login, LoginKind, Offline, Pace, Phase, PhasePolicy, Plan, PlanError,
    PublishBlock, Rate, RateFrom, Receiver, Reconnect, Route, Scale, SharedGroup, Stream,
    StreamIndex, Subscription, Target, Timing, TokenLogin, TokenPlace, Trace, Transport, Will,
    local_port_range,
};

/// Types used in an [`Authentication`].
pub use tacho_access::{ScramHash, TokenClaims, TokenSigner};
/// Types used in a [`Transport`].
pub use tacho_net::tls::{TestAuthority, TlsClient, TlsClientSettings, TlsError, TlsIdentity};
pub use tacho_net::ws::WsClient;

/// Protocol types used in a [`Plan`].
pub use tacho_codec::{QoS, RetainHandling, Version};
