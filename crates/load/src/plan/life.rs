//! How clients of a group live: wills, absences, reconnects.

use tacho_codec::QoS;

/// The message that the broker publishes for a client that goes without saying so. Its topic is
/// the client's: [`Client::will_topic`](super::Client::will_topic).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Will {
    /// QoS to publish with.
    pub qos: QoS,
    /// Retain flag.
    pub retain: bool,
    /// Payload, at most 65,535 bytes. Receivers recognise it by the topic and count it as
    /// [`Delivery::wills`](crate::Delivery::wills).
    pub payload: Vec<u8>,
    /// Seconds that the broker waits before it publishes (5.0 only).
    pub delay_s: u32,
}

/// All clients of a group leave once during the load and come back to their sessions: what was
/// published for them meanwhile at QoS 1 and 2 must follow, in order and complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offline {
    /// From the start of the measured window until they leave.
    pub after_ns: u64,
    /// How long they stay away.
    pub for_ns: u64,
    /// Leave with DISCONNECT, or break the connection (the broker then publishes wills).
    pub clean: bool,
    /// The broker keeps messages of QoS 0 for absent sessions: they are judged as those of
    /// QoS 1 are. Otherwise their loss is declared.
    pub queues_qos0: bool,
}

/// What a client does when its connection ends unexpectedly, or cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// Attempts in a row before the client is given up, at least 1.
    pub attempts_max: u32,
    /// Pause before the first attempt; each further pause is twice as long.
    pub first_ns: u64,
    /// Longest pause.
    pub longest_ns: u64,
}

/// Losses that a scenario expects: they are counted apart and are no violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclaredLoss {
    /// The broker's queue for an absent session is bounded: of the messages published while a
    /// client was away, some may be missing.
    OfflineQueueFull,
}
