//! The state that the records up to a commit produce, and the state that a journal restores. Each
//! test passes the [`Body`] of its messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use tacho_journal::{MessageId, QueueId, Record, Visitor};

/// The body of each message, told by its number.
pub type Body = fn(MessageId) -> Vec<u8>;

/// A record that was appended.
#[derive(Clone, Debug)]
pub enum Action {
    Message(MessageId),
    /// It counts as served only if it certainly arrived after the opening.
    Entry {
        queue: QueueId,
        seq: u64,
        entry: Entry,
        counts: bool,
    },
    State {
        queue: QueueId,
        seq: u64,
        state: u32,
        keep_message: bool,
    },
    Remove {
        queue: QueueId,
        seq: u64,
    },
    Put {
        queue: QueueId,
        key: Vec<u8>,
        value: Value,
    },
    Delete {
        queue: QueueId,
        key: Vec<u8>,
        version: u64,
    },
    Drop(QueueId),
    Open {
        message: MessageId,
        meta: Vec<u8>,
    },
    Done(MessageId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub message: Option<MessageId>,
    pub state: u32,
    pub meta: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub version: u64,
    /// `None`: deleted.
    pub bytes: Option<Vec<u8>>,
    pub message: Option<MessageId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    pub meta: Vec<u8>,
    /// Queues that got an entry of it since, for certain.
    pub served: BTreeSet<QueueId>,
}

/// Everything that is live.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub entries: BTreeMap<(QueueId, u64), Entry>,
    pub keys: BTreeMap<(QueueId, Vec<u8>), Value>,
    pub opens: BTreeMap<MessageId, Open>,
}

impl Action {
    /// Hands itself over as a record.
    pub fn with_record<T>(&self, body: Body, tell: impl FnOnce(Record<'_>) -> T) -> T {
        match *self {
            Self::Message(id) => {
                let body = body(id);
                let (begin, end) = body.split_at(body.len() / 3);
                tell(Record::Message { id, body: &[begin, end] })
            }
            Self::Entry { queue, seq, ref entry, .. } => {
                let Entry { message, state, meta } = entry;
                let message = message.expect("new entries have a message");
                tell(Record::Entry { queue, seq, message, state: *state, meta })
            }
            Self::State { queue, seq, state, keep_message } => {
                tell(Record::State { queue, seq, state, keep_message })
            }
            Self::Remove { queue, seq } => tell(Record::Remove { queue, seq }),
            Self::Put { queue, ref key, ref value } => {
                let &Value { version, ref bytes, message } = value;
                let value = bytes.as_deref().expect("what is put has a value");
                tell(Record::Put { queue, key, version, value, message })
            }
            Self::Delete { queue, ref key, version } => {
                tell(Record::Delete { queue, key, version })
            }
            Self::Drop(queue) => tell(Record::DropQueue { queue }),
            Self::Open { message, ref meta } => tell(Record::Open { message, meta }),
            Self::Done(message) => tell(Record::Done { message }),
        }
    }
}

impl State {
    pub fn apply(&mut self, action: &Action) {
        match action.clone() {
            Action::Message(_) => {}
            Action::Entry { queue, seq, entry, counts } => {
                if let Some(open) = entry.message.and_then(|id| self.opens.get_mut(&id))
                    && counts
                {
                    open.served.insert(queue);
                }
                self.entries.insert((queue, seq), entry);
            }
            Action::State { queue, seq, state, keep_message } => {
                if let Some(entry) = self.entries.get_mut(&(queue, seq)) {
                    entry.state = state;
                    entry.message = entry.message.filter(|_| keep_message);
                }
            }
            Action::Remove { queue, seq } => {
                self.entries.remove(&(queue, seq));
            }
            Action::Put { queue, key, value } => self.set(queue, key, value),
            Action::Delete { queue, key, version } => {
                self.set(queue, key, Value { version, bytes: None, message: None });
            }
            Action::Drop(queue) => {
                self.entries.retain(|(of, _), _| *of != queue);
                self.keys.retain(|(of, _), _| *of != queue);
            }
            Action::Open { message, meta } => {
                let open = Open { meta, served: BTreeSet::new() };
                self.opens.insert(message, open);
            }
            Action::Done(message) => {
                self.opens.remove(&message);
            }
        }
    }

    fn set(&mut self, queue: QueueId, key: Vec<u8>, value: Value) {
        let known = self.keys.get(&(queue, key.clone()));
        if known.is_none_or(|known| known.version <= value.version) {
            self.keys.insert((queue, key), value);
        }
    }

    /// All messages that something refers to.
    pub fn messages(&self) -> BTreeSet<MessageId> {
        let entries = self.entries.values().filter_map(|entry| entry.message);
        let keys = self.keys.values().filter_map(|value| value.message);
        entries.chain(keys).chain(self.opens.keys().copied()).collect()
    }

    /// Compares with what a journal shows. Of an open message that may say more queues.
    pub fn check(&self, shown: &Shown) {
        same(&shown.entries, &self.entries);
        let keys = self.keys.clone().into_iter().filter(|(_, value)| value.bytes.is_some());
        same(&shown.keys, &keys.collect());
        assert!(shown.opens.keys().eq(self.opens.keys()));
        for (message, open) in &self.opens {
            let shown = &shown.opens[message];
            assert_eq!(shown.meta, open.meta);
            assert!(shown.served.is_superset(&open.served), "{shown:?} {open:?}");
        }
    }
}

/// Says only what is different.
fn same<K: Ord + Debug, V: PartialEq + Debug>(shown: &BTreeMap<K, V>, told: &BTreeMap<K, V>) {
    for (key, value) in told {
        assert_eq!(shown.get(key), Some(value), "at {key:?}");
    }
    let more = shown.keys().find(|key| !told.contains_key(key));
    assert!(more.is_none(), "{more:?} is shown and was not told");
}

/// What a journal shows when it is opened.
pub struct Shown {
    body: Body,
    entries: BTreeMap<(QueueId, u64), Entry>,
    keys: BTreeMap<(QueueId, Vec<u8>), Value>,
    pub opens: BTreeMap<MessageId, Open>,
}

impl Shown {
    pub fn new(body: Body) -> Self {
        let (entries, keys, opens) = Default::default();
        Self { body, entries, keys, opens }
    }
}

impl Visitor for Shown {
    fn key(
        &mut self,
        queue: QueueId,
        key: &[u8],
        version: u64,
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    ) {
        assert!(self.entries.is_empty() && self.opens.is_empty(), "keys come first");
        if let Some((id, shown)) = message {
            assert_eq!(shown, (self.body)(id));
        }
        let bytes = Some(value.to_vec());
        let value = Value { version, bytes, message: message.map(|(id, _)| id) };
        assert!(self.keys.insert((queue, key.to_vec()), value).is_none(), "shown twice");
    }

    fn entry(
        &mut self,
        queue: QueueId,
        seq: u64,
        message: Option<MessageId>,
        state: u32,
        meta: &[u8],
    ) {
        assert!(self.opens.is_empty(), "entries come before open messages");
        let entry = Entry { message, state, meta: meta.to_vec() };
        assert!(self.entries.insert((queue, seq), entry).is_none(), "shown twice");
    }

    fn open(&mut self, message: MessageId, shown: &[u8], meta: &[u8], served: &[QueueId]) {
        assert_eq!(shown, (self.body)(message));
        let served = served.iter().copied().collect();
        let open = Open { meta: meta.to_vec(), served };
        assert!(self.opens.insert(message, open).is_none(), "shown twice");
    }
}
