//! Random records of several writers, kills and power cuts, each run drawn from a seed.
//!
//! `TACHO_JOURNAL_SEEDS` sets how many runs, `TACHO_JOURNAL_SEED` the only one.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use tacho_journal::sim::{self, Disk, Faults};
use tacho_journal::{Level, MessageId, ReadError};

use super::Bench;
use super::model::{Model, Op, Seen};

const SEEDS: u64 = 300;
const COMMON: u64 = 0;

#[test]
fn the_live_state_matches_the_model_after_any_fault() {
    let mut moved = 0;
    for seed in sim::seeds(SEEDS) {
        let done = std::panic::catch_unwind(|| Run::new(seed).run());
        match done {
            Ok(relocated) => moved += relocated,
            Err(_) => panic!("run again with TACHO_JOURNAL_SEED={seed}"),
        }
    }
    assert!(moved > 0, "no record was ever relocated");
}

struct Queue {
    id: u64,
    writer: usize,
    next_seq: u64,
}

struct Run {
    rng: Rng,
    bench: Bench,
    queues: Vec<Queue>,
    /// The live state at opening, and the records appended since.
    base: Model,
    appended: Vec<(u64, Op)>,
    /// The state with all appended records.
    expected: Model,
    /// The commits with a sync request.
    synced: BTreeSet<u64>,
    /// Messages without a reference so far.
    fresh: Vec<u64>,
    /// Delayed records of any writer.
    late: Vec<(usize, Op)>,
    bodies: BTreeMap<u64, Vec<u8>>,
    /// The disk fails intermittently, or is full.
    trouble: bool,
    next_version: u64,
    next_meta: u64,
    relocated: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let writers = rng.usize(1..=4);
        let bench = Bench::open(Disk::new(rng.u64(..)), writers);
        Self {
            rng,
            bench,
            queues: Vec::new(),
            base: Model::default(),
            appended: Vec::new(),
            expected: Model::default(),
            synced: BTreeSet::new(),
            fresh: Vec::new(),
            late: Vec::new(),
            bodies: BTreeMap::new(),
            trouble: false,
            next_version: 1,
            next_meta: 0,
            relocated: 0,
        }
    }

    fn run(mut self) -> u64 {
        for _ in 0..self.rng.usize(1..5) {
            for _ in 0..self.rng.usize(10..250) {
                self.live();
            }
            self.die();
        }
        self.end();
        self.relocated + self.bench.journal.stats().relocated_records.get()
    }

    fn live(&mut self) {
        match self.rng.u8(..100) {
            0..30 => self.publish(),
            30..34 => self.bare_message(),
            34..40 => self.another_entry(),
            40..48 => self.change_state(),
            48..68 => (0..self.rng.usize(1..6)).for_each(|_| self.remove()),
            68..76 => self.put(),
            76..80 => self.delete(),
            80..82 => self.drop_queue(),
            82..86 => self.finish(),
            86..88 => self.open_again(),
            _ => self.bench.steps(self.rng.usize(1..4)),
        }
        if self.rng.bool()
            && let Some((writer, op)) = self.late.pop()
        {
            self.append(writer, op);
        }
        match self.rng.u8(..200) {
            0..5 => self.read_some(),
            5..8 => self.change_faults(),
            8..10 => self.change_capacity(),
            _ => {}
        }
    }

    fn change_faults(&mut self) {
        let mut faults = Faults::default();
        if self.rng.bool() {
            faults = Faults::drawn(&mut self.rng, 0.2);
            self.trouble = true;
        }
        self.bench.disk.set_faults(faults);
    }

    fn change_capacity(&mut self) {
        let used = self.bench.disk.used_bytes();
        let capacity = self.rng.bool().then(|| used + self.rng.u64(..200_000));
        self.trouble |= capacity.is_some();
        self.bench.disk.set_capacity(capacity);
    }

    fn append(&mut self, writer: usize, op: Op) {
        let level = if self.rng.bool() { Level::Fsynced } else { Level::Written };
        let commit = op.append(&mut self.bench.writers[writer], level).get();
        if level == Level::Fsynced {
            self.synced.insert(commit);
        }
        self.expected.apply(&op);
        self.appended.push((commit, op));
    }

    fn any_writer(&mut self) -> usize {
        self.rng.usize(..self.bench.writers.len())
    }

    fn meta(&mut self) -> Vec<u8> {
        self.next_meta += 1;
        self.next_meta.to_string().into_bytes()
    }

    fn new_message(&mut self, writer: usize) -> u64 {
        let id = self.bench.journal.new_message_id().get();
        let len = if self.rng.u8(..20) == 0 { 20_000 } else { 2_000 };
        let body = vec![id as u8; self.rng.usize(..len)];
        assert_eq!(self.bodies.insert(id, body.clone()), None, "the identifier was used before");
        self.append(writer, Op::Message { id, body });
        id
    }

    fn queue(&mut self) -> usize {
        if self.queues.len() < 2 || self.queues.len() < 8 && self.rng.u8(..8) == 0 {
            let id = self.bench.journal.new_queue_id().get();
            assert!(
                self.queues.iter().all(|queue| queue.id < id),
                "the identifier was used before"
            );
            let writer = self.any_writer();
            self.queues.push(Queue { id, writer, next_seq: 1 });
        }
        self.rng.usize(..self.queues.len())
    }

    fn entry(&mut self, message: u64) {
        let at = self.queue();
        let meta = self.meta();
        let queue = &mut self.queues[at];
        let (writer, state) = (queue.writer, self.rng.u32(..));
        let op = Op::Entry { queue: queue.id, seq: queue.next_seq, message, state, meta };
        queue.next_seq += 1;
        self.append(writer, op);
    }

    fn publish(&mut self) {
        let writer = self.any_writer();
        let message = self.new_message(writer);
        let opened = self.rng.u8(..3) == 0;
        if opened {
            let meta = self.meta();
            self.append(writer, Op::Open { message, meta });
        }
        for _ in 0..self.rng.usize(1..4) {
            self.entry(message);
        }
        if self.rng.u8(..30) == 0 {
            // From another shard that did not know that the message is written already.
            let (writer, body) = (self.any_writer(), self.bodies[&message].clone());
            self.append(writer, Op::Message { id: message, body });
        }
        if opened && self.rng.bool() {
            let writer = self.any_writer();
            self.append(writer, Op::Done { message });
        }
    }

    fn bare_message(&mut self) {
        match self.fresh.pop() {
            Some(message) => self.entry(message),
            None => {
                let writer = self.any_writer();
                let message = self.new_message(writer);
                self.fresh.push(message);
            }
        }
    }

    fn known_message(&mut self) -> Option<u64> {
        let messages: Vec<_> = self.expected.messages().into_iter().collect();
        (!messages.is_empty()).then(|| messages[self.rng.usize(..messages.len())])
    }

    fn another_entry(&mut self) {
        if let Some(message) = self.known_message() {
            self.entry(message);
        }
    }

    fn open_again(&mut self) {
        if self.trouble {
            return;
        }
        if let Some(message) = self.known_message() {
            let (writer, meta) = (self.any_writer(), self.meta());
            // Records of different writers in one frame have no order.
            self.bench.committer.step();
            self.append(writer, Op::Open { message, meta });
            self.bench.committer.step();
        }
    }

    fn any_entry(&mut self) -> Option<(usize, u64, u64)> {
        let count = self.expected.entries.len();
        if count == 0 {
            return None;
        }
        let at = self.rng.usize(..count);
        let (queue, seq) = self.expected.entries.keys().nth(at).copied()?;
        let writer = self.queues.iter().find(|known| known.id == queue)?.writer;
        Some((writer, queue, seq))
    }

    fn change_state(&mut self) {
        if let Some((writer, queue, seq)) = self.any_entry() {
            let (state, keep_message) = (self.rng.u32(..), self.rng.bool());
            self.append(writer, Op::State { queue, seq, state, keep_message });
        }
    }

    fn remove(&mut self) {
        if let Some((writer, queue, seq)) = self.any_entry() {
            self.append(writer, Op::Remove { queue, seq });
        }
    }

    /// A key of a queue, changed by its writer only, or a common key with its next version.
    fn any_key(&mut self) -> (usize, u64, Vec<u8>, u64) {
        let key = self.rng.u8(..20).to_string().into_bytes();
        if self.rng.bool() {
            let at = self.queue();
            let queue = &self.queues[at];
            return (queue.writer, queue.id, key, 0);
        }
        self.next_version += 1;
        (self.any_writer(), COMMON, key, self.next_version)
    }

    fn put(&mut self) {
        let (writer, queue, key, version) = self.any_key();
        let message = self.rng.bool().then(|| self.new_message(writer));
        let value = self.meta();
        let op = Op::Put { queue, key, version, value, message };
        self.append_perhaps_later(writer, op);
    }

    fn delete(&mut self) {
        let (writer, queue, key, version) = self.any_key();
        self.append_perhaps_later(writer, Op::Delete { queue, key, version });
    }

    fn append_perhaps_later(&mut self, writer: usize, op: Op) {
        let is_common =
            matches!(op, Op::Put { queue, .. } | Op::Delete { queue, .. } if queue == 0);
        if is_common && self.rng.u8(..4) == 0 {
            self.late.push((writer, op));
        } else {
            self.append(writer, op);
        }
    }

    fn drop_queue(&mut self) {
        if self.queues.len() > 2 {
            let at = self.rng.usize(..self.queues.len() - 1);
            let queue = self.queues.remove(at);
            self.append(queue.writer, Op::DropQueue { queue: queue.id });
        }
    }

    fn finish(&mut self) {
        let open: Vec<_> = self.expected.opens.keys().copied().collect();
        if !open.is_empty() {
            let message = open[self.rng.usize(..open.len())];
            let writer = self.any_writer();
            self.append(writer, Op::Done { message });
        }
    }

    /// Committed referenced messages are readable; uncommitted ones are not there yet.
    fn read_some(&mut self) {
        let committed = self.bench.journal.committed().get();
        let needed = self.at(committed).messages();
        let written = |id: &u64| {
            !self.appended.iter().any(|(commit, op)| {
                *commit > committed && matches!(op, Op::Message { id: other, .. } if other == id)
            })
        };
        let (there, not_yet): (Vec<_>, Vec<_>) =
            self.bodies.keys().rev().take(60).partition(|id| written(id));
        let ids = |numbers: Vec<&u64>| -> Vec<_> {
            numbers.into_iter().filter_map(|id| MessageId::new(*id)).collect()
        };
        for (id, body) in self.bench.journal.read(&ids(there)) {
            match body {
                Ok(body) => assert_eq!(&*body, &self.bodies[&id.get()][..], "message {id:?}"),
                Err(error) => assert!(!needed.contains(&id.get()), "message {id:?}: {error}"),
            }
        }
        for (id, body) in self.bench.journal.read(&ids(not_yet)) {
            let again = self.appended.iter().any(|(commit, op)| {
                let same = matches!(op, Op::Message { id: other, .. } if *other == id.get());
                same && *commit <= committed
            });
            assert!(again || matches!(body, Err(ReadError::NotYet)), "message {id:?}: {body:?}");
        }
    }

    fn at(&self, commit: u64) -> Model {
        let mut model = self.base.clone();
        let until = self.appended.iter().take_while(|(at, _)| *at <= commit);
        until.for_each(|(_, op)| model.apply(op));
        model
    }

    fn die(&mut self) {
        self.bench.disk.set_faults(Faults::default());
        self.bench.disk.set_capacity(None);
        self.trouble = false;
        let committed = self.bench.journal.committed().get();
        self.relocated += self.bench.journal.stats().relocated_records.get();
        let (disk, at_least) = if self.rng.bool() {
            (
                self.bench.disk.power_cut(),
                self.synced.range(..=committed).last().copied().unwrap_or(0),
            )
        } else {
            (self.bench.disk.kill(), committed)
        };
        let at_most =
            self.appended.last().map_or(committed, |(commit, _)| (*commit).max(committed));
        let writers = self.rng.usize(1..=4);
        self.bench = Bench::open(disk, writers);
        let report = self.bench.recovered.report();
        assert_eq!((&report.damage[..], report.unresolved), (&[][..], 0));
        let last = self.bench.journal.committed().get();
        // Frames of relocated records count in addition to the appended ones.
        assert!(last >= at_least, "the log ends with {last}, {at_least} was reported complete");
        let model = self.at(last);
        assert!(last <= at_most + self.relocated, "{last} was never written");
        let seen = self.bench.seen();
        seen.check(&model, &self.bodies);
        self.check_bodies(&model, &seen);
        self.begin_again(model, last);
    }

    fn check_bodies(&self, model: &Model, seen: &Seen) {
        let needed = model.messages();
        let ids: Vec<_> = self.bodies.keys().filter_map(|id| MessageId::new(*id)).collect();
        for (id, body) in self.bench.journal.read(&ids) {
            let number = id.get();
            match body {
                Ok(body) => assert_eq!(&*body, &self.bodies[&number][..], "message {number}"),
                Err(ReadError::Gone) => assert!(!needed.contains(&number), "message {number}"),
                Err(error) => panic!("message {number}: {error}"),
            }
        }
        assert!(seen.bodies.keys().all(|id| needed.contains(id)));
    }

    fn begin_again(&mut self, model: Model, last: u64) {
        let writers = self.bench.writers.len();
        let known: BTreeSet<_> = model.entries.keys().map(|(queue, _)| *queue).collect();
        self.queues.retain(|queue| known.contains(&queue.id));
        self.queues.iter_mut().for_each(|queue| queue.writer %= writers);
        self.synced = BTreeSet::from([last]);
        self.base = model.clone();
        self.expected = model;
        self.appended.clear();
        self.fresh.clear();
        self.late.clear();
        // Identifiers assigned without a record may be assigned again.
        self.bodies.retain(|id, _| self.expected.messages().contains(id));
    }

    /// Removes everything and asserts that no record is live.
    fn end(&mut self) {
        let model = self.expected.clone();
        for (message, (times, _)) in &model.opens {
            (0..*times).for_each(|_| self.append(0, Op::Done { message: *message }));
        }
        let queues: BTreeSet<_> = model.entries.keys().map(|(queue, _)| *queue).collect();
        let of_keys = model.keys.keys().map(|(queue, _)| *queue);
        for queue in queues.into_iter().chain(of_keys).collect::<BTreeSet<_>>() {
            self.append(0, Op::DropQueue { queue });
        }
        self.bench.settle();
        let stats = self.bench.journal.stats();
        let live = [&stats.live_messages, &stats.live_entries, &stats.live_keys, &stats.live_bytes];
        assert_eq!(live.map(tacho_journal::Counter::get), [0; 4]);
    }
}
