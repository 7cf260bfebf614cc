//! A journal in memory: records in their order, delayed commits, and the state after a crash.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tacho_codec::{PacketId, QoS};
use tacho_session::server::{ExchangeStage, Restored, RestoredExchange};
use tacho_session::{BatchSeq, Delivery, Payload, Persist, Record};

use crate::ledger::Msg;
use tacho_testkit::rng::Rng;

/// A message as the server keeps it; if it is not loaded, only its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) msg: Msg,
    pub(crate) loaded: bool,
}

impl Payload for Kept {
    fn is_loaded(&self) -> bool {
        self.loaded
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Sent,
    Released,
    InboundReceived,
    InboundReleased,
}

/// A stored record.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// An incoming message was stored.
    Routed(Msg, QoS),
    Enqueued(u64, Delivery<Kept>),
    Sent {
        seq: u64,
        packet_id: PacketId,
        delivery: Delivery<Kept>,
        from_queue: bool,
    },
    Released(u64, PacketId),
    Acked(u64, PacketId),
    /// Left the queue: expired or dispatched.
    Left(u64),
    Removed(u64),
    InboundReceived(PacketId),
    InboundReleased(PacketId),
    /// A new session begins.
    Forgotten,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Queued,
    Sent(PacketId),
    Released(PacketId),
}

/// The state of the session according to the records.
#[derive(Clone, Default)]
pub(crate) struct State {
    entries: BTreeMap<u64, (Stage, Delivery<Kept>)>,
    inbound: BTreeSet<PacketId>,
    exists: bool,
}

impl State {
    /// Applies a record; fails if it does not fit those before it.
    fn apply(&mut self, op: &Op) {
        match op {
            Op::Routed(..) => {}
            Op::Enqueued(seq, delivery) => self.insert(*seq, Stage::Queued, delivery),
            Op::Sent { seq, packet_id, delivery, from_queue } => {
                assert!(delivery.qos != QoS::AtMostOnce);
                assert!(!self.exchanges().any(|(_, id, ..)| id == *packet_id), "{op:?}: in use");
                let head = self.queued().map(|(seq, _)| seq).next();
                assert_eq!(head, from_queue.then_some(*seq), "{op:?}: not the head of the queue");
                if *from_queue {
                    self.entries.remove(seq);
                }
                self.entries.insert(*seq, (Stage::Sent(*packet_id), delivery.clone()));
            }
            Op::Released(seq, packet_id) => {
                let entry = self.entries.get_mut(seq).expect("an entry is released");
                assert_eq!((entry.0, entry.1.qos), (Stage::Sent(*packet_id), QoS::ExactlyOnce));
                entry.0 = Stage::Released(*packet_id);
            }
            Op::Acked(seq, packet_id) => {
                let (stage, _) = self.entries.remove(seq).expect("an entry ends once");
                let was_open = [Stage::Sent(*packet_id), Stage::Released(*packet_id)];
                assert!(was_open.contains(&stage), "{op:?} ends {stage:?}");
            }
            Op::Left(seq) => {
                let (stage, _) = self.entries.remove(seq).expect("an entry ends once");
                assert_eq!(stage, Stage::Queued);
            }
            Op::Removed(seq) => assert!(self.entries.remove(seq).is_some(), "an entry ends once"),
            Op::InboundReceived(id) => assert!(self.inbound.insert(*id), "{op:?} twice"),
            Op::InboundReleased(id) => assert!(self.inbound.remove(id), "{op:?} twice"),
            Op::Forgotten => *self = Self { exists: true, ..Self::default() },
        }
    }

    fn insert(&mut self, seq: u64, stage: Stage, delivery: &Delivery<Kept>) {
        let last = self.entries.last_key_value().map_or(0, |(seq, _)| *seq);
        assert!(seq > last, "{seq} comes after {last}");
        self.entries.insert(seq, (stage, delivery.clone()));
    }

    fn queued(&self) -> impl Iterator<Item = (u64, &Delivery<Kept>)> {
        let queued = self.entries.iter().filter(|(_, (stage, _))| *stage == Stage::Queued);
        queued.map(|(seq, (_, delivery))| (*seq, delivery))
    }

