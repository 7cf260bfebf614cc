//! Process lifetimes of a journal: random records, commits, faults, and how each ends.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use tacho_journal::sim::{Disk, Faults};
use tacho_journal::{
    CommitSeq, Committer, Inspection, Journal, Level, MessageId, Opened, Options, QueueId,
    ReadError, Step, Urgency, Writer,
};
use tacho_testkit::journal::{Action, Entry, Shown, State, Value};

use crate::body;

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) moved: u64,
    pub(crate) freed: u64,
    /// Comparisons of backups.
    pub(crate) backups: u64,
    pub(crate) failed_backups: u64,
}

/// A run of several lifetimes.
pub(crate) struct Run {
    rng: Rng,
    disk: Disk,
    options: Options,
    /// The state after all appended records.
    newest: State,
    /// The state after the newest commit that must survive a power cut.
    certain: State,
    /// Queues that have or had an entry of a message, by these records.
    had: BTreeMap<MessageId, BTreeSet<QueueId>>,
    /// The later records, with their commits.
    open: Vec<(CommitSeq, Action)>,
    /// Messages that are or may be in the log.
    used: BTreeSet<MessageId>,
    /// Queues and their owning writers.
    queues: BTreeMap<QueueId, usize>,
    /// Commit and writer of each opening. One per message, as an end does not name its opening.
    opened: BTreeMap<MessageId, (CommitSeq, usize)>,
    version: u64,
    seq: u64,
    /// The newest commit that must survive a power cut, and all commits with a sync request.
    safe: CommitSeq,
    to_be_safe: Vec<CommitSeq>,
    /// Backups, and what is in them.
    backups: Vec<(Disk, State)>,
    counts: Counts,
}

