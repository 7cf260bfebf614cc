//! What a journal was told, as maps.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use tacho_journal::{
    Journal, Level, MessageId, QueueId, Record, Recovered, Token, Urgency, Visitor, Writer,
};

/// A key and the queue that it belongs to.
type Key = (QueueId, Vec<u8>);
/// Version, value and message of a key.
type Value = (u64, Vec<u8>, Option<MessageId>);
/// The versions of keys that were deleted.
type Deleted = BTreeMap<Key, u64>;

/// What is live after some commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) entries: BTreeMap<(QueueId, u64), Entry>,
    pub(crate) keys: BTreeMap<Key, Value>,
    /// What was said when a message was opened, and the queues that it went to since.
    pub(crate) opens: BTreeMap<MessageId, (Vec<u8>, BTreeSet<QueueId>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) message: Option<MessageId>,
    pub(crate) state: u32,
    pub(crate) meta: Vec<u8>,
}

/// Who tells a journal random things and remembers what it would say after each commit.
pub(crate) struct Teller {
    rng: Rng,
    state: State,
    /// Deleted keys, with the version.
    deleted: Deleted,
    /// What is live after each commit; a commit without records is as the one before.
    after: BTreeMap<Token, (State, Deleted)>,
    /// The newest commit that survives everything once it is complete.
    pub(crate) asked: BTreeSet<Token>,
    queues: Vec<QueueId>,
    seq: u64,
    version: u64,
    /// The greatest numbers that were seen.
    newest_message: u64,
    newest_queue: u64,
}

/// The body of a message.
pub(crate) fn body(id: MessageId) -> Vec<u8> {
    let len = [20, 300, 1_500, 6_000][(id.get() % 4) as usize];
    (0..len).map(|at| (id.get() as usize * 31 + at) as u8).collect()
}

