//! Keys and values in the journal: sessions, their subscriptions, packet identifiers of incoming
//! QoS 2 messages and wills; retained messages, queues of shared subscriptions, and the number of
//! starts.
//!
//! The first byte of a key is its kind. Values begin with a version of their format; numbers are
//! little-endian.

use std::sync::Arc;

use tacho_codec::{PacketId, QoS, Version};
use tacho_journal::QueueId;
use tacho_topic::{Filter, SharedFilter};

use super::bytes::{Rest, put_bytes};
use crate::config::{Level, QueuePolicy};
use crate::keys::{ClientKey, TenantId};
use crate::subscription::SubscriptionOptions;

/// The version of values.
const VALUE_VERSION: u8 = 1;
/// Of a session with a user. Sessions of anonymous clients, and all of earlier releases, have the
/// version of other values.
const WITH_USER: u8 = 2;
/// Of a will about which the token of its client says something.
const OF_TOKEN: u8 = 2;

/// The session of a queue.
pub(crate) const SESSION: &[u8] = b"s";
/// The will of the session of a queue.
pub(crate) const WILL: &[u8] = b"w";
/// The number of starts, a key without a queue.
pub(crate) const STARTS: &[u8] = b"e";

/// A decoded key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    Session,
    Subscription(&'a str),
    Inbound(PacketId),
    Will,
    Retained(&'a str),
    Group(&'a str),
    Starts,
}

impl<'a> Key<'a> {
    /// Decodes a key; `None` if its kind or format is unknown.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let text = || std::str::from_utf8(rest).ok();
        match kind {
            b's' if rest.is_empty() => Some(Self::Session),
            b'w' if rest.is_empty() => Some(Self::Will),
            b'e' if rest.is_empty() => Some(Self::Starts),
            b'f' => text().map(Self::Subscription),
            b'r' => text().map(Self::Retained),
            b'g' => text().map(Self::Group),
            b'i' => {
                let id = u16::from_le_bytes(rest.try_into().ok()?);
                PacketId::new(id).map(Self::Inbound)
            }
            _ => None,
        }
    }
}

/// The key of a subscription.
pub(crate) fn subscription(filter: &Filter) -> Vec<u8> {
    format!("f{filter}").into_bytes()
}

/// The key of an incoming QoS 2 message that is not released.
pub(crate) fn inbound(packet_id: PacketId) -> [u8; 3] {
    let [low, high] = packet_id.get().to_le_bytes();
    [b'i', low, high]
}

/// The key of the retained message of a topic.
pub(crate) fn retained(topic: &str) -> Vec<u8> {
    format!("r{topic}").into_bytes()
}

/// The key of the queue of a shared subscription.
pub(crate) fn group(filter: &SharedFilter) -> Vec<u8> {
    format!("g{filter}").into_bytes()
}

/// The stored form of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    pub(crate) key: ClientKey,
    /// Whose session it is; `None`: an anonymous client's.
    pub(crate) user: Option<Arc<str>>,
    pub(crate) version: Version,
    /// Never [`Level::Memory`].
    pub(crate) level: Level,
    /// What becomes of messages when its queue is full.
    pub(crate) queue_policy: QueuePolicy,
    pub(crate) expiry_s: u32,
    pub(crate) state: Connectedness,
}

/// Whether the client of a session is connected, according to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connectedness {
    /// It is connected, or was connected when the broker stopped or crashed.
    Connected,
    /// It is not connected; the session ends at this time of the wall clock, `u64::MAX` is never.
    EndsAt { unix_ns: u64 },
}

