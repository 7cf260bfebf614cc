//! Applying records to the index.

use hashbrown::HashSet;

use super::{FrameAt, opens::Open, opens::Opening};
use super::{Hashing, Index, Place, entries, keys, messages, place, small};
use crate::record::{Decoded, Located, RecordError, Records};

/// An unreferenced message is kept for this many frames, for an entry that another writer appended
/// while the last reference was removed.
const UNREFERENCED_FRAMES: u64 = 64;

/// A tombstone is kept for at least this many frames, for older values that are appended late. That
/// is seconds at the highest rate of commits.
const TOMBSTONE_FRAMES: u64 = 1 << 16;

/// Entries and keys of dropped queues reclaimed per frame, so that no commit waits for a large one.
const RECLAIMED_PER_FRAME: usize = 4096;

/// State that is needed only until the end of a frame, whose records are in any order.
#[derive(Default)]
pub(super) struct WithinFrame {
    /// Where the records of the frame begin.
    segment: u32,
    offset: u64,
    /// Entries of messages of this frame that were not open yet, with their queue.
    early_entries: Vec<(u64, u64)>,
    /// Ends of distributions before their beginning.
    early_ends: Vec<u64>,
    /// Removals before their entry: queue and number. One writer may remove an entry that another
    /// one has appended a moment before.
    early_removes: HashSet<(u64, u64), Hashing>,
    opened: bool,
}

impl WithinFrame {
    /// True for a message that is in this frame.
    fn has(&self, message: &messages::MessageSlot) -> bool {
        message.segment == self.segment && u64::from(message.offset) >= self.offset
    }
}

impl Index {
    /// Applies the records of a frame; those before a malformed one if there is one.
    pub(crate) fn apply(&mut self, at: FrameAt, records: &[u8]) -> Result<(), RecordError> {
        self.frame = at.number;
        self.is_moving = false;
        (self.within.segment, self.within.offset) = (small(at.segment.get()), at.offset);
        self.usage.begin(self.within.segment, at.number);
        let mut result = Ok(());
        for located in Records::new(records) {
            match located {
                Ok(located) => self.apply_record(place(at.segment, at.offset, &located), &located),
                Err(error) => result = Err(error),
            }
        }
        self.end_frame();
        result
    }

    fn apply_record(&mut self, at: Place, located: &Located<'_>) {
        match located.record {
            Decoded::Message { id, .. } => self.apply_message(id.get(), at),
            Decoded::Entry { queue, seq, message, state, .. } => {
                let slot = entries::EntrySlot { seq, message, state, segment: at.segment };
                self.apply_entry(queue, slot, at.len);
            }
            Decoded::State { queue, seq, state, keep_message } => {
                self.apply_state(queue, seq, state, keep_message);
            }
            Decoded::Remove { queue, seq } => self.apply_remove(queue, seq),
            Decoded::Put { queue, key, version, message, .. } => {
                self.apply_put(queue, key, version, message, at);
            }
            Decoded::Delete { queue, key, version } => self.apply_delete(queue, key, version, at),
            Decoded::DropQueue { queue } => self.dropped.extend(self.queues.remove(&queue)),
            Decoded::Open { message, meta } => self.apply_open(message.get(), meta, at),
            Decoded::Done { message } => self.apply_done(message.get()),
            Decoded::OpenState { message, times, opened } => {
                let opened = opened.iter().map(|(meta, served)| Opening {
                    meta: meta.into(),
                    served,
                    began: 0,
                });
                let records = vec![(at.segment, at.len)];
                let open = Open { times, opened: opened.collect(), records };
                self.set_open(message.get(), open);
            }
        }
    }

    fn apply_message(&mut self, id: u64, at: Place) {
        let slot = self.messages.get_or_insert(id, messages::MessageSlot::NEW);
        if slot.is_live() {
            self.usage.subtract(slot.segment, slot.len, self.frame);
            self.live.messages -= 1;
        } else if slot.is_unreferenced() {
            *slot = messages::MessageSlot::NEW;
        }
        (slot.segment, slot.offset, slot.len) = (at.segment, at.offset, at.len);
        self.usage.add(at.segment, at.len, self.frame);
        self.live.messages += 1;
    }

    fn apply_entry(&mut self, queue: u64, slot: entries::EntrySlot, bytes: u32) {
        if slot.message != 0 {
            let message = self.refer(slot.message);
            if message.is_open() {
                if let Some(open) = self.opens.get_mut(&slot.message) {
                    open.serve(queue);
                }
            } else if !message.has_record() || self.within.has(&message) {
                self.within.early_entries.push((slot.message, queue));
            }
        }
        self.usage.add_entry(slot.segment, bytes, self.frame);
        self.live.entries += 1;
        let replaced = self.queues.entry(queue).or_default().entries.insert(slot);
        if let Some(old) = replaced {
            self.forget_entry(&old);
        }
        if !self.within.early_removes.is_empty()
            && self.within.early_removes.remove(&(queue, slot.seq))
        {
            self.apply_remove(queue, slot.seq);
        }
    }

