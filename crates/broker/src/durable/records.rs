//! The records of a data directory in readable form, for inspection while no broker uses it.

use serde::Serialize;
use tacho_journal::{Inspection, MessageId, QueueId, ReadError, Visitor};

use super::entry::{EntryMeta, EntryStage};
use super::keys::{self, Connectedness, Key, SessionRecord, WillRecord};
use super::open;
use super::{WallClock, body};
use crate::message::Message;

/// A record of a data directory. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the keys of the output")]
#[non_exhaustive]
pub enum KeptRecord {
    /// A session. Records with the same queue belong to it.
    Session {
        queue: u64,
        client_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        version: String,
        level: &'static str,
        queue_full: &'static str,
        expiry_s: u32,
        connected: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        ends_at: Option<u64>,
    },
    /// A subscription.
    Subscription {
        queue: u64,
        filter: String,
        qos: u8,
        no_local: bool,
        retain_as_published: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        identifier: Option<u32>,
    },
    /// An incoming message of QoS 2 that is not released.
    Inbound { queue: u64, packet_id: u16 },
    /// A will that is not published.
    Will {
        queue: u64,
        delay_s: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        due_at: Option<u64>,
        #[serde(flatten)]
        message: KeptMessage,
    },
    /// A message queued or in flight for a session, or queued for a shared subscription.
    Entry {
        queue: u64,
        seq: u64,
        stage: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        packet_id: Option<u16>,
        qos: u8,
        retain: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<u64>,
        #[serde(flatten)]
        message: Option<KeptMessage>,
    },
    /// A shared subscription with a queue.
    Group { queue: u64, filter: String },
    /// A retained message.
    Retained {
        #[serde(flatten)]
        message: KeptMessage,
    },
    /// A message whose distribution is not finished.
    Open {
        message_id: u64,
        #[serde(flatten)]
        message: KeptMessage,
    },
    /// The number of starts on the directory.
    Starts { starts: u64 },
    /// A record of an unknown format, or a message that cannot be read.
    Unknown { queue: u64, what: String },
}

/// A message in a data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are the keys of the output")]
pub struct KeptMessage {
    pub topic: String,
    /// That made it, of a will and of a message to be retained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    pub published_qos: u8,
    pub published_retain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The payload, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The payload in hexadecimal, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_hex: Option<String>,
}

impl KeptMessage {
    fn new(message: &Message, is_will: bool) -> Self {
        let header = message.header();
        let (payload, payload_hex) = match std::str::from_utf8(message.payload()) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => {
                let hex = message.payload().iter().map(|byte| format!("{byte:02x}"));
                (None, Some(hex.collect()))
            }
        };
        Self {
            topic: message.topic().to_owned(),
            user: header.user.as_deref().map(str::to_owned),
            published_qos: header.qos as u8,
            published_retain: header.retain,
            // The expiry of a will starts when it is published.
            expires_at: Some(header.expires_at_ns).filter(|_| !is_will).and_then(seconds),
            payload,
            payload_hex,
        }
    }
}

/// Visits all records of a data directory. The messages of entries are included only
/// `with_messages`, since they are read from the disk one by one.
///
/// # Errors
/// The directory cannot be read.
pub fn visit_records(
    inspection: &Inspection,
    with_messages: bool,
    each: &mut dyn FnMut(KeptRecord),
) -> Result<(), ReadError> {
    inspection.visit(&mut RecordVisitor { inspection, with_messages, each })
}

/// Times stay on the wall clock.
const WALL: WallClock = WallClock::UNIX;

struct RecordVisitor<'a> {
    inspection: &'a Inspection,
    with_messages: bool,
    each: &'a mut dyn FnMut(KeptRecord),
}

