//! How clients live: wills, absences, reconnects, farewells.

use serde::Serialize;

use super::quantity::{PerSecond, TimeSpan};
use super::template::Template;

/// The message that the broker publishes for a client that goes without saying so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Will {
    /// Topic name.
    pub topic: Template,
    /// Text.
    pub payload: String,
    /// 0, 1 or 2.
    pub qos: u8,
    /// Retain flag.
    pub retain: bool,
    /// How long the broker waits before it publishes (5.0).
    pub delay: TimeSpan,
}

/// All clients of the group leave once during the load and come back to their sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Offline {
    /// From the start of the measured phase until they leave.
    pub after: TimeSpan,
    /// How long they stay away.
    #[serde(rename = "for")]
    pub length: TimeSpan,
    /// Leave with DISCONNECT, or break the connection.
    pub clean: bool,
    /// The broker keeps QoS 0 messages for them too.
    pub queues_qos0: bool,
}

/// The behaviour of a client after an unexpected end of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reconnect {
    /// In a row, before the client is given up.
    pub attempts: u32,
    /// Pause before the first attempt; each further one is twice as long.
    pub first: TimeSpan,
    /// Longest pause.
    pub longest: TimeSpan,
}

/// How clients leave at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Disconnect {
    /// Connections closed per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<PerSecond>,
    /// Or: all of the group leave within this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<TimeSpan>,
}

/// Losses that a scenario expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredLoss {
    /// The broker's queue for an absent session is bounded.
    OfflineQueueFull,
}

impl Disconnect {
    /// All at once.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