    /// The entry stands before its states, also within a frame, where records stand by writer: one
    /// writer, of the shard that owns a session, enters what is in its queue and moves it on.
    /// Entries that a start makes come from a writer that is older than those of the shards, and
    /// relocated ones stand first. Where one writer takes away what another one puts (the queues of
    /// shared subscriptions) nothing is moved on: [`WithinFrame::early_removes`] is all it takes.
    fn apply_state(&mut self, queue: u64, seq: u64, state: u32, keep_message: bool) {
        let Some(queue) = self.queues.get_mut(&queue) else { return };
        let Some(slot) = queue.entries.get_mut(seq) else { return };
        slot.state = state;
        if !keep_message {
            let message = std::mem::take(&mut slot.message);
            self.release(message);
        }
    }

    pub(super) fn apply_remove(&mut self, queue: u64, seq: u64) {
        let content = self.queues.get_mut(&queue);
        let Some((content, slot)) = content.and_then(|content| {
            let slot = content.entries.remove(seq)?;
            Some((content, slot))
        }) else {
            self.within.early_removes.insert((queue, seq));
            return;
        };
        if content.entries.is_empty() && content.keys.is_empty() {
            self.queues.remove(&queue);
        }
        self.forget_entry(&slot);
    }

    fn apply_put(&mut self, queue: u64, key: &[u8], version: u64, message: u64, at: Place) {
        let keys = &mut self.queues.entry(queue).or_default().keys;
        let lost_in = match keys.get_mut(key) {
            Some(known) if known.version > version => {
                known.lost_in = at.segment;
                return;
            }
            Some(known) => known.lost_in,
            None => 0,
        };
        let Place { segment, offset, len } = at;
        let slot =
            keys::KeySlot { version, message, segment, offset, len, lost_in, is_tombstone: false };
        let replaced = keys.insert(key, slot);
        self.usage.add(at.segment, at.len, self.frame);
        self.live.keys += 1;
        if message != 0 {
            self.refer(message);
        }
        if let Some(old) = replaced {
            self.forget_key(&old);
        }
    }

    fn apply_delete(&mut self, queue: u64, key: &[u8], version: u64, at: Place) {
        if version == 0 {
            // No value can be older, so no tombstone is needed.
            let known = self.queues.get(&queue).and_then(|content| content.keys.get(key));
            if known.is_some_and(|known| known.version == 0) {
                self.remove_key(queue, key);
            }
            return;
        }
        let keys = &mut self.queues.entry(queue).or_default().keys;
        let lost_in = match keys.get(key) {
            Some(known) if known.version > version => return,
            Some(known) => known.lost_in,
            None => 0,
        };
        let Place { segment, offset, len } = at;
        let slot = keys::KeySlot {
            version,
            message: 0,
            segment,
            offset,
            len,
            lost_in,
            is_tombstone: true,
        };
        let replaced = keys.insert(key, slot);
        self.usage.add(at.segment, at.len, self.frame);
        self.tombstones.push_back((self.frame, queue, key.into()));
        if let Some(old) = replaced {
            self.forget_key(&old);
        }
    }

    fn apply_open(&mut self, id: u64, meta: &[u8], at: Place) {
        if let Some(early) = self.within.early_ends.iter().position(|ended| *ended == id) {
            self.within.early_ends.swap_remove(early);
            return;
        }
        let has_record = self.messages.get(id).is_some_and(messages::MessageSlot::has_record);
        self.within.opened |= has_record;
        let began = if has_record { self.frame } else { 0 };
        self.mark_open(id);
        let open = self.opens.entry(id).or_default();
        open.times += 1;
        open.opened.push(Opening { meta: meta.into(), served: Vec::new(), began });
        open.records.push((at.segment, at.len));
        self.usage.add(at.segment, at.len, self.frame);
    }

    fn apply_done(&mut self, id: u64) {
        let Some(open) = self.opens.get_mut(&id) else {
            self.within.early_ends.push(id);
            return;
        };
        open.times = open.times.saturating_sub(1);
        if open.times > 0 {
            return;
        }
        self.close(id);
        if let Some(slot) = self.messages.get_mut(id) {
            let was_live = slot.is_live();
            slot.set_open(false);
            self.drop_unless_needed(id, was_live);
        }
    }

    /// Replaces the state of an open message.
    fn set_open(&mut self, id: u64, open: Open) {
        if open.times == 0 {
            return;
        }
        self.close(id);
        self.mark_open(id);
        for (segment, len) in &open.records {
            self.usage.add(*segment, *len, self.frame);
        }
        self.opens.insert(id, open);
    }