impl SessionRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let id = self.key.client_id.as_bytes();
        let mut bytes = Vec::with_capacity(20 + id.len());
        let (connected, ends_at) = match self.state {
            Connectedness::Connected => (1, u64::MAX),
            Connectedness::EndsAt { unix_ns } => (0, unix_ns),
        };
        let version = self.version.protocol_level();
        let rules = self.level as u8 | (self.queue_policy as u8) << 4;
        let format = if self.user.is_some() { WITH_USER } else { VALUE_VERSION };
        bytes.extend_from_slice(&[format, connected, version, rules]);
        bytes.extend_from_slice(&self.key.tenant.0.to_le_bytes());
        bytes.extend_from_slice(&self.expiry_s.to_le_bytes());
        bytes.extend_from_slice(&ends_at.to_le_bytes());
        if let Some(user) = &self.user {
            put_bytes(user.as_bytes(), &mut bytes);
        }
        bytes.extend_from_slice(id);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Rest(bytes);
        let has_user = match fields.byte()? {
            VALUE_VERSION => false,
            WITH_USER => true,
            _ => return None,
        };
        let [connected, version, rules] = fields.array()?;
        let version = Version::ALL.into_iter().find(|known| known.protocol_level() == version)?;
        let level = Level::ALL.into_iter().find(|known| *known as u8 == rules & 0x0f)?;
        let mut policies = QueuePolicy::ALL.into_iter();
        let queue_policy = policies.find(|known| *known as u8 == rules >> 4)?;
        let tenant = TenantId(fields.u32()?);
        let expiry_s = fields.u32()?;
        let unix_ns = fields.u64()?;
        let user = if has_user { Some(fields.text()?.into()) } else { None };
        let client_id: Arc<str> = std::str::from_utf8(fields.0).ok()?.into();
        let state = match connected {
            0 => Connectedness::EndsAt { unix_ns },
            _ => Connectedness::Connected,
        };
        let key = ClientKey { tenant, client_id };
        Some(Self { key, user, version, level, queue_policy, expiry_s, state })
    }
}

/// The stored form of a will, without its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WillRecord {
    pub(crate) delay_s: u32,
    /// When the will is due on the wall clock, once its client has disconnected.
    pub(crate) due_unix_ns: Option<u64>,
    /// What the rules of its client's token say of it, if they say something: the rules themselves
    /// are not kept.
    pub(crate) token_says: Option<bool>,
}

impl WillRecord {
    pub(crate) fn encode(self) -> Vec<u8> {
        let format = if self.token_says.is_some() { OF_TOKEN } else { VALUE_VERSION };
        let mut bytes = vec![format];
        bytes.extend_from_slice(&self.delay_s.to_le_bytes());
        bytes.extend_from_slice(&self.due_unix_ns.unwrap_or(u64::MAX).to_le_bytes());
        bytes.extend(self.token_says.map(u8::from));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Rest(bytes);
        let is_of_token = match fields.byte()? {
            VALUE_VERSION => false,
            OF_TOKEN => true,
            _ => return None,
        };
        let delay_s = fields.u32()?;
        let due_unix_ns = Some(fields.u64()?).filter(|&due| due != u64::MAX);
        let token_says = if is_of_token { Some(fields.byte()? != 0) } else { None };
        Some(Self { delay_s, due_unix_ns, token_says })
    }
}

/// Encodes subscription options.
pub(crate) fn encode_options(options: &SubscriptionOptions) -> Vec<u8> {
    let flags = options.qos as u8
        | u8::from(options.no_local) << 2
        | u8::from(options.retain_as_published) << 3;
    let mut bytes = vec![VALUE_VERSION, flags];
    bytes.extend_from_slice(&options.id.to_le_bytes());
    if options.since > 0 {
        bytes.extend_from_slice(&options.since.to_le_bytes());
    }
    bytes
}

/// Decodes subscription options.
pub(crate) fn decode_options(bytes: &[u8]) -> Option<SubscriptionOptions> {
    let mut fields = fields(bytes)?;
    let [flags] = fields.array()?;
    Some(SubscriptionOptions {
        qos: QoS::from_u8(flags & 3)?,
        no_local: flags & 4 != 0,
        retain_as_published: flags & 8 != 0,
        id: fields.u32()?,
        since: if fields.0.is_empty() { 0 } else { fields.u64()? },
    })
}

/// Encodes the queue of a shared subscription.
pub(crate) fn encode_queue(queue: QueueId) -> [u8; 9] {
    encode_number(queue.get())
}

/// Decodes the queue of a shared subscription.
pub(crate) fn decode_queue(bytes: &[u8]) -> Option<QueueId> {
    Some(QueueId::new(fields(bytes)?.u64()?))
}

/// Encodes the number of starts.
pub(crate) fn encode_starts(starts: u64) -> [u8; 9] {
    encode_number(starts)
}

/// Decodes the number of starts.
pub(crate) fn decode_starts(bytes: &[u8]) -> Option<u64> {
    fields(bytes)?.u64()
}

