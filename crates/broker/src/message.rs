//! A published message as all shards share it: immutable, reference-counted, one allocation. A
//! large one that was put together from pieces keeps its packet as a second one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tacho_codec::{Publish, PublishProperties, QoS, UserPropertiesBuf, Will};
use tacho_journal::MessageId;
use triomphe::ThinArc;

use crate::hops;
use crate::keys::{ClientKey, LINK_PREFIX, stable_hash};
use crate::memory::{Charge, MESSAGE_BYTES};

/// The largest payload of a message that gets a count of bridges: one near the protocol's limit
/// would not fit into a packet with it.
const COUNTED_BYTES_MAX: usize = 1 << 27;

/// The publisher of a message: a hash of the client identifier, equal on all shards.
///
/// It is only compared for equality, for No Local [MQTT-3.8.3-3], which depends on the client
/// identifier: it also holds for a later session of the same client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source(u64);

impl Source {
    /// The broker itself. No known client identifier has this hash.
    pub(crate) const BROKER: Self = Self(u64::MAX);

    pub(crate) fn for_client(client: &ClientKey) -> Self {
        Self(stable_hash(client.client_id.as_bytes()))
    }

    /// A bridge: all its links are one source.
    pub(crate) fn for_bridge(name: &str) -> Self {
        Self(stable_hash(format!("{LINK_PREFIX}{name}").as_bytes()))
    }

    /// The hash, for shared subscription strategies that depend on the publisher.
    pub(crate) fn key(self) -> u64 {
        self.0
    }

    /// The source with this hash, as stored in the journal.
    pub(crate) fn from_key(key: u64) -> Self {
        Self(key)
    }
}

/// The properties that are forwarded unaltered; absent for most messages
/// [MQTT-3.3.2-4], [MQTT-3.3.2-15], [MQTT-3.3.2-16], [MQTT-3.3.2-17], [MQTT-3.3.2-18],
/// [MQTT-3.3.2-20].
#[derive(Debug, Default)]
pub(crate) struct Properties {
    payload_format_utf8: Option<bool>,
    response_topic: Option<Box<str>>,
    correlation_data: Option<Box<[u8]>>,
    content_type: Option<Box<str>>,
    user: UserPropertiesBuf,
    user_bytes: usize,
}

impl Properties {
    fn from_publish(p: &PublishProperties<'_>) -> Option<Box<Self>> {
        let absent = p.payload_format_utf8.is_none()
            && p.response_topic.is_none()
            && p.correlation_data.is_none()
            && p.content_type.is_none()
            && p.user_properties.is_empty();
        if absent {
            return None;
        }
        let user = p.user_properties;
        Some(Box::new(Self {
            payload_format_utf8: p.payload_format_utf8,
            response_topic: p.response_topic.map(Into::into),
            correlation_data: p.correlation_data.map(Into::into),
            content_type: p.content_type.map(Into::into),
            user: user.into(),
            // Each also takes an identifier and two lengths.
            user_bytes: user.iter().map(|(name, value)| name.len() + value.len() + 5).sum(),
        }))
    }

    fn size_bytes(&self) -> usize {
        self.response_topic.as_ref().map_or(0, |t| t.len())
            + self.correlation_data.as_ref().map_or(0, |d| d.len())
            + self.content_type.as_ref().map_or(0, |t| t.len())
            + self.user_bytes
    }
}