impl Teller {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            state: State::default(),
            deleted: BTreeMap::new(),
            after: BTreeMap::from([(Token::DONE, Default::default())]),
            asked: BTreeSet::new(),
            queues: Vec::new(),
            seq: 0,
            version: 0,
            newest_message: 0,
            newest_queue: 0,
        }
    }

    /// Tells a few things, as one group or one by one.
    pub(crate) fn tell(&mut self, journal: &Journal, writer: &mut Writer) {
        let level = if self.rng.u8(..3) == 0 { Level::Written } else { Level::Fsynced };
        for _ in 0..self.rng.u8(1..4) {
            let token = self.tell_one(journal, writer, level);
            self.after.insert(token, (self.state.clone(), self.deleted.clone()));
            if level == Level::Fsynced {
                self.asked.insert(token);
            }
        }
    }

    fn new_message(&mut self, journal: &Journal, writer: &mut Writer, level: Level) -> MessageId {
        let id = journal.new_message_id();
        assert!(id.get() > self.newest_message, "{id:?} was used before");
        self.newest_message = id.get();
        let body = body(id);
        let (front, rear) = body.split_at(7);
        writer.gather(Record::Message { id, body: &[front, rear] }, level);
        id
    }

    fn queue(&mut self, journal: &Journal) -> QueueId {
        if self.queues.len() < 4 {
            let queue = journal.new_queue_id();
            assert!(queue.get() > self.newest_queue, "{queue:?} was used before");
            self.newest_queue = queue.get();
            self.queues.push(queue);
        }
        self.queues[self.rng.usize(..self.queues.len())]
    }

    fn enter(&mut self, journal: &Journal, writer: &mut Writer, level: Level, id: MessageId) {
        let queue = self.queue(journal);
        self.seq += 1;
        let (seq, state) = (self.seq, self.rng.u32(..));
        let meta = vec![seq as u8; self.rng.usize(..20)];
        let record = Record::Entry { queue, seq, message: id, state, meta: &meta };
        writer.gather(record, level);
        self.state.entries.insert((queue, seq), Entry { message: Some(id), state, meta });
        if let Some((_, served)) = self.state.opens.get_mut(&id) {
            served.insert(queue);
        }
    }

    fn tell_one(&mut self, journal: &Journal, writer: &mut Writer, level: Level) -> Token {
        match self.rng.u8(..20) {
            0..6 => {
                let id = self.new_message(journal, writer, level);
                for _ in 0..self.rng.u8(1..3) {
                    self.enter(journal, writer, level, id);
                }
            }
            6..8 => {
                let id = self.new_message(journal, writer, level);
                let meta = id.get().to_le_bytes().to_vec();
                writer.gather(Record::Open { message: id, meta: &meta }, level);
                self.state.opens.insert(id, (meta, BTreeSet::new()));
                self.enter(journal, writer, level, id);
            }
            8 => self.serve_open(journal, writer, level),
            9 => self.end_open(writer, level),
            10..14 => self.remove(writer, level),
            14..16 => self.change(writer, level),
            16 if self.rng.u8(..4) == 0 => self.drop_queue(journal, writer, level),
            16..19 => self.put(journal, writer, level),
            _ => self.delete(journal, writer, level),
        }
        // Something, so that the commit comes.
        writer.gather(Record::Remove { queue: QueueId::new(u64::MAX), seq: 1 }, level);
        writer.close(Urgency::Forces)
    }

    fn serve_open(&mut self, journal: &Journal, writer: &mut Writer, level: Level) {
        let open = self.rng.usize(..self.state.opens.len().max(1));
        if let Some(id) = self.state.opens.keys().nth(open).copied() {
            self.enter(journal, writer, level, id);
        }
    }

    fn end_open(&mut self, writer: &mut Writer, level: Level) {
        let open = self.rng.usize(..self.state.opens.len().max(1));
        if let Some(id) = self.state.opens.keys().nth(open).copied() {
            self.state.opens.remove(&id);
            writer.gather(Record::Done { message: id }, level);
        }
    }

    fn remove(&mut self, writer: &mut Writer, level: Level) {
        let entry = self.rng.usize(..self.state.entries.len().max(1));
        if let Some((queue, seq)) = self.state.entries.keys().nth(entry).copied() {
            self.state.entries.remove(&(queue, seq));
            writer.gather(Record::Remove { queue, seq }, level);
        }
    }

    fn change(&mut self, writer: &mut Writer, level: Level) {
        let entry = self.rng.usize(..self.state.entries.len().max(1));
        let (state, keep_message) = (self.rng.u32(..), self.rng.bool());
        let Some((&(queue, seq), entry)) = self.state.entries.iter_mut().nth(entry) else { return };
        entry.state = state;
        if !keep_message {
            entry.message = None;
        }
        writer.gather(Record::State { queue, seq, state, keep_message }, level);
    }

    fn drop_queue(&mut self, journal: &Journal, writer: &mut Writer, level: Level) {
        let queue = self.queue(journal);
        self.queues.retain(|known| *known != queue);
        self.state.entries.retain(|(of, _), _| *of != queue);
        self.state.keys.retain(|(of, _), _| *of != queue);
        self.deleted.retain(|(of, _), _| *of != queue);
        writer.gather(Record::DropQueue { queue }, level);
    }

    /// A queue, one of its keys, and a version: newer than any, or an older one that comes late.
    fn key(&mut self, journal: &Journal) -> (QueueId, Vec<u8>, u64) {
        let common = self.rng.bool();
        let queue = if common { QueueId::COMMON } else { self.queue(journal) };
        self.version += 1;
        let late = self.rng.u8(..4) == 0;
        let version = match (common, late) {
            (false, _) => 0,
            (true, false) => self.version,
            (true, true) => self.rng.u64(1..=self.version),
        };
        (queue, vec![self.rng.u8(..6)], version)
    }

    fn is_late(&self, at: &Key, version: u64) -> bool {
        self.state.keys.get(at).is_some_and(|(known, ..)| *known > version)
            || self.deleted.get(at).is_some_and(|known| *known > version)
    }

    fn put(&mut self, journal: &Journal, writer: &mut Writer, level: Level) {
        let (queue, key, version) = self.key(journal);
        let message = self.rng.bool().then(|| self.new_message(journal, writer, level));
        let value = vec![self.rng.u8(..); self.rng.usize(..40)];
        let record = Record::Put { queue, key: &key, version, value: &value, message };
        writer.gather(record, level);
        let at = (queue, key);
        if !self.is_late(&at, version) {
            self.deleted.remove(&at);
            self.state.keys.insert(at, (version, value, message));
        }
    }

    fn delete(&mut self, journal: &Journal, writer: &mut Writer, level: Level) {
        let (queue, key, version) = self.key(journal);
        writer.gather(Record::Delete { queue, key: &key, version }, level);
        let at = (queue, key);
        if !self.is_late(&at, version) {
            self.state.keys.remove(&at);
            if version > 0 {
                self.deleted.insert(at, version);
            }
        }
    }

    /// The journal was opened: it must say what it was told up to its newest commit, which is not
    /// before `safe`. From now on nothing behind that was ever said.
    pub(crate) fn check(&mut self, journal: &Journal, recovered: &mut Recovered, safe: Token) {
        let newest = journal.committed();
        assert!(newest >= safe, "the log ends with {newest:?}, {safe:?} was safe");
        let report = recovered.report().clone();
        assert!(report.damage.is_empty() && report.unresolved == 0, "{report:?}");
        let mut shown = Shown::default();
        recovered.visit(&mut shown).unwrap();
        let (_, (state, deleted)) = self.after.range(..=newest).next_back().unwrap();
        assert_eq!(shown.0, *state, "after {newest:?}");
        (self.state, self.deleted) = (state.clone(), deleted.clone());
        self.after.retain(|token, _| *token <= newest);
        self.asked.retain(|token| *token <= newest);
        // What was lost with the tail may be given out again.
        let messages = self.state.messages();
        self.newest_message = messages.last().map_or(0, |id| id.get());
        self.newest_queue = self.state.queues().last().map_or(0, |queue| queue.get());
        self.queues = self.state.queues().into_iter().filter(|q| *q != QueueId::COMMON).collect();
        let ids: Vec<MessageId> = messages.into_iter().collect();
        for (id, read) in journal.read(&ids) {
            assert_eq!(read.unwrap_or_else(|e| panic!("{id:?}: {e}"))[..], body(id)[..]);
        }
    }
}