    /// Number, identifier, whether it is released, and message.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = (u64, PacketId, bool, &Delivery<Kept>)> {
        self.entries.iter().filter_map(|(seq, (stage, delivery))| match stage {
            Stage::Queued => None,
            Stage::Sent(packet_id) => Some((*seq, *packet_id, false, delivery)),
            Stage::Released(packet_id) => Some((*seq, *packet_id, true, delivery)),
        })
    }

    /// The number of messages that are not over and of identifiers that are not free.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.inbound.len()
    }

    pub(crate) fn queued_len(&self) -> usize {
        self.queued().count()
    }

    /// Whether this message waits and was not sent.
    pub(crate) fn is_queued(&self, seq: u64) -> bool {
        self.queued().any(|(queued, _)| queued == seq)
    }

    pub(crate) fn has_inbound(&self, packet_id: PacketId) -> bool {
        self.inbound.contains(&packet_id)
    }

    pub(crate) const fn exists(&self) -> bool {
        self.exists
    }

    /// The state that a restart finds, unordered; no message is in memory.
    pub(crate) fn restored(&self, now_ns: u64, rng: &mut Rng) -> Restored<Kept> {
        let stored = |delivery: &Delivery<Kept>| {
            let message = Kept { loaded: false, ..delivery.message };
            Delivery { message, ..delivery.clone() }
        };
        let exchange = |(seq, packet_id, released, delivery): (_, _, _, &Delivery<Kept>)| {
            let stage = if released { ExchangeStage::Released } else { ExchangeStage::Sent };
            let delivery = (!released).then(|| stored(delivery));
            RestoredExchange { seq, packet_id, stage, delivery }
        };
        let mut exchanges: Vec<_> = self.exchanges().map(exchange).collect();
        let mut queued: Vec<_> = self.queued().map(|(seq, d)| (seq, stored(d))).collect();
        shuffle(&mut exchanges, rng);
        shuffle(&mut queued, rng);
        Restored {
            now_ns,
            expiry_s: u32::MAX,
            ends_at_ns: None,
            will: None,
            will_at_ns: None,
            next_seq: self.entries.last_key_value().map_or(1, |(seq, _)| seq + 1),
            exchanges,
            queued,
            inbound: self.inbound.iter().copied().collect(),
        }
    }
}

fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for index in (1..items.len()).rev() {
        items.swap(index, rng.below(index as u64 + 1) as usize);
    }
}

#[derive(Default)]
pub(crate) struct Journal {
    /// False: every record is complete at once.
    delayed: bool,
    /// QoS 0 in the queue survives a crash.
    keeps_qos0: bool,
    pub(crate) committed: BatchSeq,
    last: BatchSeq,
    /// Current records survive a crash together or not at all.
    joined: bool,
    /// The state according to all records, committed or not.
    books: Books,
    /// The records since the start or the last crash, and the state before them.
    log: Vec<(BatchSeq, Op)>,
    base: Books,
}

#[derive(Clone, Default)]
struct Books {
    state: State,
    /// The newest record of a kind.
    batches: HashMap<(Kind, PacketId), BatchSeq>,
    /// The batch in which each incoming message was first stored, which its acknowledgement
    /// promises.
    routed: HashMap<u32, BatchSeq>,
    /// All incoming messages that were stored, in their order.
    stored: Vec<(Msg, QoS)>,
}

impl Books {
    fn note(&mut self, batch: BatchSeq, op: &Op) {
        self.state.apply(op);
        let key = match op {
            Op::Routed(msg, qos) => {
                self.routed.entry(msg.id).or_insert(batch);
                self.stored.push((*msg, *qos));
                return;
            }
            Op::Sent { packet_id, .. } => (Kind::Sent, *packet_id),
            Op::Released(_, packet_id) => (Kind::Released, *packet_id),
            Op::InboundReceived(packet_id) => (Kind::InboundReceived, *packet_id),
            Op::InboundReleased(packet_id) => (Kind::InboundReleased, *packet_id),
            _ => return,
        };
        self.batches.insert(key, batch);
    }
}

impl Journal {
    pub(crate) fn new(delayed: bool, keeps_qos0: bool) -> Self {
        Self { delayed, keeps_qos0, ..Self::default() }
    }

    pub(crate) const fn keeps_qos0(&self) -> bool {
        self.keeps_qos0
    }

    /// Records until `part` are committed together.
    pub(crate) fn join(&mut self) {
        self.last = BatchSeq::new(self.last.get() + 1);
        self.joined = true;
    }

    pub(crate) fn part(&mut self) {
        self.joined = false;
    }

    fn append(&mut self, op: Op) -> BatchSeq {
        if !self.joined {
            self.last = BatchSeq::new(self.last.get() + 1);
        }
        self.books.note(self.last, &op);
        self.log.push((self.last, op));
        if self.delayed {
            return self.last;
        }
        self.committed = self.last;
        BatchSeq::DONE
    }