/// A message without its payload.
#[derive(Debug)]
pub(crate) struct Header {
    /// Shared with the route cache, so that a repeated topic costs no copy.
    pub(crate) topic: Arc<str>,
    pub(crate) properties: Option<Box<Properties>>,
    pub(crate) qos: QoS,
    /// The publisher's RETAIN flag.
    pub(crate) retain: bool,
    /// When the message expires; `u64::MAX` is never.
    pub(crate) expires_at_ns: u64,
    /// The Message Expiry Interval as published, if there was one.
    pub(crate) expiry_s: u32,
    /// Orders the retained messages of one owner; 0 without RETAIN.
    pub(crate) retained_version: u64,
    /// The version of the route map that live routing used.
    pub(crate) routed_version: u64,
    pub(crate) source: Source,
    /// The user that made it, of a will and of a message to be retained; `None`: an anonymous
    /// client.
    pub(crate) user: Option<Arc<str>>,
    /// Message identifier in the journal; 0 while it is not stored.
    stored: AtomicU64,
    /// The payload of a large message; the slice behind this header is empty then.
    large: Option<LargePayload>,
    /// Accounts for the memory of the message.
    _charge: Charge,
}

/// A shared, immutable message. Cloning costs one atomic increment.
#[derive(Clone, Debug)]
pub(crate) struct Message(ThinArc<Header, u8>);

/// A large payload, in the allocation in which its packet was put together.
#[derive(Clone, Debug)]
struct LargePayload {
    packet: Arc<Vec<u8>>,
    /// Where the payload begins; it ends with the packet or before.
    start: u32,
    len: u32,
}

impl LargePayload {
    /// The part of `input` that is `payload`. `None` if it is none, or so much of `input` is not
    /// payload that a copy takes less memory.
    fn within(input: &Arc<Vec<u8>>, payload: &[u8]) -> Option<Self> {
        if payload.len() < input.capacity() - input.capacity() / 8 {
            return None;
        }
        let start = payload.as_ptr().addr().checked_sub(input.as_ptr().addr())?;
        let same = input.get(start..start + payload.len())?;
        let (start, len) = (u32::try_from(start).ok()?, u32::try_from(payload.len()).ok()?);
        let packet = Arc::clone(input);
        std::ptr::eq(same, payload).then_some(Self { packet, start, len })
    }

    fn bytes(&self) -> &[u8] {
        // Invariant: both were taken from a slice of it.
        &self.packet[self.start as usize..][..self.len as usize]
    }
}

/// What the receiving shard knows of a message beside its packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intake<'a> {
    pub(crate) now_ns: u64,
    pub(crate) routed_version: u64,
    pub(crate) source: Source,
    pub(crate) retained_version: u64,
    /// See [`Header::user`].
    pub(crate) user: Option<&'a Arc<str>>,
}

/// What the journal knows of a message beside its packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restored<'a> {
    pub(crate) id: MessageId,
    pub(crate) source: Source,
    pub(crate) expires_at_ns: u64,
    /// See [`Header::user`].
    pub(crate) user: Option<&'a Arc<str>>,
}

impl Message {
    /// Copies a PUBLISH from the read buffer: one allocation unless it has properties.
    pub(crate) fn from_publish(topic: Arc<str>, publish: &Publish<'_>, intake: Intake<'_>) -> Self {
        Self::from_input(topic, publish, intake, None)
    }

    /// The same. A large payload within `input` is not copied: the message keeps a handle of that.
    pub(crate) fn from_input(
        topic: Arc<str>,
        publish: &Publish<'_>,
        intake: Intake<'_>,
        input: Option<&Arc<Vec<u8>>>,
    ) -> Self {
        let expires_at_ns = expiry(intake.now_ns, publish.properties.message_expiry_s);
        let large = input.and_then(|input| LargePayload::within(input, publish.payload));
        Self::new(topic, publish, intake, expires_at_ns, (None, large))
    }

    /// A message from the journal. It counts as routed before any later subscription.
    pub(crate) fn restored(topic: Arc<str>, publish: &Publish<'_>, restored: Restored<'_>) -> Self {
        let Restored { id, source, expires_at_ns, user } = restored;
        let intake = Intake { now_ns: 0, routed_version: 0, source, retained_version: 0, user };
        Self::new(topic, publish, intake, expires_at_ns, (Some(id), None))
    }

