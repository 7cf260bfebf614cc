//! Counters of one shard: written by its thread, read by any thread.
//!
//! A counter whose name ends with `_total` only grows; all others are gauges. `/metrics` shows each
//! as `tacho_<name>`, times in seconds, with its doc comment as the help text.

mod families;

use std::sync::atomic::{AtomicU64, Ordering};

pub use families::{ByQos, ByReason, Histogram};

/// What a shard does at a step of load shedding; `overload_level` is its number.
pub const fn overload_effect(level: u64) -> &'static str {
    match level {
        0 => "none",
        1 => "accepts are slowed",
        2 => "QoS 0 to slow readers is dropped",
        3 => "publishers are throttled",
        _ => "connections are refused",
    }
}

/// Declares the counters once: the struct, and their listing by name with help texts.
macro_rules! counters {
    ($($(#[doc = $help:literal])* $name:ident,)*) => {
        /// Counters of one shard since its start, and a few gauges.
        #[derive(Debug, Default)]
        pub struct ShardStats {
            $($(#[doc = $help])* pub $name: Counter,)*
            /// PUBLISH packets received, by QoS.
            pub publishes_in_total: ByQos,
            /// PUBLISH packets sent, by QoS.
            pub publishes_out_total: ByQos,
            /// CONNECT packets refused, by the reason code of the refusal.
            pub refused_connects_total: ByReason,
            /// Client connections that the broker ended, by reason code.
            pub disconnects_by_broker_total: ByReason,
            /// DISCONNECT packets received from clients, by reason code.
            pub disconnects_by_clients_total: ByReason,
            /// Payload size of received PUBLISH packets in bytes: from 16 bytes to 4 MiB.
            pub payload_in_bytes: Histogram<4>,
            /// Duration of event loop turns in nanoseconds: from 4 us to 1 s.
            pub turn_ns: Histogram<12>,
            /// Since when the event loop has lagged more than a second, by the loops' clock; 0: it
            /// does not.
            lagging_since_ns: Counter,
        }

        impl ShardStats {
            /// Name and help text of each plain counter, in declaration order.
            pub const PLAIN: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), concat!($($help),*)),)*];

            /// Notes since when the event loop has lagged too much, if it does.
            pub(crate) fn note_lagging(&self, since_ns: Option<u64>) {
                self.lagging_since_ns.set(since_ns.unwrap_or(0));
            }

            /// For how long the event loop has lagged more than a second at this time.
            pub(crate) fn lagging_ns(&self, now_ns: u64) -> u64 {
                match self.lagging_since_ns.value() {
                    0 => 0,
                    since_ns => now_ns.saturating_sub(since_ns),
                }
            }

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
    /// Open connections.
    connections,
    /// Open connections whose CONNECT is not accepted yet.
    handshakes,
    /// Existing sessions.
    sessions,
    /// Sessions whose client is connected.
    sessions_connected,
    /// Subscriptions, shared ones included.
    subscriptions,
    /// Shared subscriptions.
    shared_subscriptions,
    /// Bytes of the topic filters of all subscriptions.
    subscriptions_bytes,
    /// Subscriptions of ended sessions that are still to be removed from the indexes: no message
    /// goes to them.
    subscriptions_ended,
    /// Messages that sessions hold: queued or in flight.
    waiting,
    /// Bytes of all queued messages of the whole broker and of their queue entries; reported by
    /// the first shard.
    queues_bytes,
    /// Bytes of unsent output and incomplete packets.
    buffers_bytes,
    /// Bytes of queued messages and of buffers of the whole broker; reported by the first shard.
    memory_bytes,
    /// Load shedding step: 0 normal, 1 accepts slowed, 2 QoS 0 to slow readers shed, 3
    /// publishers throttled, 4 connections refused.
    overload_level,
    /// Mean time from event to handling in the last window.
    loop_lag_us,
    /// Largest mean time from event to handling of any window so far.
    loop_lag_us_max,
    /// Retained messages.
    retained,
    /// Bytes of retained messages.
    retained_bytes,
    /// Messages in the queues of shared subscriptions.
    shared_waiting,
    /// Bytes of messages in the queues of shared subscriptions.
    shared_waiting_bytes,
    /// Connections accepted.
    accepted_total,
    /// Connections refused: connection limit reached.
    refused_connections_total,
    /// Connections lost before their CONNECT: failed TLS or WebSocket handshakes, and resets.
    failed_handshakes_total,
    /// Connections refused: the listener is for proxies, and the address is not one of theirs.
    refused_proxies_total,
    /// Connections of proxies closed: they began with no PROXY header, or with a malformed one.
    refused_proxy_headers_total,
    /// WebSockets refused: the web page that opens them is not in `origins` of the listener.
    refused_origins_total,
    /// Connections refused: their listener has as many as it may have, or too many new ones.
    refused_listener_limits_total,
    /// Connections refused: their address has as many at the listener as it may have, or too many
    /// new ones.
    refused_address_limits_total,
    /// Connections admitted without being counted for their address: too many addresses have some.
    uncounted_addresses_total,
    /// CONNECT packets accepted.
    connects_total,
    /// Connections closed before their CONNECT to make room for newer ones.
    refused_handshakes_total,
    /// CONNECT packets refused: session limit reached.
    refused_sessions_total,
    /// CONNECT packets refused: the shard is shedding load.
    refused_overload_total,
    /// Subscriptions refused: the limit on their number, levels or bytes is reached.
    refused_subscriptions_total,
    /// QoS 1 and 2 messages refused or held back: they would be queued, and the memory budget for
    /// queues is used up.
    refused_publishes_total,
    /// Sessions whose queue is full and whose publishers are refused or held back for that.
    sessions_full,
    /// Shared subscriptions whose queue is full and whose publishers are refused or held back for
    /// that.
    shared_full,
    /// QoS 1 and 2 messages refused or held back: the queue of a session or a shared subscription
    /// that they would wait in is full.
    refused_queue_full_total,
    /// Sessions ended because their queue was full.
    ended_queue_full_total,
    /// Publishers (3.x) disconnected after being held back for too long.
    ended_publishers_total,
    /// Connections with unsent output closed because the buffers of all connections reached their
    /// limit.
    ended_slow_readers_total,
    /// Connections with an incomplete packet closed because the buffers of all connections reached
    /// their limit.
    ended_incomplete_total,
    /// Connections closed because their CONNECT did not arrive in time.
    connect_timeouts_total,
    /// Enhanced authentications that succeeded, re-authentications included.
    authentications_total,
    /// Enhanced authentications that failed.
    failed_authentications_total,
    /// Logins whose password or token was verified and is right, or that a backend behind HTTP has
    /// allowed.
    logins_verified_total,
    /// Logins accepted because they were verified a short while ago.
    logins_remembered_total,
    /// Logins that a backend behind HTTP has decided a short while ago, either way, so that it was
    /// not asked again.
    backend_answers_remembered_total,
    /// Logins by certificate alone.
    logins_certificate_total,
    /// CONNECT packets refused: there is no certificate, it names no user or has been revoked, or
    /// client identifier or credentials are not those of its user.
    refused_logins_certificate_total,
    /// CONNECT packets refused: they have no user name, and anonymous clients are not admitted.
    refused_logins_anonymous_total,
    /// CONNECT packets refused: the user does not exist, the password is missing or wrong, or the
    /// token is refused, or the backend behind HTTP refuses the login.
    refused_logins_wrong_total,
    /// CONNECT packets refused: too many logins wait to be verified, or one waited too long.
    refused_logins_busy_total,
    /// CONNECT packets refused: the backend behind HTTP gave no answer that counts.
    refused_logins_unavailable_total,
    /// Answers to failed logins that wait, since other logins of the address have failed.
    login_answers_waiting,
    /// Answers to failed logins that were delayed, since other logins of the address had failed.
    delayed_login_answers_total,
    /// Answers to failed logins that would have been delayed, and were given at once (0x97), since
    /// too many others waited.
    undelayed_login_answers_total,
    /// CONNECT packets refused: the session of the client identifier belongs to another user.
    refused_strangers_total,
    /// Connections and CONNECT packets refused: the address, the client identifier or the user is
    /// banned, by the ban file or for failed logins.
    refused_banned_total,
    /// CONNECT packets of clients that the access rules do not let connect.
    denied_connects_total,
    /// CONNECT packets refused: the user has as many connections as its roles allow.
    role_limit_connections_total,
    /// Subscriptions refused: the session has as many as the roles of its client allow.
    role_limit_subscriptions_total,
    /// PUBLISH packets, wills and topic filters refused: more levels than the roles of the client
    /// allow.
    role_limit_topic_levels_total,
    /// PUBLISH packets and wills refused: a higher QoS than the roles of the client allow.
    role_limit_qos_total,
    /// PUBLISH packets and wills refused: the roles of the client do not allow retained messages.
    role_limit_retain_total,
    /// PUBLISH packets that the access rules do not allow.
    denied_publishes_total,
    /// Subscriptions that the access rules do not grant.
    denied_subscriptions_total,
    /// Wills that the access rules do not allow, at CONNECT or when they are due.
    denied_wills_total,
    /// Messages not delivered because the access rules do not allow their receiver to have them.
    denied_deliveries_total,
    /// Times that new users or access rules came into force.
    access_reloads_total,
    /// Subscriptions that ended because the access rules have changed.
    ended_subscriptions_total,
    /// Clients disconnected because users or access rules have changed.
    ended_by_rules_total,
    /// Clients disconnected because their token, or what a backend has allowed, has expired.
    ended_tokens_total,
    /// Clients disconnected because their certificate has been revoked, has expired or is of a CA
    /// that is not trusted any more.
    ended_certificates_total,
    /// Clients disconnected because they have been banned.
    ended_by_bans_total,
    /// Clients disconnected because they published more than they may per second.
    ended_rate_total,
    /// Connections closed for a malformed packet or a protocol error.
    protocol_errors_total,
    /// Connections closed because another connection took over their client identifier.
    takeovers_total,
    /// Client connections that ended without a DISCONNECT from either side.
    connections_lost_total,
    /// Sessions that ended because they expired.
    sessions_expired_total,
    /// Packets received, of any type, except authentication packets before CONNACK.
    packets_in_total,
    /// PUBACK, PUBREC, PUBREL and PUBCOMP packets sent.
    acks_out_total,
    /// SUBSCRIBE packets answered.
    subscribes_total,
    /// UNSUBSCRIBE packets answered.
    unsubscribes_total,
    /// PINGREQ packets received.
    pings_total,
    /// DISCONNECT packets sent.
    disconnects_out_total,
    /// Bytes read from sockets, TLS and WebSocket overhead included.
    bytes_in_total,
    /// Bytes written to sockets, TLS and WebSocket overhead included.
    bytes_out_total,
    /// Payload bytes of PUBLISH packets sent.
    payload_bytes_out_total,
    /// PUBLISH packets sent with a topic alias instead of the topic.
    publishes_aliased_out_total,
    /// Messages forwarded to another shard.
    forwarded_total,
    /// QoS 0 messages dropped: the unsent output of the receiver is above its limit.
    dropped_output_full_total,
    /// QoS 0 messages dropped: the shard is shedding load and the receiver reads slowly.
    dropped_overload_total,
    /// Messages dropped: the session's queue is full.
    dropped_queue_full_total,
    /// Messages dropped: expired before they could be sent.
    dropped_expired_total,
    /// Messages dropped: larger than the Maximum Packet Size of the receiver.
    dropped_too_large_total,
    /// QoS 0 messages dropped: the session is not connected.
    dropped_offline_total,
    /// Messages dropped: the queue of the shared subscription is full.
    dropped_shared_queue_full_total,
    /// Messages of durable sessions lost: the journal could not read them.
    lost_messages_total,
    /// Messages of shared subscriptions redelivered to another member because theirs left.
    shared_redelivered_total,
    /// Retained messages that expired.
    retained_expired_total,
    /// Retained messages refused: the limit on their number or bytes is reached.
    retained_refused_total,
    /// Messages of clients refused: their topic is reserved for the broker ($SYS).
    refused_sys_publishes_total,
    /// Sessions that wait for a journal commit.
    journal_waiting,
    /// Records appended to the journal.
    journal_records_total,
    /// Messages written to the journal, once for all sessions of the shard.
    journal_messages_total,
    /// Messages recorded in the journal as open: other shards, shared subscriptions or later turns
    /// took part in their distribution.
    journal_open_total,
    /// QoS 1 and 2 messages refused or held back: they need the journal, and its disk is full or
    /// failing, or the journal is at its size limit.
    journal_refused_publishes_total,
    /// CONNECT packets refused: they would create, end or extend a durable session, and the disk
    /// of the journal is full or failing, or the journal is at its size limit.
    journal_refused_connects_total,
    /// Subscriptions of durable sessions refused: the disk of the journal is full or failing, or
    /// the journal is at its size limit.
    journal_refused_subscriptions_total,
    /// Clients disconnected while they waited for an UNSUBACK: the end of the subscription could
    /// not be written to the journal.
    journal_unconfirmed_unsubscribes_total,
    /// QoS 0 messages not written to the journal: its disk is full or failing, or it is at its
    /// size limit.
    journal_skipped_total,
    /// Times a publisher was held back because receivers or other shards were behind.
    throttled_total,
    /// Times a publisher was held back because it sent more than its share to a shard that is
    /// shedding load.
    throttled_overload_total,
    /// Times a publisher was held back because it had published more than it may per second.
    throttled_rate_total,
    /// Changes of the load shedding step.
    overload_changes_total,
    /// Cached routes discarded to make room.
    route_cache_evictions_total,
    /// Turns of the event loop.
    turns_total,
    /// Turns of the event loop that took longer than a millisecond.
    slow_turns_total,
    /// The longest turn of the event loop so far.
    turn_ns_max,
    /// The most CPU time of a turn so far: without time that other programs or the hypervisor took.
    turn_cpu_ns_max,
    /// The most units of work in a turn so far. A unit is a delivery, a packet or the like.
    turn_units_max,
    /// Turns of the event loop that waited for events.
    sleeps_total,
    /// Time that the event loop spent working.
    busy_ns_total,
    /// Read calls on sockets.
    reads_total,
    /// Writes to sockets.
    writes_total,
    /// System calls that made several of these writes.
    write_batches_total,
    /// Wakeups sent to other shards.
    wakes_total,
}

/// A counter. Only its shard writes it, so an increment is a plain load and store.
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