impl State {
    /// All messages that are needed.
    pub(crate) fn messages(&self) -> BTreeSet<MessageId> {
        let entries = self.entries.values().filter_map(|entry| entry.message);
        let keys = self.keys.values().filter_map(|(_, _, message)| *message);
        entries.chain(keys).chain(self.opens.keys().copied()).collect()
    }

    fn queues(&self) -> BTreeSet<QueueId> {
        let entries = self.entries.keys().map(|(queue, _)| *queue);
        entries.chain(self.keys.keys().map(|(queue, _)| *queue)).collect()
    }
}

/// What a journal shows.
#[derive(Default)]
struct Shown(State);

impl Visitor for Shown {
    fn key(
        &mut self,
        queue: QueueId,
        key: &[u8],
        version: u64,
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    ) {
        if let Some((id, shown)) = message {
            assert_eq!(shown, body(id));
        }
        let value = (version, value.to_vec(), message.map(|(id, _)| id));
        assert!(self.0.keys.insert((queue, key.to_vec()), value).is_none(), "a key twice");
    }

    fn entry(
        &mut self,
        queue: QueueId,
        seq: u64,
        message: Option<MessageId>,
        state: u32,
        meta: &[u8],
    ) {
        let entry = Entry { message, state, meta: meta.to_vec() };
        assert!(self.0.entries.insert((queue, seq), entry).is_none(), "an entry twice");
    }

    fn open(&mut self, message: MessageId, shown: &[u8], meta: &[u8], served: &[QueueId]) {
        assert_eq!(shown, body(message));
        let open = (meta.to_vec(), served.iter().copied().collect());
        assert!(self.0.opens.insert(message, open).is_none(), "opened twice");
    }
}