    /// The same for a message that came by a bridge and may leave by another one.
    #[cold]
    pub(crate) fn from_bridge(
        topic: Arc<str>,
        publish: &Publish<'_>,
        intake: Intake<'_>,
        input: Option<&Arc<Vec<u8>>>,
    ) -> Self {
        if publish.payload.len() > COUNTED_BYTES_MAX {
            return Self::from_input(topic, publish, intake, input);
        }
        let user = hops::after_bridge(publish.properties.user_properties);
        let properties = PublishProperties { user_properties: user.view(), ..publish.properties };
        Self::from_input(topic, &Publish { properties, ..*publish }, intake, input)
    }

    fn new(
        topic: Arc<str>,
        publish: &Publish<'_>,
        intake: Intake<'_>,
        expires_at_ns: u64,
        (stored, large): (Option<MessageId>, Option<LargePayload>),
    ) -> Self {
        let p = &publish.properties;
        let properties = Properties::from_publish(p);
        let mut bytes = size_bytes(&topic, properties.as_deref(), publish.payload);
        // Sessions mostly share it; after a restart no message does.
        bytes += intake.user.map_or(0, |user| user.len());
        let mut copied = publish.payload;
        if let Some(large) = &large {
            bytes += large.packet.capacity() - copied.len();
            copied = &[];
        }
        let header = Header {
            topic,
            properties,
            qos: publish.qos,
            retain: publish.retain,
            expires_at_ns,
            expiry_s: p.message_expiry_s.unwrap_or(u32::MAX),
            retained_version: intake.retained_version,
            routed_version: intake.routed_version,
            source: intake.source,
            user: intake.user.cloned(),
            stored: AtomicU64::new(stored.map_or(0, MessageId::get)),
            large,
            _charge: Charge::new(bytes + MESSAGE_BYTES),
        };
        Self(ThinArc::from_header_and_slice(header, copied))
    }

    /// A copy of the message that is not in the journal yet: for a caller that cannot be sure that
    /// the record of the message still exists, and so has to write its own.
    pub(crate) fn copied(&self) -> Self {
        let header = self.header();
        let mut publish = self.as_publish(0);
        publish.properties.message_expiry_s =
            (header.expires_at_ns != u64::MAX).then_some(header.expiry_s);
        let intake = Intake {
            now_ns: 0,
            routed_version: header.routed_version,
            source: header.source,
            retained_version: header.retained_version,
            user: header.user.as_ref(),
        };
        let kept = (None, header.large.clone());
        Self::new(Arc::clone(&header.topic), &publish, intake, header.expires_at_ns, kept)
    }

    /// The message identifier in the journal, if the message has been appended to it.
    #[inline]
    pub(crate) fn stored(&self) -> Option<MessageId> {
        MessageId::new(self.header().stored.load(Ordering::Acquire))
    }

    /// Notes that the record of the message has been appended to the journal. Records that refer to
    /// it are appended later, so the message is in the same commit or in an earlier one.
    pub(crate) fn set_stored(&self, id: MessageId) {
        self.header().stored.store(id.get(), Ordering::Release);
    }

    /// Copies a will from CONNECT, with its retain flag [MQTT-3.1.2-14], [MQTT-3.1.2-15] and its
    /// user properties in their order [MQTT-3.1.3-10]. Its expiry interval starts when it is
    /// published; until then `expires_at_ns` is relative.
    pub(crate) fn from_will(will: &Will<'_>, source: Source, user: Option<&Arc<str>>) -> Self {
        let p = &will.properties;
        let publish = Publish {
            dup: false,
            qos: will.qos,
            retain: will.retain,
            topic: will.topic,
            packet_id: None,
            properties: PublishProperties {
                payload_format_utf8: p.payload_format_utf8,
                message_expiry_s: p.message_expiry_s,
                response_topic: p.response_topic,
                correlation_data: p.correlation_data,
                content_type: p.content_type,
                user_properties: p.user_properties,
                ..PublishProperties::default()
            },
            payload: will.payload,
        };
        let intake = Intake { now_ns: 0, routed_version: 0, source, retained_version: 0, user };
        Self::from_publish(will.topic.into(), &publish, intake)
    }

