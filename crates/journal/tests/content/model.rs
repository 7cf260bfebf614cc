//! The expected live state, kept in maps.

use std::collections::{BTreeMap, BTreeSet};

use tacho_journal::{CommitSeq, Level, MessageId, QueueId, Record, Urgency, Visitor, Writer};

/// A record that owns its parts.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Message { id: u64, body: Vec<u8> },
    Entry { queue: u64, seq: u64, message: u64, state: u32, meta: Vec<u8> },
    State { queue: u64, seq: u64, state: u32, keep_message: bool },
    Remove { queue: u64, seq: u64 },
    Put { queue: u64, key: Vec<u8>, version: u64, value: Vec<u8>, message: Option<u64> },
    Delete { queue: u64, key: Vec<u8>, version: u64 },
    DropQueue { queue: u64 },
    Open { message: u64, meta: Vec<u8> },
    Done { message: u64 },
}

fn id(number: u64) -> MessageId {
    MessageId::new(number).expect("messages are counted from 1")
}

impl Op {
    pub(crate) fn append(&self, writer: &mut Writer, level: Level) -> CommitSeq {
        let queue = |queue: &u64| QueueId::new(*queue);
        let mut append = |record| writer.append(record, level, Urgency::Forces);
        match self {
            Self::Message { id: number, body } => {
                let (front, back) = body.split_at(body.len() / 2);
                append(Record::Message { id: id(*number), body: &[front, back] })
            }
            Self::Entry { queue: q, seq, message, state, meta } => append(Record::Entry {
                queue: queue(q),
                seq: *seq,
                message: id(*message),
                state: *state,
                meta,
            }),
            Self::State { queue: q, seq, state, keep_message } => append(Record::State {
                queue: queue(q),
                seq: *seq,
                state: *state,
                keep_message: *keep_message,
            }),
            Self::Remove { queue: q, seq } => append(Record::Remove { queue: queue(q), seq: *seq }),
            Self::Put { queue: q, key, version, value, message } => append(Record::Put {
                queue: queue(q),
                key,
                version: *version,
                value,
                message: message.map(id),
            }),
            Self::Delete { queue: q, key, version } => {
                append(Record::Delete { queue: queue(q), key, version: *version })
            }
            Self::DropQueue { queue: q } => append(Record::DropQueue { queue: queue(q) }),
            Self::Open { message, meta } => append(Record::Open { message: id(*message), meta }),
            Self::Done { message } => append(Record::Done { message: id(*message) }),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) message: Option<u64>,
    pub(crate) state: u32,
    pub(crate) meta: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) version: u64,
    pub(crate) value: Vec<u8>,
    pub(crate) message: Option<u64>,
}

/// Metadata and commit of each opening, with the queues served since.
pub(crate) type Opened = Vec<(Vec<u8>, BTreeSet<u64>)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) entries: BTreeMap<(u64, u64), Entry>,
    /// Deleted keys included, without a value.
    pub(crate) keys: BTreeMap<(u64, Vec<u8>), (u64, Option<Value>)>,
    pub(crate) opens: BTreeMap<u64, (u32, Opened)>,
}

impl Model {
    pub(crate) fn apply(&mut self, op: &Op) {
        match op.clone() {
            Op::Message { .. } => {}
            Op::Entry { queue, seq, message, state, meta } => {
                if let Some((_, opened)) = self.opens.get_mut(&message) {
                    opened.iter_mut().for_each(|(_, served)| served.extend([queue]));
                }
                let entry = Entry { message: Some(message), state, meta };
                self.entries.insert((queue, seq), entry);
            }
            Op::State { queue, seq, state, keep_message } => {
                if let Some(entry) = self.entries.get_mut(&(queue, seq)) {
                    entry.state = state;
                    entry.message = entry.message.filter(|_| keep_message);
                }
            }
            Op::Remove { queue, seq } => drop(self.entries.remove(&(queue, seq))),
            Op::Put { queue, key, version, value, message } => {
                self.set(queue, key, version, Some(Value { version, value, message }));
            }
            Op::Delete { queue, key, version } => self.set(queue, key, version, None),
            Op::DropQueue { queue } => {
                self.entries.retain(|(of, _), _| *of != queue);
                self.keys.retain(|(of, _), _| *of != queue);
            }
            Op::Open { message, meta } => {
                let (times, opened) = self.opens.entry(message).or_default();
                *times += 1;
                opened.push((meta, BTreeSet::new()));
            }
            Op::Done { message } => {
                if let Some((times, _)) = self.opens.get_mut(&message) {
                    *times -= 1;
                }
                self.opens.retain(|_, (times, _)| *times > 0);
            }
        }
    }

