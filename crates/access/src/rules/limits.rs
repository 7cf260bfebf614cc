//! Limits of clients, by role.

use serde::{Deserialize, Serialize};
use toml::{Spanned, Value};

use super::values::{flag, number, one_of};
use crate::kinds::{PublishKinds, QosSet};
use crate::queue_policy::QueuePolicy;
use crate::toml_text::Wrong;

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
    /// What becomes of more messages than that, if its session outlives its connection.
    pub persistent_queue_full: Option<QueuePolicy>,
    /// The same if it does not.
    pub clean_queue_full: Option<QueuePolicy>,
    /// Messages that it publishes.
    pub publish_messages: Option<PublishRate>,
    /// Bytes of its PUBLISH packets.
    pub publish_bytes: Option<PublishRate>,
    /// What becomes of it when it publishes more.
    pub publish_excess: Option<PublishExcess>,
}

/// How much a client may publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishRate {
    /// At least 1.
    pub per_s_max: u32,
    /// At once, after a while without any; as much as per second unless it is set. At least 1.
    pub burst: Option<u32>,
}

/// What becomes of a client that publishes more than it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishExcess {
    /// It is held back: its socket is not read for a while.
    #[default]
    Hold,
    /// It is disconnected (5.0: 0x96).
    Disconnect,
}

impl PublishExcess {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Hold, Self::Disconnect];

    /// As files have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Disconnect => "disconnect",
        }
    }
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
        persistent_queue_full: None,
        clean_queue_full: None,
        publish_messages: None,
        publish_bytes: None,
        publish_excess: None,
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
            persistent_queue_full: self.persistent_queue_full.or(other.persistent_queue_full),
            clean_queue_full: self.clean_queue_full.or(other.clean_queue_full),
            publish_messages: self.publish_messages.or(other.publish_messages),
            publish_bytes: self.publish_bytes.or(other.publish_bytes),
            publish_excess: self.publish_excess.or(other.publish_excess),
        }
    }

    /// The policy for the full queue of a session with this expiry interval, if there is one.
    #[must_use]
    pub const fn queue_full(&self, session_expiry_s: u32) -> Option<QueuePolicy> {
        if session_expiry_s > 0 { self.persistent_queue_full } else { self.clean_queue_full }
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

/// `[roles.NAME]` of a rules file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRole {
    connections_max: Option<Spanned<Value>>,
    subscriptions_max: Option<Spanned<Value>>,
    topic_levels_max: Option<Spanned<Value>>,
    packet_size_max: Option<Spanned<Value>>,
    qos_max: Option<Spanned<Value>>,
    retain: Option<Spanned<Value>>,
    session_expiry_max_s: Option<Spanned<Value>>,
    queue_len_max: Option<Spanned<Value>>,
    persistent_queue_full: Option<Spanned<Value>>,
    clean_queue_full: Option<Spanned<Value>>,
    publish_messages_per_s_max: Option<Spanned<Value>>,
    publish_messages_burst: Option<Spanned<Value>>,
    publish_bytes_per_s_max: Option<Spanned<Value>>,
    publish_bytes_burst: Option<Spanned<Value>>,
    publish_excess: Option<Spanned<Value>>,
}

impl RawRole {
    pub(super) fn limits(&self) -> Result<ClientLimits, Wrong> {
        let most = i64::from(u32::MAX);
        let at_least = |min, key, value: &Option<_>| number(key, value.as_ref(), min..=most);
        let qos_max = number("qos_max", self.qos_max.as_ref(), 0..=2)?;
        Ok(ClientLimits {
            connections_max: at_least(1, "connections_max", &self.connections_max)?,
            subscriptions_max: at_least(0, "subscriptions_max", &self.subscriptions_max)?,
            topic_levels_max: at_least(1, "topic_levels_max", &self.topic_levels_max)?,
            packet_size_max: at_least(64, "packet_size_max", &self.packet_size_max)?,
            qos_max: qos_max.map(|level| level as u8),
            retain: flag("retain", self.retain.as_ref())?,
            session_expiry_max_s: at_least(0, "session_expiry_max_s", &self.session_expiry_max_s)?,
            queue_len_max: at_least(1, "queue_len_max", &self.queue_len_max)?,
            persistent_queue_full: one_of(
                "persistent_queue_full",
                self.persistent_queue_full.as_ref(),
                &QueuePolicy::ALL.map(|policy| (policy.name(), policy)),
            )?,
            clean_queue_full: one_of(
                "clean_queue_full",
                self.clean_queue_full.as_ref(),
                &QueuePolicy::ALL.map(|policy| (policy.name(), policy)),
            )?,
            publish_messages: rate(
                ("publish_messages_per_s_max", &self.publish_messages_per_s_max),
                ("publish_messages_burst", &self.publish_messages_burst),
            )?,
            publish_bytes: rate(
                ("publish_bytes_per_s_max", &self.publish_bytes_per_s_max),
                ("publish_bytes_burst", &self.publish_bytes_burst),
            )?,
            publish_excess: one_of(
                "publish_excess",
                self.publish_excess.as_ref(),
                &PublishExcess::ALL.map(|excess| (excess.name(), excess)),
            )?,
        })
    }
}

/// A key of a role, and its value.
type RoleEntry<'a> = (&'static str, &'a Option<Spanned<Value>>);

fn rate(per_s_max: RoleEntry<'_>, burst: RoleEntry<'_>) -> Result<Option<PublishRate>, Wrong> {
    let at_least_one =
        |(key, value): RoleEntry<'_>| number(key, value.as_ref(), 1..=i64::from(u32::MAX));
    let (rate_key, burst_key) = (per_s_max.0, burst.0);
    match (at_least_one(per_s_max)?, at_least_one(burst)?, burst.1) {
        (Some(per_s_max), burst, _) => Ok(Some(PublishRate { per_s_max, burst })),
        (None, Some(_), Some(value)) => {
            Err(Wrong::of(value, format!("`{burst_key}` needs `{rate_key}`")))
        }
        (None, ..) => Ok(None),
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
