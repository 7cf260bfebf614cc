//! The parameters and results of a session's methods.

use tacho_codec::Version;

use crate::{Overflow, ProtocolError, WillState};

/// The limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Messages in the queue, without those in flight.
    pub queue_len_max: u32,
    /// The sum of `Delivery::size_bytes` in the queue.
    pub queue_bytes_max: u64,
    /// What becomes of messages of QoS 1 and 2 at these limits.
    pub overflow: Overflow,
    /// The Receive Maximum granted to the client: the number of unacknowledged messages of QoS 1
    /// and 2 that it may send. Enforced for MQTT 5.0 only.
    pub receive_maximum: u16,
    /// The server's own limit on unacknowledged messages of QoS 1 and 2 sent to the client; the
    /// client's Receive Maximum applies if it is lower.
    pub inflight_max: u16,
    /// Whether to queue messages of QoS 0 while there is no connection.
    pub queue_qos0_offline: bool,
    /// The total size in bytes of the topics that the client's aliases refer to.
    pub alias_bytes_max: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            queue_len_max: 1_000,
            queue_bytes_max: 64 * 1024 * 1024,
            overflow: Overflow::DropNewest,
            receive_maximum: 1_024,
            inflight_max: 1_024,
            queue_qos0_offline: false,
            alias_bytes_max: 64 * 1024,
        }
    }
}

/// The parameters of an accepted CONNECT.
#[derive(Clone, Debug)]
pub struct ConnectParams<M> {
    /// The protocol version of this connection.
    pub version: Version,
    /// Clean Start, or clean session in MQTT 3.x.
    pub clean_start: bool,
    /// The client's Receive Maximum; 65,535 if CONNECT has none.
    pub receive_maximum: u16,
    /// The Topic Alias Maximum granted to the client.
    pub topic_alias_maximum_in: u16,
    /// The client's Topic Alias Maximum; 0 if CONNECT has none.
    pub topic_alias_maximum_out: u16,
    /// The effective keep-alive (Server Keep Alive if there is one); 0 is off.
    pub keep_alive_s: u16,
    /// The effective session expiry interval, see [`crate::session_expiry_s`].
    pub session_expiry_s: u32,
    /// The will.
    pub will: Option<WillState<M>>,
}

/// The result of `connect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected<M> {
    /// The Session Present flag for CONNACK. If false, the subscriptions of an earlier session
    /// have to be removed.
    pub session_present: bool,
    /// A will to publish now: the delayed one of a session that this clean start ended, or of an
    /// earlier connection if its delay is over.
    pub publish_will: Option<M>,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// DISCONNECT 0x00: the will is deleted.
    Normal {
        /// The Session Expiry Interval of the DISCONNECT.
        expiry_override: Option<u32>,
    },
    /// DISCONNECT 0x04 or with any other reason code: the will is published.
    WithWill {
        /// The Session Expiry Interval of the DISCONNECT.
        expiry_override: Option<u32>,
    },
    /// The connection closed or timed out.
    Lost,
    /// Another connection uses the client identifier.
    TakenOver {
        /// That connection requests a clean start, which ends this session.
        clean_start: bool,
    },
    /// The client violated the protocol.
    ProtocolError,
    /// The server shuts down.
    ServerShutdown,
}

/// The effects of the end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisconnectEffects<M> {
    /// Publish this will now. `handle_timeout` yields a delayed will.
    pub publish_will: Option<M>,
    /// The session is over, as after [`TimeoutEvent::SessionExpired`].
    pub session_ended: bool,
    /// The DISCONNECT itself was illegal; the end was handled as [`End::ProtocolError`].
    pub error: Option<ProtocolError>,
}

/// The event due at a timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeoutEvent<M> {
    /// Nothing arrived for 1.5 times the keep-alive: close with 0x8D and [`End::Lost`].
    KeepAliveExpired,
    /// The delay of a will is over: publish it.
    PublishWill(M),
    /// The session is over; its subscriptions have to be removed. [`Session::take_undelivered`]
    /// returns its undelivered messages, which the next connect drops.
    SessionExpired,
}
