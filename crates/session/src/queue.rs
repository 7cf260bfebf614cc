//! The bounded queue of messages that have no packet identifier yet.

use tacho_codec::QoS;

use crate::chunks::Chunks;
use crate::on_demand::OnDemand;
use crate::{BatchSeq, Delivery, DropReason, Payload};

/// The number of QoS 0 messages that are recorded as dispatched at once, to wait for one commit.
const DEPARTING_LEN_MAX: usize = 64;

/// A message in the queue and its number.
#[derive(Debug)]
pub(crate) struct Queued<M> {
    pub(crate) seq: u64,
    pub(crate) delivery: Delivery<M>,
}

/// What becomes of a message of QoS 1 or 2 that a full queue is offered. One of QoS 0 is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// It is dropped.
    #[default]
    DropNewest,
    /// The oldest messages in the queue are dropped to make room for it, unless it alone is larger
    /// than the queue.
    DropOldest,
    /// It is queued in spite of the limit. The owner keeps new messages away while the queue is
    /// full, see [`QueueLevel`].
    Keep,
}

/// How full a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLevel {
    /// At least a quarter of the queue is free.
    Room,
    /// Between the two: an owner that acts on a full queue keeps to what it did last.
    High,
    /// The queue has reached one of its limits.
    Full,
}

/// First in, first out.
#[derive(Debug)]
pub(crate) struct Queue<M> {
    entries: OnDemand<Chunks<Queued<M>>>,
    bytes: u64,
    bytes_max: u64,
    len_max: u32,
    qos0_len: u32,
    /// The number of QoS 0 messages at the front that are recorded as dispatched; they leave once
    /// `departing_batch` is committed.
    departing_len: usize,
    departing_batch: BatchSeq,
}

impl<M> Queue<M> {
    pub(crate) const fn new(len_max: u32, bytes_max: u64) -> Self {
        Self {
            entries: OnDemand::new(),
            bytes: 0,
            bytes_max,
            len_max,
            qos0_len: 0,
            departing_len: 0,
            departing_batch: BatchSeq::DONE,
        }
    }

