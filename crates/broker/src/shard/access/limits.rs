//! Limits of clients by their roles, beside those of the broker.

use tacho_access::{ClientLimits, Exceeded};
use tacho_codec::ReasonCode;

use super::AccessRules;
use crate::keys::SessionSlot;
use crate::publish_limit::PublishLimit;
use crate::shard::Shard;
use crate::stats::{Counter, ShardStats};

impl AccessRules {
    /// Whether there may be limits by role.
    #[inline]
    pub(in crate::shard) const fn has_roles(&self) -> bool {
        self.has_roles
    }

    /// The limits of a user, or of clients without one.
    pub(in crate::shard) fn limits_of(&self, user: Option<&str>) -> ClientLimits {
        self.policy.list().map_or(ClientLimits::NONE, |list| list.limits(user))
    }
}

impl Shard {
    /// Gives a session the limits that its client has by the policy in force.
    pub(in crate::shard) fn apply_limits(&mut self, slot: SessionSlot) {
        if !self.access.has_roles {
            return;
        }
        let session = &self.sessions[slot];
        let limits = self.access.limits_of(session.access.user_name());
        let common = self.session_limits_for(session.key(), session.journal.is_durable());
        let session = &mut self.sessions[slot];
        if session.access.set_limits(&limits) {
            let len_max = limits.queue_len_max.unwrap_or(u32::MAX);
            session.machine.set_queue_len_max(common.queue_len_max.min(len_max));
            if let Some(conn) = session.connection() {
                let listener = usize::from(self.connections.listener_of(conn));
                let part = self.shared.listeners.get(listener);
                let of_listener = part.as_ref().and_then(|part| part.gate.publish.as_ref());
                let publish = PublishLimit::of_client(of_listener, &limits);
                session.meter.limit_changed(publish);
            }
        }
    }

    /// The limits of a session's client.
    pub(in crate::shard) fn limits_in(&self, slot: SessionSlot) -> ClientLimits {
        match self.access.has_roles {
            true => self.sessions[slot].access.limits(),
            false => ClientLimits::NONE,
        }
    }
}

impl ShardStats {
    /// The counter of messages that exceed a limit.
    pub(in crate::shard) const fn over_limit(&self, exceeded: Exceeded) -> &Counter {
        match exceeded {
            Exceeded::TopicLevels => &self.role_limit_topic_levels_total,
            Exceeded::Qos => &self.role_limit_qos_total,
            Exceeded::Retain => &self.role_limit_retain_total,
        }
    }
}

/// How a client is told of a limit that its message exceeds.
pub(in crate::shard) const fn reason_of(exceeded: Exceeded) -> ReasonCode {
    match exceeded {
        Exceeded::TopicLevels => ReasonCode::QUOTA_EXCEEDED,
        Exceeded::Qos => ReasonCode::QOS_NOT_SUPPORTED,
        Exceeded::Retain => ReasonCode::RETAIN_NOT_SUPPORTED,
    }
}