    fn mark_open(&mut self, id: u64) {
        let slot = self.live_slot(id);
        let was_live = slot.is_live();
        slot.set_open(true);
        self.revive_if_needed(id, was_live);
    }

    /// Removes an open message, whose records are no longer live.
    fn close(&mut self, id: u64) {
        for (segment, len) in self.opens.remove(&id).into_iter().flat_map(|open| open.records) {
            self.usage.subtract(segment, len, self.frame);
        }
    }

    /// Adds a reference to a message.
    fn refer(&mut self, id: u64) -> messages::MessageSlot {
        let slot = self.live_slot(id);
        let was_live = slot.is_live();
        slot.add();
        let slot = *slot;
        self.revive_if_needed(id, was_live);
        slot
    }

    /// The slot of a message, without its place if that is no longer part of the log.
    fn live_slot(&mut self, id: u64) -> &mut messages::MessageSlot {
        let slot = self.messages.get_or_insert(id, messages::MessageSlot::ABSENT);
        if slot.is_unreferenced() && slot.has_record() && self.usage.get(slot.segment).is_none() {
            slot.forget_record();
        }
        slot
    }

    fn revive_if_needed(&mut self, id: u64, was_live: bool) {
        if let Some(slot) = self.messages.get(id).filter(|slot| !was_live && slot.is_live()) {
            self.usage.add(slot.segment, slot.len, self.frame);
            self.live.messages += 1;
        }
    }

    /// Removes a reference to a message.
    pub(super) fn release(&mut self, id: u64) {
        if let Some(slot) = self.messages.get_mut(id) {
            let was_live = slot.is_live();
            slot.subtract();
            self.drop_unless_needed(id, was_live);
        }
    }

    pub(super) fn drop_unless_needed(&mut self, id: u64, was_live: bool) {
        let Some(slot) = self.messages.get(id).filter(|slot| slot.is_unreferenced()) else {
            return;
        };
        if was_live {
            self.usage.subtract(slot.segment, slot.len, self.frame);
            self.live.messages -= 1;
        }
        self.unreferenced.push_back((self.frame, id));
    }

    pub(super) fn forget_entry(&mut self, slot: &entries::EntrySlot) {
        self.live.entries -= 1;
        self.usage.subtract_entry(slot.segment, self.frame);
        self.release(slot.message);
    }

    pub(super) fn forget_key(&mut self, slot: &keys::KeySlot) {
        self.usage.subtract(slot.segment, slot.len, self.frame);
        if !slot.is_tombstone {
            self.live.keys -= 1;
            self.release(slot.message);
        }
    }

    fn end_frame(&mut self) {
        let early = std::mem::take(&mut self.within.early_entries);
        if self.within.opened {
            for (message, queue) in &early {
                let opened = self.opens.get_mut(message).into_iter().flat_map(|o| &mut o.opened);
                let since = opened.filter(|opened| opened.began == self.frame);
                since.for_each(|opened| opened.served.push(*queue));
            }
        }
        self.within.early_entries = early;
        self.within.early_entries.clear();
        self.within.early_ends.clear();
        if !self.within.early_removes.is_empty() {
            self.within.early_removes.clear();
        }
        self.within.opened = false;
        self.forget_unreferenced();
        self.expire_tombstones();
        self.reclaim_dropped(RECLAIMED_PER_FRAME);
    }

    fn forget_unreferenced(&mut self) {
        while let Some((frame, id)) = self.unreferenced.front().copied() {
            if frame + UNREFERENCED_FRAMES > self.frame {
                break;
            }
            self.unreferenced.pop_front();
            if self.messages.get(id).is_some_and(messages::MessageSlot::is_unreferenced) {
                self.messages.remove(id);
            }
        }
    }

    fn expire_tombstones(&mut self) {
        while let Some((frame, queue, _)) = self.tombstones.front() {
            if frame + TOMBSTONE_FRAMES > self.frame {
                break;
            }
            let (queue, key) = (*queue, self.tombstones.pop_front().map(|(_, _, key)| key));
            if let Some(key) = key {
                self.forget_tombstone(queue, &key);
            }
        }
    }

    /// Drops the tombstone of a key, unless an older value is behind it in the log: then compaction
    /// has to move the tombstone behind that value first.
    fn forget_tombstone(&mut self, queue: u64, key: &[u8]) {
        let known = self.queues.get(&queue).and_then(|content| content.keys.get(key));
        if known.is_some_and(|slot| slot.is_tombstone && slot.lost_in <= slot.segment) {
            self.remove_key(queue, key);
        }
    }

    /// Removes a key completely.
    pub(super) fn remove_key(&mut self, queue: u64, key: &[u8]) {
        let Some(content) = self.queues.get_mut(&queue) else { return };
        let Some(slot) = content.keys.remove(key) else { return };
        if content.entries.is_empty() && content.keys.is_empty() {
            self.queues.remove(&queue);
        }
        self.forget_key(&slot);
    }
}