struct Life {
    journal: Journal,
    committer: Committer,
    writers: Vec<Writer>,
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let options = Options {
            segment_bytes: 64 << 10,
            first_segment_bytes: 8 << 10 << rng.u32(..4),
            log_bytes_min: if rng.bool() { 0 } else { 256 << 10 },
            ..Options::default()
        };
        Self {
            disk: Disk::new(rng.u64(..)),
            rng,
            options,
            newest: State::default(),
            certain: State::default(),
            had: BTreeMap::new(),
            open: Vec::new(),
            used: BTreeSet::new(),
            queues: BTreeMap::new(),
            opened: BTreeMap::new(),
            version: 10,
            seq: 0,
            safe: CommitSeq::DONE,
            to_be_safe: Vec::new(),
            backups: Vec::new(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn run(mut self) -> Counts {
        for _ in 0..self.rng.usize(1..6) {
            let mut life = self.open();
            for _ in 0..self.rng.usize(..150) {
                self.act(&mut life);
            }
            self.die(life);
        }
        self.open();
        self.check_backups(usize::MAX);
        self.counts
    }

    /// Opens the journal and compares its state with the model.
    fn open(&mut self) -> Life {
        let opened = Journal::open_on(self.disk.clone(), self.options.clone());
        let Opened { journal, committer, mut recovered } = opened.expect("opened");
        let report = recovered.report();
        assert!(report.damage.is_empty(), "{report:?}");
        assert_eq!(report.unresolved, 0);
        let last = journal.committed();
        assert!(last >= self.safe, "the log ends with {last:?}, {:?} had to survive", self.safe);
        self.must_survive(last);
        self.open.clear();
        self.to_be_safe.clear();
        let mut shown = Shown::new(body);
        recovered.visit(&mut shown).expect("visited");
        self.certain.check(&shown);
        for (message, shown) in &shown.opens {
            let had = self.had.get(message);
            let mut others = shown.served.difference(&self.certain.opens[message].served);
            assert!(others.all(|queue| had.is_some_and(|had| had.contains(queue))), "{shown:?}");
        }
        self.newest = self.certain.clone();
        self.used = self.certain.messages();
        self.opened.retain(|message, _| self.used.contains(message));
        let count = self.rng.usize(1..=4);
        let writers = (0..count).map(|_| journal.writer()).collect();
        // Messages without a record in the log are forgotten.
        let keys = self.newest.keys.keys().map(|(queue, _)| *queue);
        let entries = self.newest.entries.keys().map(|(queue, _)| *queue);
        let queues: BTreeSet<_> =
            keys.chain(entries).filter(|queue| *queue != QueueId::COMMON).collect();
        self.queues = queues.into_iter().map(|queue| (queue, self.rng.usize(..count))).collect();
        Life { journal, committer, writers }
    }

    /// Cuts the power or kills the process.
    fn die(&mut self, life: Life) {
        self.counts.moved += life.journal.stats().relocated_records.get();
        self.counts.freed += life.journal.stats().freed_segments.get();
        let committed = life.journal.committed();
        self.disk.set_faults(Faults::default());
        self.disk.set_capacity(None);
        if self.rng.bool() {
            self.disk = self.disk.power_cut();
        } else {
            self.must_survive(committed);
            self.disk = self.disk.kill();
        }
    }

    fn act(&mut self, life: &mut Life) {
        match self.rng.u8(..40) {
            0 => self.change_faults(),
            1 => self.change_capacity(),
            2 => self.read(life),
            3 if self.rng.bool() => self.back_up(life),
            3..18 => self.step(life),
            _ => self.append(life),
        }
    }

    fn step(&mut self, life: &mut Life) {
        if let Step::Committed(commit) = life.committer.step() {
            assert_eq!(commit, life.journal.committed());
            let safe = self.to_be_safe.iter().copied().filter(|safe| *safe <= commit).max();
            self.must_survive(safe.unwrap_or(CommitSeq::DONE));
        }
    }

    /// This commit must survive any failure.
    fn must_survive(&mut self, commit: CommitSeq) {
        self.safe = self.safe.max(commit);
        let open = std::mem::take(&mut self.open);
        let (certain, open): (Vec<_>, _) = open.into_iter().partition(|(of, _)| *of <= commit);
        self.open = open;
        for (_, action) in &certain {
            self.certain.apply(action);
            if let Action::Entry { queue, entry: Entry { message: Some(message), .. }, .. } = action
            {
                self.had.entry(*message).or_default().insert(*queue);
            }
        }
    }

    /// A backup has the state after the last complete commit, and is not changed by what follows.
    fn back_up(&mut self, life: &Life) {
        let copy = Disk::new(self.rng.u64(..));
        let Ok(backup) = life.journal.back_up_to(&copy) else {
            self.counts.failed_backups += 1;
            return;
        };
        assert_eq!(backup.commit, life.journal.committed());
        self.backups.push((copy, self.complete(life)));
        self.check_backups(1);
    }

    /// Compares the newest backups with what they must have.
    fn check_backups(&mut self, newest: usize) {
        for (copy, state) in self.backups.iter().rev().take(newest) {
            let inspection = Inspection::open_on(copy).expect("opened");
            assert_eq!((inspection.check(), &inspection.report().torn), (vec![], &None));
            let mut shown = Shown::new(body);
            inspection.visit(&mut shown).expect("visited");
            state.check(&shown);
            self.counts.backups += 1;
        }
    }

    /// The state after the last complete commit.
    fn complete(&self, life: &Life) -> State {
        let mut complete = self.certain.clone();
        let committed = life.journal.committed();
        let open = self.open.iter().filter(|(of, _)| *of <= committed);
        open.for_each(|(_, action)| complete.apply(action));
        complete
    }

    /// Live messages are readable once committed.
    fn read(&mut self, life: &Life) {
        let newest = self.newest.messages();
        let complete = self.complete(life).messages();
        let Some(id) = self.choose(&newest) else { return };
        let mut bodies = life.journal.read(&[id]);
        match bodies.pop() {
            Some((of, Ok(read))) => {
                assert_eq!(of, id);
                assert!(*read == body(id)[..], "another body");
            }
            Some((_, Err(error))) => {
                assert!(!complete.contains(&id), "{error}");
                assert!(matches!(error, ReadError::NotYet), "{error}");
            }
            None => panic!("one answer per message"),
        }
    }

    fn choose(&mut self, ids: &BTreeSet<MessageId>) -> Option<MessageId> {
        let count = ids.len();
        (count > 0).then(|| ids.iter().copied().nth(self.rng.usize(..count))).flatten()
    }

    fn append(&mut self, life: &mut Life) {
        let writer = self.rng.usize(..life.writers.len());
        match self.rng.u8(..20) {
            0..7 => self.enqueue(life, writer),
            7..10 => self.change_entry(life, writer),
            10..14 => self.remove_entry(life, writer),
            14..17 => self.change_key(life, writer),
            17 => self.change_common(life, writer),
            18 => self.open_or_end(life, writer),
            _ if self.rng.u8(..4) == 0 => {
                if let Some(queue) = self.queue_of(writer) {
                    self.record(life, writer, Action::Drop(queue));
                    self.queues.remove(&queue);
                }
            }
            _ => {}
        }
    }

    /// Entries of a message in some queues, of this writer or others.
    fn enqueue(&mut self, life: &mut Life, writer: usize) {
        let message = self.a_message(life, writer);
        let open = self.rng.u8(..5) == 0 && !self.opened.contains_key(&message);
        if open {
            let meta = self.bytes(20);
            self.record(life, writer, Action::Open { message, meta });
        }
        for _ in 0..self.rng.usize(1..4) {
            if self.rng.u8(..4) == 0 {
                self.queues.insert(life.journal.new_queue_id(), writer);
            }
            let count = self.queues.len().max(1);
            let chosen = self.queues.iter().nth(self.rng.usize(..count));
            let Some((queue, owner)) = chosen.map(|(queue, owner)| (*queue, *owner)) else {
                continue;
            };
            self.seq += 1;
            let entry =
                Entry { message: Some(message), state: self.rng.u32(..), meta: self.bytes(30) };
            self.record(life, owner, Action::Entry { queue, seq: self.seq, entry, counts: true });
        }
        if open && self.rng.bool() {
            // The writer that opened a message also ends it.
            self.record(life, writer, Action::Done(message));
        }
    }

    fn change_entry(&mut self, life: &mut Life, writer: usize) {
        if let Some((queue, seq)) = self.entry_of(writer) {
            let (state, keep_message) = (self.rng.u32(..), self.rng.u8(..3) > 0);
            self.record(life, writer, Action::State { queue, seq, state, keep_message });
        }
    }

    fn remove_entry(&mut self, life: &mut Life, writer: usize) {
        for _ in 0..self.rng.usize(1..5) {
            if let Some((queue, seq)) = self.entry_of(writer) {
                self.record(life, writer, Action::Remove { queue, seq });
            }
        }
    }

    /// Keys of a queue have no versions: the order of its owner's records counts.
    fn change_key(&mut self, life: &mut Life, writer: usize) {
        let Some(queue) = self.queue_of(writer) else { return };
        let key = vec![self.rng.u8(..6)];
        let action = if self.rng.u8(..3) == 0 {
            Action::Delete { queue, key, version: 0 }
        } else {
            let message = (self.rng.u8(..3) == 0).then(|| self.a_message(life, writer));
            let value = Value { version: 0, bytes: Some(self.bytes(100)), message };
            Action::Put { queue, key, value }
        };
        self.record(life, writer, action);
    }

    /// Common keys have versions, which may arrive in any order.
    fn change_common(&mut self, life: &mut Life, writer: usize) {
        self.version += 1;
        let late = if self.rng.u8(..4) == 0 { self.rng.u64(..5) } else { 0 };
        // Five numbers per writer, so that versions never collide.
        let version = (self.version - late) * 5 + late;
        let (queue, key) = (QueueId::COMMON, vec![self.rng.u8(..6)]);
        let action = if self.rng.u8(..3) == 0 {
            Action::Delete { queue, key, version }
        } else {
            let message = self.rng.bool().then(|| self.a_message(life, writer));
            let value = Value { version, bytes: Some(self.bytes(100)), message };
            Action::Put { queue, key, value }
        };
        self.record(life, writer, action);
    }

    fn open_or_end(&mut self, life: &mut Life, writer: usize) {
        let opens: BTreeSet<_> = self.newest.opens.keys().copied().collect();
        // Within one commit an end must not precede the opening by another writer.
        let mut both = self.complete(life).opens;
        both.retain(|message, _| opens.contains(message));
        let both = both.into_keys().collect();
        if let Some(message) = self.choose(&both) {
            self.record(life, writer, Action::Done(message));
        }
    }

    /// A new message, or a referenced one.
    fn a_message(&mut self, life: &mut Life, writer: usize) -> MessageId {
        if self.rng.u8(..3) == 0 {
            let known = self.newest.messages();
            if let Some(id) = self.choose(&known) {
                return id;
            }
        }
        let id = life.journal.new_message_id();
        assert!(self.used.insert(id), "{id:?} was used before");
        self.record(life, writer, Action::Message(id));
        id
    }

    fn queue_of(&mut self, writer: usize) -> Option<QueueId> {
        let own: Vec<_> = self.queues.iter().filter(|(_, owner)| **owner == writer).collect();
        self.rng.choice(own).map(|(queue, _)| *queue)
    }

    fn entry_of(&mut self, writer: usize) -> Option<(QueueId, u64)> {
        let queue = self.queue_of(writer)?;
        let own: Vec<_> = self.newest.entries.range((queue, 0)..=(queue, u64::MAX)).collect();
        self.rng.choice(own).map(|(key, _)| *key)
    }

    fn bytes(&mut self, max: usize) -> Vec<u8> {
        let len = self.rng.usize(..max);
        (0..len).map(|_| self.rng.u8(..)).collect()
    }

    fn record(&mut self, life: &mut Life, owner: usize, mut action: Action) {
        let level = if self.rng.u8(..3) == 0 { Level::Written } else { Level::Fsynced };
        let writer = &mut life.writers[owner];
        let commit =
            action.with_record(body, |record| writer.append(record, level, Urgency::Forces));
        if level == Level::Fsynced {
            self.to_be_safe.push(commit);
        }
        match &mut action {
            Action::Open { message, .. } => {
                self.opened.insert(*message, (commit, owner));
            }
            Action::Entry { entry, counts, .. } => {
                // Within one commit only the order of each writer is known.
                let opened = entry.message.and_then(|message| self.opened.get(&message));
                *counts = opened.is_none_or(|(at, by)| *at < commit || *by == owner);
            }
            _ => {}
        }
        self.newest.apply(&action);
        self.open.push((commit, action));
    }

    fn change_faults(&mut self) {
        let mut faults = Faults::default();
        if self.rng.bool() {
            faults = Faults::drawn(&mut self.rng, 0.3);
        }
        self.disk.set_faults(faults);
    }

    fn change_capacity(&mut self) {
        let used = self.disk.used_bytes();
        let capacity = self.rng.bool().then(|| used + self.rng.u64(..300_000));
        self.disk.set_capacity(capacity);
    }
}