fn encode_number(number: u64) -> [u8; 9] {
    let mut bytes = [VALUE_VERSION; 9];
    bytes[1..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The fields behind the version of a value.
fn fields(value: &[u8]) -> Option<Rest<'_>> {
    let mut rest = Rest(value);
    (rest.byte()? == VALUE_VERSION).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_wills_and_options_round_trip() {
        for state in [Connectedness::Connected, Connectedness::EndsAt { unix_ns: 7 }] {
            for version in [Version::V31, Version::V311, Version::V5] {
                let key = ClientKey { tenant: TenantId(3), client_id: "grün".into() };
                for queue_policy in QueuePolicy::ALL {
                    for user in [None, Some("änn".into()), Some("".into())] {
                        let (level, expiry_s, key) = (Level::Written, 60, key.clone());
                        let record = SessionRecord {
                            key,
                            user,
                            version,
                            level,
                            queue_policy,
                            expiry_s,
                            state,
                        };
                        assert_eq!(SessionRecord::decode(&record.encode()), Some(record));
                    }
                }
            }
        }
        for due_unix_ns in [None, Some(0), Some(9)] {
            for token_says in [None, Some(false), Some(true)] {
                let will = WillRecord { delay_s: 5, due_unix_ns, token_says };
                assert_eq!(WillRecord::decode(&will.encode()), Some(will));
                let bytes = will.encode();
                assert_eq!(WillRecord::decode(&bytes[..bytes.len() - 1]), None);
            }
        }
        for (no_local, retain_as_published) in [(false, true), (true, false)] {
            for since in [0, 1 << 41] {
                let qos = QoS::ExactlyOnce;
                let id = 268_435_455;
                let options = SubscriptionOptions { qos, no_local, retain_as_published, id, since };
                assert_eq!(decode_options(&encode_options(&options)), Some(options));
            }
        }
        assert_eq!(decode_starts(&encode_starts(12)), Some(12));
    }

    /// Written by a release that knew no tokens.
    #[test]
    fn wills_without_a_word_of_a_token_are_left_to_the_rules() {
        let mut bytes = vec![1];
        bytes.extend_from_slice(&5_u32.to_le_bytes());
        bytes.extend_from_slice(&u64::MAX.to_le_bytes());
        let will = WillRecord { delay_s: 5, due_unix_ns: None, token_says: None };
        assert_eq!(WillRecord::decode(&bytes), Some(will));
        assert_eq!(will.encode(), bytes);
    }

    /// Written by a release that knew no users.
    #[test]
    fn sessions_without_a_user_are_anonymous() {
        let mut bytes = vec![1, 1, 5, Level::Written as u8];
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&60_u32.to_le_bytes());
        bytes.extend_from_slice(&u64::MAX.to_le_bytes());
        bytes.extend_from_slice(b"client");
        let record = SessionRecord::decode(&bytes).expect("an old record");
        assert_eq!((&*record.key.client_id, record.user.clone()), ("client", None));
        assert_eq!(record.encode(), bytes);
    }

    #[test]
    fn keys_round_trip() {
        let filter = Filter::parse("$share/g/a/+").unwrap();
        assert_eq!(Key::parse(&subscription(&filter)), Some(Key::Subscription("$share/g/a/+")));
        let Filter::Shared(shared) = filter else { panic!("a shared filter") };
        assert_eq!(Key::parse(&group(&shared)), Some(Key::Group("$share/g/a/+")));
        let id = PacketId::new(0x1234).unwrap();
        assert_eq!(Key::parse(&inbound(id)), Some(Key::Inbound(id)));
        assert_eq!(Key::parse(&retained("a/b")), Some(Key::Retained("a/b")));
        for (bytes, key) in [(SESSION, Key::Session), (WILL, Key::Will), (STARTS, Key::Starts)] {
            assert_eq!(Key::parse(bytes), Some(key));
        }
    }

    #[test]
    fn unknown_keys_and_values_are_refused() {
        for bytes in [&b""[..], b"x", b"sx", b"i\0\0", b"i1", b"f\xff"] {
            assert_eq!(Key::parse(bytes), None, "{bytes:?}");
        }
        assert_eq!(SessionRecord::decode(&[3; 40]), None);
        assert_eq!(SessionRecord::decode(&[VALUE_VERSION, 0, 5]), None);
        assert_eq!(WillRecord::decode(&[VALUE_VERSION; 12]), None);
        assert_eq!(WillRecord::decode(&[3; 14]), None);
        assert_eq!(decode_options(&[VALUE_VERSION, 3, 0, 0, 0, 0]), None);
    }
}
