//! A random workload and the state it must leave behind.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use tacho_journal::{
    CommitSeq, Journal, Level, MessageId, QueueId, Record, Recovered, Urgency, Writer,
};
use tacho_testkit::journal::{Action, Entry, Shown, State, Value};

use crate::body;

/// Appends random records and keeps the expected state after each commit.
pub(crate) struct Workload {
    rng: Rng,
    state: State,
    /// The live state after each commit; a commit without records repeats the one before.
    after: BTreeMap<CommitSeq, State>,
    /// The newest commit that survives any failure once it is complete.
    pub(crate) asked: BTreeSet<CommitSeq>,
    queues: Vec<QueueId>,
    seq: u64,
    version: u64,
    /// The greatest identifiers seen.
    newest_message: u64,
    newest_queue: u64,
}

impl Workload {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            state: State::default(),
            after: BTreeMap::from([(CommitSeq::DONE, State::default())]),
            asked: BTreeSet::new(),
            queues: Vec::new(),
            seq: 0,
            version: 0,
            newest_message: 0,
            newest_queue: 0,
        }
    }

    /// Appends a few records, as one record batch or one by one.
    pub(crate) fn append_some(&mut self, journal: &Journal, writer: &mut Writer) {
        let level = if self.rng.u8(..3) == 0 { Level::Written } else { Level::Fsynced };
        for _ in 0..self.rng.u8(1..4) {
            let commit = self.append_one(journal, writer, level);
            self.after.insert(commit, self.state.clone());
            if level == Level::Fsynced {
                self.asked.insert(commit);
            }
        }
    }

    fn gather(&mut self, writer: &mut Writer, level: Level, action: &Action) {
        action.with_record(body, |record| writer.gather(record, level));
        self.state.apply(action);
    }

    fn new_message(&mut self, journal: &Journal, writer: &mut Writer, level: Level) -> MessageId {
        let id = journal.new_message_id();
        assert!(id.get() > self.newest_message, "{id:?} was used before");
        self.newest_message = id.get();
        self.gather(writer, level, &Action::Message(id));
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
        let entry = Entry { message: Some(id), state, meta };
        self.gather(writer, level, &Action::Entry { queue, seq, entry, counts: true });
    }

    fn append_one(&mut self, journal: &Journal, writer: &mut Writer, level: Level) -> CommitSeq {
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
                self.gather(writer, level, &Action::Open { message: id, meta });
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
        // Any record, so that there is something to commit.
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
            self.gather(writer, level, &Action::Done(id));
        }
    }

    fn remove(&mut self, writer: &mut Writer, level: Level) {
        let entry = self.rng.usize(..self.state.entries.len().max(1));
        if let Some((queue, seq)) = self.state.entries.keys().nth(entry).copied() {
            self.gather(writer, level, &Action::Remove { queue, seq });
        }
    }

    fn change(&mut self, writer: &mut Writer, level: Level) {
        let entry = self.rng.usize(..self.state.entries.len().max(1));
        let (state, keep_message) = (self.rng.u32(..), self.rng.bool());
        if let Some((queue, seq)) = self.state.entries.keys().nth(entry).copied() {
            self.gather(writer, level, &Action::State { queue, seq, state, keep_message });
        }
    }

    fn drop_queue(&mut self, journal: &Journal, writer: &mut Writer, level: Level) {
        let queue = self.queue(journal);
        self.queues.retain(|known| *known != queue);
        self.gather(writer, level, &Action::Drop(queue));
    }

    /// A queue, one of its keys, and a version: the newest, or an older one that arrives late.
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

    fn put(&mut self, journal: &Journal, writer: &mut Writer, level: Level) {
        let (queue, key, version) = self.key(journal);
        let message = self.rng.bool().then(|| self.new_message(journal, writer, level));
        let bytes = Some(vec![self.rng.u8(..); self.rng.usize(..40)]);
        let value = Value { version, bytes, message };
        self.gather(writer, level, &Action::Put { queue, key, value });
    }

    fn delete(&mut self, journal: &Journal, writer: &mut Writer, level: Level) {
        let (queue, key, version) = self.key(journal);
        self.gather(writer, level, &Action::Delete { queue, key, version });
    }

    /// Checks a reopened journal: it must show the state at its newest commit, which is not older
    /// than `safe`. Later commits are then forgotten here, too.
    pub(crate) fn check(&mut self, journal: &Journal, recovered: &mut Recovered, safe: CommitSeq) {
        let newest = journal.committed();
        assert!(newest >= safe, "the log ends with {newest:?}, {safe:?} was safe");
        let report = recovered.report().clone();
        assert!(report.damage.is_empty() && report.unresolved == 0, "{report:?}");
        assert_eq!(report.foreign, [], "one process at a time, whatever failed");
        let mut shown = Shown::new(body);
        recovered.visit(&mut shown).unwrap();
        let (_, state) = self.after.range(..=newest).next_back().unwrap();
        state.check(&shown);
        // With a single writer the set of served queues is certain.
        assert_eq!(shown.opens, state.opens, "after {newest:?}");
        self.state = state.clone();
        self.after.retain(|commit, _| *commit <= newest);
        self.asked.retain(|commit| *commit <= newest);
        // Identifiers lost with the tail may be assigned again.
        let messages = self.state.messages();
        self.newest_message = messages.last().map_or(0, |id| id.get());
        let queues = queues(&self.state);
        self.newest_queue = queues.last().map_or(0, |queue| queue.get());
        self.queues = queues.into_iter().collect();
        let ids: Vec<MessageId> = messages.into_iter().collect();
        for (id, read) in journal.read(&ids) {
            assert_eq!(read.unwrap_or_else(|e| panic!("{id:?}: {e}"))[..], body(id)[..]);
        }
    }
}

/// All queues with live records.
fn queues(state: &State) -> BTreeSet<QueueId> {
    let entries = state.entries.keys().map(|(queue, _)| *queue);
    let live = state.keys.iter().filter(|(_, value)| value.bytes.is_some());
    let queues = entries.chain(live.map(|((queue, _), _)| *queue));
    queues.filter(|queue| *queue != QueueId::COMMON).collect()
}