    /// What is queued already stays.
    pub(crate) const fn set_len_max(&mut self, len_max: u32) {
        self.len_max = len_max;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.get().is_none_or(Chunks::is_empty)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.get().map_or(0, Chunks::len)
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a message of QoS 0 is queued: the next one has to wait behind it.
    #[inline]
    pub(crate) const fn holds_qos0(&self) -> bool {
        self.qos0_len > 0
    }

    /// The reason why the queue refuses `delivery`, if it does.
    pub(crate) fn refusal(&self, delivery: &Delivery<M>) -> Option<DropReason> {
        if self.len() >= self.len_max as usize {
            Some(DropReason::QueueFull)
        } else if self.bytes + u64::from(delivery.size_bytes) > self.bytes_max {
            Some(DropReason::QueueBytesFull)
        } else {
            None
        }
    }

    pub(crate) fn level(&self) -> QueueLevel {
        let (len, len_max) = (self.len() as u64, u64::from(self.len_max));
        if len >= len_max || self.bytes >= self.bytes_max {
            return QueueLevel::Full;
        }
        let is_high = |amount: u64, max: u64| amount > max - max / 4;
        if is_high(len, len_max) || is_high(self.bytes, self.bytes_max) {
            QueueLevel::High
        } else {
            QueueLevel::Room
        }
    }

    /// Takes out the oldest messages, as many as keep `delivery` from fitting in: none if they all
    /// would not suffice. Messages that are recorded as dispatched stay.
    pub(crate) fn evict_for(&mut self, delivery: &Delivery<M>) -> Vec<Queued<M>> {
        let mut evicted = Vec::new();
        if !self.could_hold(delivery) {
            return evicted;
        }
        while self.refusal(delivery).is_some()
            && let Some(entry) = self.remove(self.departing_len)
        {
            self.discount(&entry);
            evicted.push(entry);
        }
        evicted
    }

    /// Whether the queue would have room for `delivery` without all that can be evicted.
    pub(crate) fn could_hold(&self, delivery: &Delivery<M>) -> bool {
        let departing = self.iter().take(self.departing_len);
        let bytes: u64 = departing.map(|entry| u64::from(entry.delivery.size_bytes)).sum();
        self.departing_len < self.len_max as usize
            && bytes + u64::from(delivery.size_bytes) <= self.bytes_max
    }

    pub(crate) fn push(&mut self, entry: Queued<M>) {
        self.count(&entry);
        self.entries.get_or_default().push_back(entry);
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Delivery<M>> {
        self.entries.get()?.front().map(|entry| &entry.delivery)
    }

    pub(crate) fn pop(&mut self) -> Option<Queued<M>> {
        let entry = self.entries.get_mut()?.pop_front()?;
        self.discount(&entry);
        self.departing_len = self.departing_len.saturating_sub(1);
        Some(entry)
    }

    /// Whether the front is recorded as dispatched.
    #[inline]
    pub(crate) const fn is_departing(&self) -> bool {
        self.departing_len > 0
    }

    /// The commit that the front waits for, if it is reported as gone.
    #[inline]
    pub(crate) fn departing_batch(&self) -> Option<BatchSeq> {
        self.is_departing().then_some(self.departing_batch)
    }

    /// Takes out the messages that are `wanted`; the others keep their order. Messages that are
    /// recorded as dispatched stay.
    pub(crate) fn take_where(&mut self, wanted: impl Fn(&M) -> bool) -> Vec<Queued<M>> {
        let mut taken = Vec::new();
        let departing_len = self.departing_len;
        for index in 0..self.len() {
            let Some(entry) = self.pop() else { break };
            if index >= departing_len && wanted(&entry.delivery.message) {
                taken.push(entry);
            } else {
                self.push(entry);
            }
        }
        self.departing_len = departing_len;
        taken
    }

    /// The messages and their numbers, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queued<M>> {
        self.entries.get().into_iter().flat_map(Chunks::iter)
    }

    /// The messages from position `from` on, oldest first, except those recorded as dispatched.
    pub(crate) fn iter_mut(&mut self, from: usize) -> impl Iterator<Item = &mut Queued<M>> {
        let from = from.max(self.departing_len);
        self.entries.get_mut().into_iter().flat_map(move |entries| entries.iter_mut_from(from))
    }

    /// Drops everything and returns the memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.qos0_len = 0;
        self.departing_len = 0;
    }

    /// Returns the memory of an empty queue.
    pub(crate) fn release_memory(&mut self) {
        if self.is_empty() {
            self.entries.clear();
        }
    }

    fn remove(&mut self, index: usize) -> Option<Queued<M>> {
        self.entries.get_mut()?.remove(index)
    }

    fn count(&mut self, entry: &Queued<M>) {
        self.bytes += u64::from(entry.delivery.size_bytes);
        self.qos0_len += u32::from(entry.delivery.qos == QoS::AtMostOnce);
    }

    fn discount(&mut self, entry: &Queued<M>) {
        self.bytes -= u64::from(entry.delivery.size_bytes);
        self.qos0_len -= u32::from(entry.delivery.qos == QoS::AtMostOnce);
    }
}

impl<M: Payload> Queue<M> {
    /// Removes and returns the message with this number if it is not loaded.
    pub(crate) fn take_unloaded(&mut self, seq: u64) -> Option<Queued<M>> {
        let entries = self.entries.get_mut()?;
        let index = entries.position_by_key(&seq, |entry| entry.seq)?;
        if entries.get(index)?.delivery.message.is_loaded() {
            return None;
        }
        let entry = entries.remove(index)?;
        self.discount(&entry);
        Some(entry)
    }

    /// Records the loaded messages of QoS 0 at the front as dispatched, so that they leave
    /// together: after a crash none of them may be sent twice.
    pub(crate) fn depart(&mut self, mut record: impl FnMut(&Queued<M>) -> BatchSeq) {
        let leaves = |d: &Delivery<M>| d.qos == QoS::AtMostOnce && d.message.is_loaded();
        let entries = self.entries.get().into_iter().flat_map(Chunks::iter);
        for entry in entries.take(DEPARTING_LEN_MAX) {
            if !leaves(&entry.delivery) {
                break;
            }
            self.departing_batch = record(entry);
            self.departing_len += 1;
        }
    }
}
