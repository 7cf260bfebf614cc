//! The limits of the broker.

use serde::{Deserialize, Serialize};

use super::Applies::{self, Live, NewConnections, Restart};
use super::{ConfigError, QueueLimits, QueuePolicy, check_range};
#[cfg(doc)]
use super::{Durability, Overload};

/// The limits of the broker with their defaults. Reaching a limit is counted.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Concurrent connections; further ones are refused (5.0: 0x97, 3.x: 3). 0: as many as file
    /// descriptors allow.
    pub connections_max: usize,
    /// Connections whose CONNECT is not accepted yet; beyond it the oldest one is closed.
    pub handshakes_max: usize,
    /// Bytes of a CONNECT; a larger one closes the connection.
    pub connect_size_max: u32,
    /// Bytes of a client identifier; longer ones are refused (5.0: 0x85, 3.x: 2).
    pub client_id_bytes_max: usize,
    /// Sessions, connected or not; further ones are refused.
    pub sessions_max: usize,
    /// Subscriptions of one session; further ones get SUBACK 0x97 (3.x: 0x80).
    pub subscriptions_per_session_max: usize,
    /// Subscriptions of all sessions; further ones get the same answer.
    pub subscriptions_max: usize,
    /// Bytes of the topic filters of all subscriptions; further ones get the same answer.
    pub subscriptions_bytes_max: u64,
    /// Subscriptions of ended sessions that one shard removes from its indexes per turn.
    pub subscription_removals_per_turn_max: usize,
    /// Levels of a topic filter with wildcards, which cost memory; a longer one gets SUBACK 0x97
    /// (3.x: 0x80).
    pub filter_levels_max: usize,
    /// Bytes of one packet in either direction; a larger incoming one ends the connection (0x95).
    pub packet_size_max: u32,
    /// Unacknowledged QoS 1 and 2 messages per publishing client (Receive Maximum of 5.0).
    pub receive_maximum: u16,
    /// Unacknowledged QoS 1 and 2 messages towards one client.
    pub inflight_max: u16,
    /// Messages queued for one session in memory; those of durable sessions have limits of their
    /// own, see [`Durability`].
    pub session_queue_len_max: u32,
    /// Bytes of messages queued for one session in memory.
    pub session_queue_bytes_max: u64,
    /// What becomes of further messages for a session that outlives its connection.
    pub persistent_queue_full: QueuePolicy,
    /// What becomes of further messages for a session that ends with its connection.
    pub clean_queue_full: QueuePolicy,
    /// Bytes of all queued messages. Beyond it, a QoS 1 or 2 message that would be queued is
    /// refused (5.0: 0x97) or its publisher held back (3.x). 0: a quarter of the memory.
    pub queues_bytes_max: u64,
    /// Seconds that a 3.x publisher may be held back for this before its connection is closed.
    pub publish_hold_s: u32,
    /// Bytes of unsent output and incomplete packets of all connections; load is shed before it is
    /// reached, see [`Overload`]. 0: a quarter of the memory.
    pub buffers_bytes_max: u64,
    /// Unsent output of one connection; beyond it QoS 0 messages to it are dropped, and QoS 1 and 2
    /// messages are queued in its session.
    pub output_bytes_max: usize,
    /// Topic aliases that a 5.0 client may use towards the broker.
    pub topic_alias_maximum: u16,
    /// Bytes of the topics behind the aliases of one client; more end the connection (0x97).
    pub topic_alias_bytes_max: usize,
    /// Topic aliases that the broker uses towards a 5.0 client that accepts aliases; 0: none.
    pub outgoing_topic_aliases_max: u16,
    /// Whether QoS 0 messages are queued for sessions without a connection, like QoS 1 and 2.
    pub queue_qos0_offline: bool,
    /// Seconds for a connection to send its CONNECT.
    pub connect_timeout_s: u32,
    /// Longest keep alive of 5.0 clients; longer ones, and none, are lowered to it. 0: any.
    pub keep_alive_max_s: u16,
    /// Longest session expiry; longer ones are lowered to it. 4294967295: any.
    pub session_expiry_max_s: u32,
    /// Retained messages; beyond it no further topic is retained.
    pub retained_count_max: usize,
    /// Bytes of retained messages; a message that does not fit is not retained, and the one that
    /// it replaces is removed.
    pub retained_bytes_max: u64,
    /// Retained topics that one shard visits for new subscriptions per turn.
    pub retained_steps_per_turn_max: usize,
    /// Messages queued in one shared subscription while no member can take them.
    pub shared_queue_len_max: usize,
    /// Bytes of those messages.
    pub shared_queue_bytes_max: u64,
    /// What becomes of further messages; [`QueuePolicy::EndSession`] is not among the choices.
    pub shared_queue_full: QueuePolicy,
    /// Microseconds of a turn of a shard's event loop: what is not done then is left to the next
    /// turn, in order.
    pub turn_us_max: u32,
    /// Deliveries that one shard makes per turn.
    pub deliveries_per_turn_max: usize,
    /// Messages with an unfinished fan-out per shard; beyond it publishers are held back.
    pub fanout_backlog_max: usize,
    /// Mails posted to one shard and not taken; beyond it publishers are held back.
    pub mailbox_len_max: usize,
    /// Topics in the route cache of each shard.
    pub route_cache_topics_max: usize,
    /// Bytes of the route cache of each shard; beyond it routes not used recently are discarded.
    pub route_cache_bytes_max: usize,
}