    /// The will as a message published now: its expiry interval starts.
    pub(crate) fn will_published(&self, intake: Intake<'_>) -> Self {
        let will = self.header();
        let interval_s = match will.expires_at_ns {
            u64::MAX => None,
            relative_ns => Some(remaining_s(relative_ns, 0)),
        };
        let mut publish = self.as_publish(intake.now_ns);
        publish.properties.message_expiry_s = interval_s;
        Self::from_publish(Arc::clone(&will.topic), &publish, intake)
    }

    pub(crate) fn header(&self) -> &Header {
        &self.0.header.header
    }

    /// Whether both are handles of the same message.
    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.header(), other.header())
    }

    pub(crate) fn topic(&self) -> &str {
        &self.header().topic
    }

    pub(crate) fn payload(&self) -> &[u8] {
        match &self.header().large {
            Some(large) => large.bytes(),
            None => &self.0.slice,
        }
    }

    /// Size of the message for queue limits: topic, properties and payload.
    pub(crate) fn size_bytes(&self) -> usize {
        let header = self.header();
        size_bytes(&header.topic, header.properties.as_deref(), self.payload())
    }

    /// How many bridges it has passed, if that was counted.
    pub(crate) fn hops(&self) -> u32 {
        let properties = self.header().properties.as_ref();
        properties.map_or(0, |properties| hops::hops(properties.user.view()))
    }

    pub(crate) fn is_expired(&self, now_ns: u64) -> bool {
        now_ns >= self.header().expires_at_ns
    }

    /// The message as a packet for one receiver; the caller sets flags, identifiers and aliases.
    pub(crate) fn as_publish(&self, now_ns: u64) -> Publish<'_> {
        let header = self.header();
        let mut properties = PublishProperties::default();
        if let Some(p) = &header.properties {
            properties.payload_format_utf8 = p.payload_format_utf8;
            properties.response_topic = p.response_topic.as_deref();
            properties.correlation_data = p.correlation_data.as_deref();
            properties.content_type = p.content_type.as_deref();
            properties.user_properties = p.user.view();
        }
        if header.expires_at_ns != u64::MAX {
            // At most the original interval: the turn of the sending shard may have begun before
            // the turn that received the message.
            let left_s = remaining_s(header.expires_at_ns, now_ns).min(header.expiry_s);
            properties.message_expiry_s = Some(left_s);
        }
        Publish {
            dup: false,
            qos: header.qos,
            retain: header.retain,
            topic: &header.topic,
            packet_id: None,
            properties,
            payload: self.payload(),
        }
    }
}

fn size_bytes(topic: &str, properties: Option<&Properties>, payload: &[u8]) -> usize {
    payload.len() + topic.len() + properties.map_or(0, Properties::size_bytes)
}

/// The payload of a message, referenced from an output queue.
pub(crate) struct SharedPayload(pub(crate) Message);

impl AsRef<[u8]> for SharedPayload {
    fn as_ref(&self) -> &[u8] {
        self.0.payload()
    }
}

fn expiry(now_ns: u64, message_expiry_s: Option<u32>) -> u64 {
    message_expiry_s.map_or(u64::MAX, |s| now_ns.saturating_add(u64::from(s) * 1_000_000_000))
}

/// Whole seconds left, rounded up so that a message that is not expired never has 0 [MQTT-3.3.2-6].
fn remaining_s(expires_at_ns: u64, now_ns: u64) -> u32 {
    let left_ns = expires_at_ns.saturating_sub(now_ns);
    u32::try_from(left_ns.div_ceil(1_000_000_000)).unwrap_or(u32::MAX)
}