    /// The state of the session according to its records.
    pub(crate) const fn state(&self) -> &State {
        &self.books.state
    }

    /// Stores an inbound message.
    pub(crate) fn route(&mut self, msg: Msg, qos: QoS) -> BatchSeq {
        self.append(Op::Routed(msg, qos))
    }

    /// A new session begins; that is committed before CONNACK.
    pub(crate) fn forget(&mut self) {
        self.append(Op::Forgotten);
        self.commit(0);
    }

    /// Completes all but `keep` of the waiting records.
    pub(crate) fn commit(&mut self, keep: u64) {
        let committed = self.last.get().saturating_sub(keep);
        self.committed = self.committed.max(BatchSeq::new(committed));
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.last.get() - self.committed.get()
    }

    /// Loses the uncommitted records, all of them or from some record on. Returns the lost ones.
    pub(crate) fn crash(&mut self, rng: &mut Rng) -> Vec<Op> {
        let committed = self.log.partition_point(|(batch, _)| *batch <= self.committed);
        let mut kept = committed;
        if rng.percent(50) {
            kept += rng.below((self.log.len() - committed) as u64 + 1) as usize;
            // Not between joined records.
            while kept > committed
                && kept < self.log.len()
                && self.log[kept].0 == self.log[kept - 1].0
            {
                kept += 1;
            }
        }
        let lost = self.log.split_off(kept);
        for (batch, op) in self.log.drain(..) {
            self.base.note(batch, &op);
        }
        if !self.base.state.exists {
            self.base.state = State::default();
        } else if !self.keeps_qos0 {
            self.base.state.entries.retain(|_, (_, d)| d.qos != QoS::AtMostOnce);
        }
        self.books = self.base.clone();
        self.committed = self.last;
        lost.into_iter().map(|(_, op)| op).collect()
    }

    /// The inbound messages that are stored, in their order.
    pub(crate) fn stored(&self) -> impl Iterator<Item = (Msg, QoS)> {
        self.books.stored.iter().copied()
    }

    /// Panics if the record that a packet promises is not committed.
    pub(crate) fn require(&self, kind: Kind, packet_id: PacketId) {
        let batch = self.books.batches.get(&(kind, packet_id)).copied();
        let batch = batch.unwrap_or_else(|| panic!("no record {kind:?} for {packet_id}"));
        assert!(batch <= self.committed, "{kind:?} of {packet_id} left before its commit");
    }

    pub(crate) fn require_if_any(&self, kind: Kind, packet_id: PacketId) {
        if self.books.batches.contains_key(&(kind, packet_id)) {
            self.require(kind, packet_id);
        }
    }

    pub(crate) fn require_routed(&self, id: u32) {
        let batch = self.books.routed.get(&id).expect("an accepted message was routed");
        assert!(*batch <= self.committed, "message {id} was acknowledged before its commit");
    }
}

impl Persist<Kept> for Journal {
    fn persist(&mut self, record: Record<'_, Kept>) -> BatchSeq {
        let mut is_volatile = false;
        let mut look = |delivery: &Delivery<Kept>| is_volatile = delivery.qos == QoS::AtMostOnce;
        let op = match record {
            Record::Enqueued { seq, delivery } => {
                look(delivery);
                Op::Enqueued(seq, delivery.clone())
            }
            Record::Sent { seq, packet_id, delivery, from_queue } => {
                Op::Sent { seq, packet_id, delivery: delivery.clone(), from_queue }
            }
            Record::Released { seq, packet_id } => Op::Released(seq, packet_id),
            Record::Acked { seq, packet_id } | Record::Lapsed { seq, packet_id } => {
                Op::Acked(seq, packet_id)
            }
            Record::Expired { seq, delivery } | Record::Discarded { seq, delivery } => {
                look(delivery);
                Op::Left(seq)
            }
            Record::Dispatched { seq, delivery } => {
                assert!(delivery.qos == QoS::AtMostOnce && delivery.message.loaded);
                look(delivery);
                Op::Left(seq)
            }
            Record::Removed { seq, delivery } => {
                look(delivery);
                Op::Removed(seq)
            }
            Record::InboundReceived { packet_id } => Op::InboundReceived(packet_id),
            Record::InboundReleased { packet_id } => Op::InboundReleased(packet_id),
            other => panic!("the simulation does not know {other:?}"),
        };
        let batch = self.append(op);
        if is_volatile && !self.keeps_qos0 { BatchSeq::DONE } else { batch }
    }
}