    fn set(&mut self, queue: u64, key: Vec<u8>, version: u64, value: Option<Value>) {
        let known = self.keys.get(&(queue, key.clone())).map_or(0, |(version, _)| *version);
        if version >= known {
            self.keys.insert((queue, key), (version, value));
        }
    }

    /// All referenced messages.
    pub(crate) fn messages(&self) -> BTreeSet<u64> {
        let entries = self.entries.values().filter_map(|entry| entry.message);
        let values = self.keys.values().filter_map(|(_, value)| value.as_ref()?.message);
        entries.chain(values).chain(self.opens.keys().copied()).collect()
    }
}

/// The live state that a journal reported.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) entries: BTreeMap<(u64, u64), Entry>,
    pub(crate) keys: BTreeMap<(u64, Vec<u8>), Value>,
    pub(crate) opens: BTreeMap<u64, Opened>,
    pub(crate) bodies: BTreeMap<u64, Vec<u8>>,
}

impl Visitor for Seen {
    fn key(
        &mut self,
        queue: QueueId,
        key: &[u8],
        version: u64,
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    ) {
        assert!(self.entries.is_empty() && self.opens.is_empty(), "keys are visited first");
        self.bodies.extend(message.map(|(id, body)| (id.get(), body.to_vec())));
        let message = message.map(|(id, _)| id.get());
        let value = Value { version, value: value.to_vec(), message };
        let before = self.keys.insert((queue.get(), key.to_vec()), value);
        assert_eq!(before, None, "a key is visited once");
    }

    fn entry(
        &mut self,
        queue: QueueId,
        seq: u64,
        message: Option<MessageId>,
        state: u32,
        meta: &[u8],
    ) {
        assert!(self.opens.is_empty(), "open messages are visited last");
        let entry = Entry { message: message.map(MessageId::get), state, meta: meta.to_vec() };
        let before = self.entries.insert((queue.get(), seq), entry);
        assert_eq!(before, None, "an entry is visited once");
    }

    fn open(&mut self, message: MessageId, body: &[u8], meta: &[u8], served: &[QueueId]) {
        self.bodies.insert(message.get(), body.to_vec());
        let served = served.iter().map(|queue| queue.get()).collect();
        self.opens.entry(message.get()).or_default().push((meta.to_vec(), served));
    }
}

impl Seen {
    /// Asserts that the reported state equals the model.
    pub(crate) fn check(&self, model: &Model, bodies: &BTreeMap<u64, Vec<u8>>) {
        assert_eq!(self.entries, model.entries);
        let keys = model.keys.iter().filter_map(|(key, (_, value))| {
            value.as_ref().map(|value| (key.clone(), value.clone()))
        });
        assert_eq!(self.keys, keys.collect());
        assert!(self.opens.keys().eq(model.opens.keys()), "{:?} {:?}", self.opens, model.opens);
        for (id, (_, expected)) in &model.opens {
            let opened = &self.opens[id];
            let metas = |opened: &Opened| -> BTreeSet<Vec<u8>> {
                opened.iter().map(|(meta, _)| meta.clone()).collect()
            };
            assert_eq!(metas(opened), metas(expected), "message {id}");
            for (meta, served) in expected {
                let all = opened.iter().filter(|(other, _)| other == meta);
                assert!(all.clone().any(|(_, seen)| seen.is_superset(served)), "message {id}");
            }
        }
        for (id, body) in &self.bodies {
            assert_eq!(body, &bodies[id], "message {id}");
        }
    }
}
