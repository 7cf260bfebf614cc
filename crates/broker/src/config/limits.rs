//! Every bound that the broker keeps.

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Overload;
use super::{ConfigError, check_range};

/// Every bound the broker keeps, with its default. A limit that is reached is counted.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at once; more are refused (5.0: 0x97, 3.x: 3). 0 = as many as descriptors allow.
    pub connections_max: usize,
    /// Connections whose client is not connected yet; the oldest one is closed for one more.
    pub handshakes_max: usize,
    /// Bytes of a CONNECT; the connection of a larger one is closed.
    pub connect_size_max: u32,
    /// Bytes of a client identifier; longer ones are refused (5.0: 0x85, 3.x: 2).
    pub client_id_bytes_max: usize,
    /// Sessions, connected or not; new ones are refused beyond it.
    pub sessions_max: usize,
    /// Subscriptions of one session; more get SUBACK 0x97 (3.x: 0x80).
    pub subscriptions_per_session_max: usize,
    /// Subscriptions of all sessions; the same answer.
    pub subscriptions_max: usize,
    /// Bytes of the filters of all subscriptions; the same answer.
    pub subscriptions_bytes_max: u64,
    /// Levels of a filter with wildcards, which cost memory each; more get SUBACK 0x97 (3.x: 0x80).
    pub filter_levels_max: usize,
    /// Bytes of one packet either way; larger incoming ones end the connection (0x95).
    pub packet_size_max: u32,
    /// QoS 1 and 2 publishes a client may have unacknowledged (5.0's Receive Maximum).
    pub receive_maximum: u16,
    /// QoS 1 and 2 publishes the broker has unacknowledged per client, at most.
    pub inflight_max: u16,
    /// Messages waiting for one session; the newest is dropped beyond it.
    pub session_queue_len_max: u32,
    /// Bytes of messages waiting for one session; the newest is dropped beyond it.
    pub session_queue_bytes_max: u64,
    /// Bytes of all messages that wait anywhere. Beyond it a QoS 1 or 2 message that would have to
    /// wait is refused (5.0: 0x97) or its publisher held back (3.x). 0 = a quarter of the memory.
    pub queues_bytes_max: u64,
    /// Seconds a 3.x publisher is held back so before its connection is closed.
    pub publish_hold_s: u32,
    /// Bytes of unsent output and incomplete packets of all connections; see [`Overload`] for what
    /// happens on the way there. 0 = a quarter of the memory.
    pub buffers_bytes_max: u64,
    /// Unsent output of one connection above which QoS 0 messages to it are dropped, and QoS 1 and
    /// 2 messages wait in its session.
    pub output_bytes_max: usize,
    /// Topic aliases a 5.0 client may use towards the broker.
    pub topic_alias_maximum: u16,
    /// Bytes of the topics behind one client's aliases; more end the connection (0x97).
    pub topic_alias_bytes_max: usize,
    /// Topic aliases the broker uses towards a 5.0 client that takes some; 0 = none.
    pub outgoing_topic_aliases_max: u16,
    /// Whether QoS 0 messages wait for a session without a connection, like those of QoS 1 and 2.
    pub queue_qos0_offline: bool,
    /// Seconds a connection may take to send its whole CONNECT.
    pub connect_timeout_s: u32,
    /// Longest keep-alive; longer ones (and none) are lowered to it for 5.0 clients. 0 = any.
    pub keep_alive_max_s: u16,
    /// Longest session expiry; longer ones are lowered to it. 4294967295 = any.
    pub session_expiry_max_s: u32,
    /// Retained messages of the broker; a new topic beyond it is not retained.
    pub retained_count_max: usize,
    /// Bytes of retained messages of the broker; what does not fit is not retained, nor is what it
    /// replaces.
    pub retained_bytes_max: u64,
    /// Retained topics one shard looks at for new subscriptions in a turn before it looks at its
    /// sockets again.
    pub retained_steps_per_turn_max: usize,
    /// Messages waiting in one shared subscription while none of its members can take them; the
    /// newest is dropped beyond it.
    pub shared_queue_len_max: usize,
    /// Bytes of those messages; the same policy.
    pub shared_queue_bytes_max: u64,
    /// Deliveries one shard makes in a turn before it looks at its sockets again.
    pub deliveries_per_turn_max: usize,
    /// Messages whose fan-out is unfinished, per shard, before publishers are held back.
    pub fanout_backlog_max: usize,
    /// Messages on their way to one shard before publishers are held back.
    pub mailbox_len_max: usize,
    /// Topics whose matches each shard remembers.
    pub route_cache_topics_max: usize,
    /// Bytes of what each shard remembers so; matches not used lately are forgotten beyond it.
    pub route_cache_bytes_max: usize,
}

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
            filter_levels_max: 256,
            packet_size_max: 1024 * 1024,
            receive_maximum: 1_024,
            inflight_max: 1_024,
            session_queue_len_max: 10_000,
            session_queue_bytes_max: 64 * 1024 * 1024,
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
            deliveries_per_turn_max: 512,
            fanout_backlog_max: 1_024,
            mailbox_len_max: 65_536,
            route_cache_topics_max: 65_536,
            route_cache_bytes_max: 128 * 1024 * 1024,
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let not_zero = "at least 1";
        for (key, value) in [
            ("limits.sessions_max", self.sessions_max as u64),
            ("limits.subscriptions_per_session_max", self.subscriptions_per_session_max as u64),
            ("limits.handshakes_max", self.handshakes_max as u64),
            ("limits.subscriptions_max", self.subscriptions_max as u64),
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
        // No identifier of up to 23 bytes may be refused for its length [MQTT-3.1.3-5].
        let identifier = self.client_id_bytes_max as u64;
        check_range("limits.client_id_bytes_max", identifier, 23, u64::MAX, "at least 23")?;
        // 268,435,460 = the largest Remaining Length plus its five-byte header.
        let size = u64::from(self.packet_size_max);
        check_range("limits.packet_size_max", size, 128, 268_435_460, "from 128 to 268435460")?;
        let connect = u64::from(self.connect_size_max);
        check_range("limits.connect_size_max", connect, 128, 268_435_460, "from 128 to 268435460")?;
        let output = self.output_bytes_max as u64;
        check_range("limits.output_bytes_max", output, 4096, 1 << 30, "from 4096 to 1073741824")
    }
}
