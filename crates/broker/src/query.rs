//! Questions that the control plane asks shards, and their answers.

use std::net::SocketAddr;

use serde::Serialize;
use tokio::sync::oneshot;

/// A question to one shard; it answers in its next turn.
pub(crate) enum Query {
    /// Does the shard take turns?
    Pulse(oneshot::Sender<()>),
    /// Which clients does it have?
    Clients(ClientScan, oneshot::Sender<ScannedClients>),
}

/// Asks for some of a shard's sessions.
pub(crate) struct ClientScan {
    /// The first slot to look at. The shard looks at a bounded number of slots from there on.
    pub(crate) from: usize,
    /// Rows wanted, at most.
    pub(crate) limit: usize,
    pub(crate) order: ScanOrder,
}

/// Which sessions a scan returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanOrder {
    /// All sessions, by slot.
    Slot,
    /// The slowest among the slots scanned: those whose queue is full, then connected ones.
    Slowest,
}

/// Some sessions of a shard.
#[derive(Debug)]
pub(crate) struct ScannedClients {
    pub(crate) rows: Vec<ClientRow>,
    /// The slot to continue at; `None` after the last slot.
    pub(crate) next: Option<usize>,
}

/// One session as users see it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClientRow {
    pub(crate) client_id: String,
    pub(crate) shard: usize,
    pub(crate) connected: bool,
    /// The peer's address, while connected.
    pub(crate) address: Option<SocketAddr>,
    /// The MQTT version of its last CONNECT.
    pub(crate) version: String,
    pub(crate) subscriptions: usize,
    /// Messages queued behind the in-flight window.
    pub(crate) queue_len: usize,
    pub(crate) queue_bytes: u64,
    /// Its queue is full, and publishers are refused or held back for that.
    pub(crate) queue_full: bool,
    /// QoS 1 and 2 messages sent and not acknowledged.
    pub(crate) inflight: usize,
    /// Bytes of output that its connection has not taken.
    pub(crate) output_bytes: usize,
    /// Messages to it that were dropped, for any reason.
    pub(crate) dropped: u64,
    /// How long its output has been above its limit; 0 while it is not.
    pub(crate) blocked_ms: u64,
}

impl ClientRow {
    /// Bytes that wait for the client: the order of the slowest clients, behind full ones.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.queue_bytes + self.output_bytes as u64
    }
}
