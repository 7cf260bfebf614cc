//! Counters of one shard: written by its thread, read by anyone.
//!
//! A name that ends with `_total` only grows; every other is a gauge. `/metrics` shows each as
//! `tacho_<name>`, times in seconds, with its comment as the help text.

mod families;

use std::sync::atomic::{AtomicU64, Ordering};

pub use families::{ByQos, ByReason, Histogram};

/// Declares the counters once: the struct, and their listing by name with help texts.
macro_rules! counters {
    ($($(#[doc = $help:literal])* $name:ident,)*) => {
        /// Counters of one shard since its start, and a few gauges.
        #[derive(Debug, Default)]
        pub struct ShardStats {
            $($(#[doc = $help])* pub $name: Counter,)*
            /// PUBLISH packets taken in, by QoS.
            pub publishes_in_total: ByQos,
            /// PUBLISH packets sent out, by QoS.
            pub publishes_out_total: ByQos,
            /// CONNECT packets refused, by the reason code of the refusal.
            pub refused_connects_total: ByReason,
            /// Connections of clients that the broker ended, by reason code.
            pub disconnects_by_broker_total: ByReason,
            /// DISCONNECT packets of clients, by reason code.
            pub disconnects_by_clients_total: ByReason,
            /// Bytes of the payloads of PUBLISH packets taken in: from 16 bytes to 4 MiB.
            pub payload_in_bytes: Histogram<4>,
            /// Nanoseconds that the turns of the event loop took: from 4 us to 1 s.
            pub turn_ns: Histogram<12>,
        }

        impl ShardStats {
            /// Name and help text of each plain counter, in declaration order.
            pub const PLAIN: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), concat!($($help),*)),)*];

            /// The plain counters by name, in declaration order, then the sums of those with
            /// labels.
            pub fn values(&self) -> Vec<(&'static str, u64)> {
                vec![
                    $((stringify!($name), self.$name.value()),)*
                    ("publishes_in_total", self.publishes_in_total.total()),
                    ("publishes_out_total", self.publishes_out_total.total()),
                    ("refused_connects_total", self.refused_connects_total.total()),
                    ("disconnects_by_broker_total", self.disconnects_by_broker_total.total()),
                    ("disconnects_by_clients_total", self.disconnects_by_clients_total.total()),
                ]
            }
        }
    };
}

