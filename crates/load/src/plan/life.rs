//! Wills, absences, reconnects and declared losses of the clients of a group.

use serde::{Deserialize, Serialize};
use tacho_codec::QoS;

/// The message that the broker publishes when a client's connection ends without DISCONNECT. Its
/// topic is [`Client::will_topic`](super::Client::will_topic).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Will {
    /// QoS of the will.
    #[serde(with = "crate::wire::qos")]
    pub qos: QoS,
    /// Retain flag.
    pub retain: bool,
    /// Payload, at most 65,535 bytes. Receivers recognise it by topic and payload and count it in
    /// [`Delivery::wills`](crate::Delivery::wills).
    pub payload: Vec<u8>,
    /// Will delay interval in seconds (5.0 only).
    pub delay_s: u32,
}

/// All clients of a group disconnect once during the load and return to their sessions: messages
/// published for them meanwhile at QoS 1 and 2 must follow, complete and in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offline {
    /// From the start of the measured window until they disconnect.
    pub after_ns: u64,
    /// Length of the absence.
    pub for_ns: u64,
    /// Disconnect with DISCONNECT, or break the connection (the broker then publishes wills).
    pub clean: bool,
    /// The broker queues messages of QoS 0 for absent sessions: they are judged like those of QoS
    /// 1. Otherwise their loss is declared.
    pub queues_qos0: bool,
}

/// The backoff of a client whose connection ended unexpectedly or could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconnect {
    /// Consecutive failed attempts before the client is given up, at least 1.
    pub attempts_max: u32,
    /// Delay before the first attempt; it doubles with each further attempt.
    pub first_ns: u64,
    /// Largest delay.
    pub longest_ns: u64,
}

/// Losses that a scenario declares: counted separately, no violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeclaredLoss {
    /// The broker's queue for an absent session is bounded: messages published during the absence
    /// may be lost.
    OfflineQueueFull,
}
