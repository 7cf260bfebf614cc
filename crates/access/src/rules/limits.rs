//! Limits of clients, by role.

use crate::kinds::{PublishKinds, QosSet};

/// The limits of one client, from its roles. Absent: only the broker's own limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections of its user at once.
    pub connections_max: Option<u32>,
    /// Subscriptions of its session.
    pub subscriptions_max: Option<u32>,
    /// Levels of a topic that it publishes to, and of a topic filter.
    pub topic_levels_max: Option<u32>,
    /// Bytes of a packet that it sends.
    pub packet_size_max: Option<u32>,
    /// The highest QoS of messages that it publishes, and of its subscriptions.
    pub qos_max: Option<u8>,
    /// Whether it may publish messages that are to be retained.
    pub retain: Option<bool>,
    /// Seconds that its session outlives its connection.
    pub session_expiry_max_s: Option<u32>,
    /// Messages queued for its session.
    pub queue_len_max: Option<u32>,
}

/// A limit of a client that a message exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// [`ClientLimits::topic_levels_max`]
    TopicLevels,
    /// [`ClientLimits::qos_max`]
    Qos,
    /// [`ClientLimits::retain`]
    Retain,
}

impl Exceeded {
    /// What a message is or has too much of.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::TopicLevels => "its topic has more levels than the roles of the client allow",
            Self::Qos => "its QoS is higher than the roles of the client allow",
            Self::Retain => "the roles of the client do not allow retained messages",
        }
    }
}

impl ClientLimits {
    /// None but the broker's own.
    pub const NONE: Self = Self {
        connections_max: None,
        subscriptions_max: None,
        topic_levels_max: None,
        packet_size_max: None,
        qos_max: None,
        retain: None,
        session_expiry_max_s: None,
        queue_len_max: None,
    };

    /// These, and where they say nothing, others.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self {
            connections_max: self.connections_max.or(other.connections_max),
            subscriptions_max: self.subscriptions_max.or(other.subscriptions_max),
            topic_levels_max: self.topic_levels_max.or(other.topic_levels_max),
            packet_size_max: self.packet_size_max.or(other.packet_size_max),
            qos_max: self.qos_max.or(other.qos_max),
            retain: self.retain.or(other.retain),
            session_expiry_max_s: self.session_expiry_max_s.or(other.session_expiry_max_s),
            queue_len_max: self.queue_len_max.or(other.queue_len_max),
        }
    }

    /// Whether a topic or a filter has too many levels.
    pub fn has_too_many_levels(&self, topic: &str) -> bool {
        let levels = || 1 + topic.bytes().filter(|&byte| byte == b'/').count();
        self.topic_levels_max.is_some_and(|max| levels() > max as usize)
    }

    /// The kinds of PUBLISH that they allow to a topic.
    pub fn publishing(&self, topic: &str) -> PublishKinds {
        if self.has_too_many_levels(topic) {
            return PublishKinds::NONE;
        }
        self.kinds()
    }

    /// The kinds of PUBLISH that they allow to a topic that has not too many levels.
    pub(super) fn kinds(&self) -> PublishKinds {
        let retain = if self.retain == Some(false) { Some(false) } else { None };
        PublishKinds::of(QosSet::up_to(self.qos_max.unwrap_or(2)), retain)
    }

    /// The limit that a message exceeds.
    pub fn exceeded(&self, topic: &str, qos: u8, retain: bool) -> Option<Exceeded> {
        if self.qos_max.is_some_and(|max| qos > max) {
            return Some(Exceeded::Qos);
        }
        if retain && self.retain == Some(false) {
            return Some(Exceeded::Retain);
        }
        self.has_too_many_levels(topic).then_some(Exceeded::TopicLevels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::PublishKind;

    #[test]
    fn the_kinds_that_are_left_are_those_that_exceed_nothing() {
        for limits in [
            ClientLimits::NONE,
            ClientLimits { qos_max: Some(1), ..ClientLimits::NONE },
            ClientLimits { retain: Some(false), qos_max: Some(0), ..ClientLimits::NONE },
            ClientLimits { retain: Some(true), topic_levels_max: Some(2), ..ClientLimits::NONE },
        ] {
            for topic in ["a", "a/b", "a/b/c", "///"] {
                for qos in 0..=2 {
                    for retain in [false, true] {
                        let is_left = limits.publishing(topic).has(PublishKind::new(qos, retain));
                        let exceeded = limits.exceeded(topic, qos, retain);
                        let shown = format!("{limits:?} {topic} {qos} {retain}");
                        assert_eq!(is_left, exceeded.is_none(), "{shown}");
                    }
                }
            }
        }
    }
}