counters! {
    /// Connections now open.
    connections,
    /// Connections now open whose client is not connected yet.
    handshakes,
    /// Sessions now held.
    sessions,
    /// Sessions whose client is connected now.
    sessions_connected,
    /// Subscriptions now held, shared ones included.
    subscriptions,
    /// Shared subscriptions now held.
    shared_subscriptions,
    /// Bytes of the filters of subscriptions now held.
    subscriptions_bytes,
    /// Messages that sessions hold now, waiting or not acknowledged.
    waiting,
    /// Bytes of all messages that wait in the whole broker now, and their places in queues; the
    /// first shard says it.
    queues_bytes,
    /// Bytes of unsent output and incomplete packets now.
    buffers_bytes,
    /// Bytes of waiting messages and of buffers in the whole broker now; the first shard says it.
    memory_bytes,
    /// The step of shedding load: 0 normal, 1 accepts slowed, 2 QoS 0 to slow readers shed, 3
    /// publishers throttled, 4 connections refused.
    overload_level,
    /// How long an event waited for its turn on average in the last window.
    loop_lag_us,
    /// The largest average so far of how long an event waited for its turn.
    loop_lag_us_max,
    /// Retained messages now held.
    retained,
    /// Bytes of retained messages now held.
    retained_bytes,
    /// Messages that wait in the queues of shared subscriptions now.
    shared_waiting,
    /// Bytes of messages that wait in the queues of shared subscriptions now.
    shared_waiting_bytes,
    /// Connections accepted.
    accepted_total,
    /// Connections refused: the connection limit.
    refused_connections_total,
    /// Connections that broke before their CONNECT: a TLS or WebSocket handshake that failed, or a
    /// reset.
    failed_handshakes_total,
    /// CONNECT packets accepted.
    connects_total,
    /// Connections closed before their CONNECT to make room for newer ones.
    refused_handshakes_total,
    /// CONNECT packets refused: the limit on sessions.
    refused_sessions_total,
    /// CONNECT packets refused: the shard sheds load.
    refused_overload_total,
    /// Subscriptions refused: a limit on their number, their levels or their bytes.
    refused_subscriptions_total,
    /// QoS 1 and 2 messages refused or held back: they would have to wait, and the budget of all
    /// that waits is used up.
    refused_publishes_total,
    /// Publishers (3.x) closed because they were held back for too long.
    ended_publishers_total,
    /// Connections closed with unsent output because all buffers together were at their limit.
    ended_slow_readers_total,
    /// Connections closed with an incomplete packet because all buffers together were at their
    /// limit.
    ended_incomplete_total,
    /// Connections that did not finish their CONNECT in time.
    connect_timeouts_total,
    /// Enhanced authentications that succeeded, repeated ones included.
    authentications_total,
    /// Enhanced authentications that failed.
    failed_authentications_total,
    /// Connections closed for a malformed packet or a protocol error.
    protocol_errors_total,
    /// Connections closed because their client id connected again.
    takeovers_total,
    /// Connections of clients that ended without a DISCONNECT of either side.
    connections_lost_total,
    /// Sessions that ended because they expired.
    sessions_expired_total,
    /// Packets taken in, of any type; not those of an authentication before CONNACK.
    packets_in_total,
    /// PUBACK, PUBREC, PUBREL and PUBCOMP packets sent out.
    acks_out_total,
    /// SUBSCRIBE packets answered.
    subscribes_total,
    /// UNSUBSCRIBE packets answered.
    unsubscribes_total,
    /// PINGREQ packets taken in.
    pings_total,
    /// DISCONNECT packets sent out.
    disconnects_out_total,
    /// Bytes read from sockets, with what TLS and WebSocket add.
    bytes_in_total,
    /// Bytes written to sockets, with what TLS and WebSocket add.
    bytes_out_total,
    /// Bytes of the payloads of PUBLISH packets sent out.
    payload_bytes_out_total,
    /// PUBLISH packets sent out that named their topic by an alias only.
    publishes_aliased_out_total,
    /// Messages handed to another shard.
    forwarded_total,
    /// QoS 0 messages dropped: the receiver's output is above its budget.
    dropped_output_full_total,
    /// QoS 0 messages dropped: the shard sheds load and the receiver is a slow reader.
    dropped_overload_total,
    /// Messages dropped: the session's queue is full.
    dropped_queue_full_total,
    /// Messages dropped: expired before they could be sent.
    dropped_expired_total,
    /// Messages dropped: larger than the receiver's Maximum Packet Size.
    dropped_too_large_total,
    /// QoS 0 messages dropped: the session is not connected.
    dropped_offline_total,
    /// Messages dropped: the shared subscription's queue is full.
    dropped_shared_queue_full_total,
    /// Messages of durable sessions lost: the journal cannot read them any more.
    lost_messages_total,
    /// Messages of shared subscriptions that went to others because their member left.
    shared_redelivered_total,
    /// Retained messages that expired and were freed.
    retained_expired_total,
    /// Retained messages refused: the limit on count or bytes.
    retained_refused_total,
    /// Messages of clients refused: their topic is the broker's own ($SYS).
    refused_sys_publishes_total,
    /// Sessions that wait for a commit of the journal now.
    journal_waiting,
    /// Records handed to the journal.
    journal_records_total,
    /// Messages written to the journal, each once for all sessions of the shard.
    journal_messages_total,
    /// Messages noted in the journal as not yet distributed: other shards, shared subscriptions or
    /// later turns took part in it.
    journal_open_total,
    /// QoS 1 and 2 messages refused or held back: they would have to be written to the journal,
    /// and its disk is full or failing, or it is at its limit.
    journal_refused_publishes_total,
    /// CONNECT packets refused: a durable session would have to be made, to end or to last longer,
    /// and the journal's disk is full or failing, or it is at its limit.
    journal_refused_connects_total,
    /// Subscriptions of durable sessions refused, for the same reason.
    journal_refused_subscriptions_total,
    /// Waits for an UNSUBACK that were ended: that the subscription is over could not be written,
    /// for the same reason.
    journal_unconfirmed_unsubscribes_total,
    /// Messages of QoS 0 not written to the journal: its disk is full or failing, or it is at its
    /// limit.
    journal_skipped_total,
    /// Times a publisher was held back because receivers or other shards were behind.
    throttled_total,
    /// Times a publisher was held back because it sent more than its part to a shard that sheds
    /// load.
    throttled_overload_total,
    /// Times a shard climbed or left a step of shedding load.
    overload_changes_total,
    /// Times a topic's remembered matches were discarded to make room.
    route_cache_evictions_total,
    /// Turns of the event loop.
    turns_total,
    /// Turns of the event loop that began by sleeping.
    sleeps_total,
    /// Time that the event loop did not sleep.
    busy_ns_total,
    /// Reads of sockets.
    reads_total,
    /// Writes to sockets.
    writes_total,
    /// Wake-ups sent to other shards.
    wakes_total,
}

/// One counter. Only its shard writes it, so an increment is a plain load and store.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The present value.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.value().wrapping_add(n), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn subtract(&self, n: u64) {
        self.0.store(self.value().wrapping_sub(n), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn increment(&self) {
        self.add(1);
    }

    /// For gauges.
    #[inline]
    pub(crate) fn decrement(&self) {
        self.0.store(self.value().saturating_sub(1), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}