impl RecordVisitor<'_> {
    fn key(
        queue: u64,
        key: &[u8],
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    ) -> Option<KeptRecord> {
        let message = || {
            let (id, bytes) = message?;
            body::decode(bytes, WALL, id)
        };
        Some(match Key::parse(key)? {
            Key::Session => {
                let SessionRecord { key, user, version, level, queue_policy, expiry_s, state } =
                    SessionRecord::decode(value)?;
                let ends_at = match state {
                    Connectedness::Connected => None,
                    Connectedness::EndsAt { unix_ns } => seconds(unix_ns),
                };
                KeptRecord::Session {
                    queue,
                    client_id: key.client_id.as_ref().to_owned(),
                    user: user.as_deref().map(str::to_owned),
                    version: version.to_string(),
                    level: level.name(),
                    queue_full: queue_policy.name(),
                    expiry_s,
                    connected: state == Connectedness::Connected,
                    ends_at,
                }
            }
            Key::Subscription(filter) => {
                let options = keys::decode_options(value)?;
                KeptRecord::Subscription {
                    queue,
                    filter: filter.to_owned(),
                    qos: options.qos as u8,
                    no_local: options.no_local,
                    retain_as_published: options.retain_as_published,
                    identifier: Some(options.id).filter(|&id| id != 0),
                }
            }
            Key::Inbound(id) => KeptRecord::Inbound { queue, packet_id: id.get() },
            Key::Will => {
                let WillRecord { delay_s, due_unix_ns, .. } = WillRecord::decode(value)?;
                let due_at = due_unix_ns.and_then(seconds);
                KeptRecord::Will {
                    queue,
                    delay_s,
                    due_at,
                    message: KeptMessage::new(&message()?, true),
                }
            }
            Key::Retained(_) => {
                KeptRecord::Retained { message: KeptMessage::new(&message()?, false) }
            }
            Key::Group(filter) => KeptRecord::Group {
                queue: keys::decode_queue(value)?.get(),
                filter: filter.to_owned(),
            },
            Key::Starts => KeptRecord::Starts { starts: keys::decode_starts(value)? },
        })
    }
}

impl Visitor for RecordVisitor<'_> {
    fn key(
        &mut self,
        queue: QueueId,
        key: &[u8],
        _version: u64,
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    ) {
        let record = Self::key(queue.get(), key, value, message);
        (self.each)(record.unwrap_or_else(|| KeptRecord::Unknown {
            queue: queue.get(),
            what: format!("the key {}", String::from_utf8_lossy(key)),
        }));
    }

    fn entry(
        &mut self,
        queue: QueueId,
        seq: u64,
        message: Option<MessageId>,
        state: u32,
        meta: &[u8],
    ) {
        let queue = queue.get();
        let (Some(stage), Some(meta)) = (EntryStage::decode(state), EntryMeta::decode(meta, WALL))
        else {
            let what = format!("the entry {seq}");
            return (self.each)(KeptRecord::Unknown { queue, what });
        };
        let (stage, packet_id) = match stage {
            EntryStage::Queued => ("queued", None),
            EntryStage::Sent(id) => ("sent", Some(id.get())),
            EntryStage::Released(id) => ("released", Some(id.get())),
        };
        let kept = message.filter(|_| self.with_messages).and_then(|id| {
            let bytes = self.inspection.message(id).ok()?;
            body::decode(&bytes, WALL, id).map(|message| KeptMessage::new(&message, false))
        });
        if self.with_messages
            && kept.is_none()
            && let Some(id) = message
        {
            let what = format!("the message {} of entry {seq} cannot be read", id.get());
            (self.each)(KeptRecord::Unknown { queue, what });
        }
        (self.each)(KeptRecord::Entry {
            queue,
            seq,
            stage,
            packet_id,
            qos: meta.qos as u8,
            retain: meta.retain,
            message_id: message.map(MessageId::get),
            message: kept,
        });
    }

    fn open(&mut self, id: MessageId, bytes: &[u8], meta: &[u8], _served: &[QueueId]) {
        let message = body::decode(bytes, WALL, id).filter(|_| open::decode(meta).is_some());
        (self.each)(match message {
            Some(message) => KeptRecord::Open {
                message_id: id.get(),
                message: KeptMessage::new(&message, false),
            },
            None => KeptRecord::Unknown { queue: 0, what: format!("the message {}", id.get()) },
        });
    }
}

/// An instant in whole seconds; `None` if it is never.
fn seconds(unix_ns: u64) -> Option<u64> {
    (unix_ns != u64::MAX).then_some(unix_ns / 1_000_000_000)
}
