//! What a shard holds, for simulations: is everything bounded, and is nothing left at the end?

use crate::config::QueuePolicy;
use crate::memory::exactly;
use crate::shard::{Net, Shard, Shared};

/// How much of everything a shard holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Connections that the shard knows.
    pub connections: usize,
    /// Connections of its loop.
    pub loop_connections: usize,
    /// Sessions, connected or not.
    pub sessions: usize,
    /// Client identifiers.
    pub client_ids: usize,
    /// Filters of all sessions.
    pub subscriptions: usize,
    /// Bytes of those.
    pub filter_bytes: u64,
    /// Subscriptions of ended sessions, to be removed.
    pub ended_subscriptions: usize,
    /// Messages in the queues of all sessions.
    pub queue_len: usize,
    /// Bytes of those.
    pub queue_bytes: u64,
    /// Messages sent and not acknowledged.
    pub inflight_len: usize,
    /// Shared subscriptions known as member or owner.
    pub groups: usize,
    /// Messages that wait for a member of a shared subscription.
    pub group_queue_len: usize,
    /// SUBSCRIBEs and UNSUBSCRIBEs that are begun and not finished.
    pub requests: usize,
    /// Unfinished fan-outs.
    pub fan_outs: usize,
    /// Publishers held back.
    pub held_publishers: usize,
    /// Retained messages.
    pub retained: usize,
    /// Bytes of those.
    pub retained_bytes: u64,
    /// Mails that wait for this shard.
    pub mails: usize,
}

/// What the broker counts over all shards, beside what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Clients connected.
    pub connections: usize,
    /// Connections whose client is not connected yet.
    pub handshakes: usize,
    /// Subscriptions.
    pub subscriptions: usize,
    /// Bytes of their filters.
    pub filter_bytes: u64,
    /// Retained messages.
    pub retained: usize,
    /// Bytes of those.
    pub retained_bytes: u64,
    /// Bytes of messages that are not retained, and of their places in queues.
    pub waiting_bytes: i64,
}

impl Totals {
    pub(crate) fn new<'a>(shared: &Shared, shards: impl Iterator<Item = &'a Shard>) -> Self {
        let (retained, retained_bytes) = shared.retained_totals.now();
        let (subscriptions, filter_bytes) = shared.subscriptions.now();
        let untold = |s: &Shard| exactly::untold(s.admission.ledger(), s.held_bytes());
        Self {
            connections: shared.connections.used(),
            handshakes: shared.handshakes.used(),
            subscriptions,
            filter_bytes,
            retained,
            retained_bytes,
            waiting_bytes: exactly::told(&shared.memory) + shards.map(untold).sum::<i64>(),
        }
    }

    /// The first of them that is above its limit. What waits has none that holds at every moment,
    /// see [`budget`](crate::shard::admission::budget).
    pub(crate) fn over_limit(&self, shared: &Shared) -> Option<OverLimit> {
        let limits = &shared.limits;
        let all = [
            ("connections", self.connections as u64, shared.connections.max() as u64),
            // Each shard leaves every other one its share.
            ("handshakes", self.handshakes as u64, 2 * limits.handshakes_max as u64),
            ("all subscriptions", self.subscriptions as u64, limits.subscriptions_max as u64),
            ("bytes of filters", self.filter_bytes, limits.subscriptions_bytes_max),
            ("retained", self.retained as u64, limits.retained_count_max as u64),
            ("retained bytes", self.retained_bytes, limits.retained_bytes_max),
        ];
        let over = all.into_iter().find(|(_, amount, limit)| amount > limit);
        over.map(|(what, amount, limit)| OverLimit { what, amount, limit })
    }
}

/// Something that is larger than its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverLimit {
    /// What it is.
    pub what: &'static str,
    /// How much of it there is.
    pub amount: u64,
    /// What is allowed.
    pub limit: u64,
}

impl Shard {
    pub(crate) fn held(&self) -> Held {
        let sessions = || self.sessions.iter().map(|(_, session)| session);
        Held {
            connections: self.connections.open_len(),
            loop_connections: 0,
            sessions: self.sessions.len(),
            client_ids: self.sessions.clients_len(),
            subscriptions: sessions().map(|s| s.subscriptions.len()).sum(),
            filter_bytes: sessions().map(|s| s.subscriptions.bytes()).sum(),
            ended_subscriptions: self.routing.ended_len(),
            queue_len: sessions().map(|s| s.machine.queue_len()).sum(),
            queue_bytes: sessions().map(|s| s.machine.queue_bytes()).sum(),
            inflight_len: sessions().map(|s| s.machine.inflight_len()).sum(),
            groups: self.groups.len(),
            group_queue_len: self.groups.queue_lens().sum(),
            requests: self.routing.requests_len(),
            fan_outs: self.delivery.unfinished(),
            held_publishers: self.admission.held_len(),
            retained: self.retained.len(),
            retained_bytes: self.retained.bytes(),
            mails: 0,
        }
    }

    pub(crate) fn over_limit(&self, net: &Net) -> Option<OverLimit> {
        let limits = self.limits();
        let above = |what, amount: u64, limit: u64| {
            (amount > limit).then_some(OverLimit { what, amount, limit })
        };
        for (_, session) in self.sessions.iter() {
            let machine = &session.machine;
            let queue = self.session_limits_for(session.key(), session.journal.is_durable());
            let (queue_len_max, bytes_max) =
                session.queue_max(queue.queue_len_max.into(), queue.queue_bytes_max);
            let over = above("session queue", machine.queue_len() as u64, queue_len_max)
                .or_else(|| above("bytes of a session queue", machine.queue_bytes(), bytes_max))
                .or_else(|| {
                    let inflight_max = u64::from(limits.inflight_max);
                    above("messages in flight", machine.inflight_len() as u64, inflight_max)
                })
                .or_else(|| {
                    let max = limits.subscriptions_per_session_max as u64;
                    above("subscriptions", session.subscriptions.len() as u64, max)
                });
            if over.is_some() {
                return over;
            }
            // A client that does not read: answers to its requests end with the connection.
            let patience =
                2 * limits.output_bytes_max as u64 + 3 * u64::from(limits.packet_size_max);
            if let Some(conn) = session.connection()
                && let over @ Some(_) = above("output", net.output_bytes(conn) as u64, patience)
            {
                return over;
            }
        }
        let group_max = match limits.shared_queue_full {
            QueuePolicy::Refuse => u64::MAX,
            _ => limits.shared_queue_len_max as u64,
        };
        let longest = self.groups.queue_lens().max().unwrap_or(0);
        above("queue of a shared subscription", longest as u64, group_max)
    }
}