/// When a change of each takes effect.
pub(super) const KEYS: [(&str, Applies); 40] = [
    ("connections_max", Live),
    ("handshakes_max", Live),
    ("connect_size_max", NewConnections),
    ("client_id_bytes_max", NewConnections),
    ("sessions_max", Live),
    ("subscriptions_per_session_max", Live),
    ("subscriptions_max", Live),
    ("subscriptions_bytes_max", Live),
    ("subscription_removals_per_turn_max", Restart),
    ("filter_levels_max", Live),
    ("packet_size_max", Restart),
    ("receive_maximum", NewConnections),
    ("inflight_max", NewConnections),
    ("session_queue_len_max", NewConnections),
    ("session_queue_bytes_max", NewConnections),
    ("persistent_queue_full", Restart),
    ("clean_queue_full", Restart),
    ("queues_bytes_max", Restart),
    ("publish_hold_s", Live),
    ("buffers_bytes_max", Restart),
    ("output_bytes_max", Restart),
    ("topic_alias_maximum", NewConnections),
    ("topic_alias_bytes_max", NewConnections),
    ("outgoing_topic_aliases_max", NewConnections),
    ("queue_qos0_offline", NewConnections),
    ("connect_timeout_s", NewConnections),
    ("keep_alive_max_s", NewConnections),
    ("session_expiry_max_s", NewConnections),
    ("retained_count_max", Live),
    ("retained_bytes_max", Live),
    ("retained_steps_per_turn_max", Live),
    ("shared_queue_len_max", Live),
    ("shared_queue_bytes_max", Live),
    ("shared_queue_full", Live),
    ("turn_us_max", Restart),
    ("deliveries_per_turn_max", Live),
    ("fanout_backlog_max", Live),
    ("mailbox_len_max", Restart),
    ("route_cache_topics_max", Restart),
    ("route_cache_bytes_max", Restart),
];

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 0,
            handshakes_max: 10_000,
            connect_size_max: 128 * 1024,
            client_id_bytes_max: 1_024,
            sessions_max: 1_000_000,
            subscriptions_per_session_max: 1_000,
            subscriptions_max: 10_000_000,
            subscriptions_bytes_max: 1024 * 1024 * 1024,
            subscription_removals_per_turn_max: 256,
            filter_levels_max: 256,
            packet_size_max: 1024 * 1024,
            receive_maximum: 1_024,
            inflight_max: 1_024,
            session_queue_len_max: 10_000,
            session_queue_bytes_max: 64 * 1024 * 1024,
            persistent_queue_full: QueuePolicy::Refuse,
            clean_queue_full: QueuePolicy::DropNewest,
            queues_bytes_max: 0,
            publish_hold_s: 30,
            buffers_bytes_max: 0,
            output_bytes_max: 1024 * 1024,
            topic_alias_maximum: 32,
            topic_alias_bytes_max: 64 * 1024,
            outgoing_topic_aliases_max: 16,
            queue_qos0_offline: false,
            connect_timeout_s: 10,
            keep_alive_max_s: 0,
            session_expiry_max_s: u32::MAX,
            retained_count_max: 1_000_000,
            retained_bytes_max: 1024 * 1024 * 1024,
            retained_steps_per_turn_max: 2_048,
            shared_queue_len_max: 10_000,
            shared_queue_bytes_max: 64 * 1024 * 1024,
            shared_queue_full: QueuePolicy::Refuse,
            turn_us_max: 1_000,
            deliveries_per_turn_max: 4_096,
            fanout_backlog_max: 1_024,
            mailbox_len_max: 65_536,
            route_cache_topics_max: 65_536,
            route_cache_bytes_max: 128 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// The limits of the queue of a session in memory.
    pub(crate) const fn session_queue(&self) -> QueueLimits {
        let (len_max, bytes_max) = (self.session_queue_len_max, self.session_queue_bytes_max);
        QueueLimits { len_max, bytes_max }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let not_zero = "at least 1";
        for (key, value) in [
            ("limits.sessions_max", self.sessions_max as u64),
            ("limits.subscriptions_per_session_max", self.subscriptions_per_session_max as u64),
            ("limits.session_queue_len_max", u64::from(self.session_queue_len_max)),
            ("limits.session_queue_bytes_max", self.session_queue_bytes_max),
            ("limits.shared_queue_len_max", self.shared_queue_len_max as u64),
            ("limits.shared_queue_bytes_max", self.shared_queue_bytes_max),
            ("limits.handshakes_max", self.handshakes_max as u64),
            ("limits.subscriptions_max", self.subscriptions_max as u64),
            (
                "limits.subscription_removals_per_turn_max",
                self.subscription_removals_per_turn_max as u64,
            ),
            ("limits.mailbox_len_max", self.mailbox_len_max as u64),
            ("limits.filter_levels_max", self.filter_levels_max as u64),
            ("limits.receive_maximum", u64::from(self.receive_maximum)),
            ("limits.inflight_max", u64::from(self.inflight_max)),
            ("limits.connect_timeout_s", u64::from(self.connect_timeout_s)),
            ("limits.deliveries_per_turn_max", self.deliveries_per_turn_max as u64),
            ("limits.retained_steps_per_turn_max", self.retained_steps_per_turn_max as u64),
            ("limits.fanout_backlog_max", self.fanout_backlog_max as u64),
            ("limits.route_cache_topics_max", self.route_cache_topics_max as u64),
        ] {
            check_range(key, value, 1, u64::MAX, not_zero)?;
        }
        if self.shared_queue_full == QueuePolicy::EndSession {
            return Err(ConfigError::SharedQueuePolicy);
        }
        // Identifiers of up to 23 bytes must be accepted [MQTT-3.1.3-5].
        let identifier = self.client_id_bytes_max as u64;
        check_range("limits.client_id_bytes_max", identifier, 23, u64::MAX, "at least 23")?;
        // 268,435,460 = the largest Remaining Length plus its five-byte header.
        let size = u64::from(self.packet_size_max);
        check_range("limits.packet_size_max", size, 128, 268_435_460, "from 128 to 268435460")?;
        let connect = u64::from(self.connect_size_max);
        check_range("limits.connect_size_max", connect, 128, 268_435_460, "from 128 to 268435460")?;
        let turn = u64::from(self.turn_us_max);
        check_range("limits.turn_us_max", turn, 100, 1_000_000, "from 100 to 1000000")?;
        let output = self.output_bytes_max as u64;
        check_range("limits.output_bytes_max", output, 4096, 1 << 30, "from 4096 to 1073741824")
    }
}
