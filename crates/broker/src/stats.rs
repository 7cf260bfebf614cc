//! Counters of one shard: written by its thread, read by anyone.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares the counters once: the struct and its listing by name.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of one shard since its start, and a few gauges.
        #[derive(Debug, Default)]
        pub struct ShardStats {
            $($(#[$doc])* pub $name: Counter,)*
        }

        impl ShardStats {
            /// All counters by name, in declaration order.
            pub fn values(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.value()),)*]
            }
        }
    };
}

counters! {
    /// Connections now open (a gauge).
    connections,
    /// Sessions now held (a gauge).
    sessions,
    /// Subscriptions now held (a gauge).
    subscriptions,
    /// Retained messages now held (a gauge).
    retained,
    /// Bytes of retained messages now held (a gauge).
    retained_bytes,
    /// Messages that wait in the queues of shared subscriptions (a gauge).
    shared_waiting,
    /// Bytes of messages that wait in the queues of shared subscriptions (a gauge).
    shared_waiting_bytes,
    /// Connections accepted.
    accepted_total,
    /// Connections refused: the connection limit.
    refused_connections_total,
    /// Connections that broke before their CONNECT: a TLS or WebSocket handshake that failed, or a
    /// reset.
    failed_handshakes_total,
    /// CONNECT packets refused.
    refused_connects_total,
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
    /// PUBLISH packets taken in.
    publishes_in_total,
    /// PUBLISH packets sent out.
    publishes_out_total,
    /// Of them, those that named their topic by an alias only.
    publishes_aliased_out_total,
    /// Messages handed to another shard.
    forwarded_total,
    /// QoS 0 messages dropped: the receiver's output is above its budget.
    dropped_output_full_total,
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
    /// Messages of shared subscriptions that went to others because their member left.
    shared_redelivered_total,
    /// Retained messages refused: the limit on count or bytes.
    retained_refused_total,
    /// Times a publisher was held back because receivers or other shards were behind.
    throttled_total,
    /// Times a topic's remembered matches were discarded to make room.
    route_cache_evictions_total,
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

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}
