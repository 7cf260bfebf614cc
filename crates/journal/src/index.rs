//! What is live, and where: the log's content without its bodies, in memory.
//!
//! The committer applies each frame once it is complete, recovery applies all of them again; both
//! must come to the same. Within a frame the records of different writers stand in any order, so an
//! entry may come before its message and the end of a distribution before its beginning. Frames
//! come in the order of what happened.
//!
//! Nothing comes back: what removes something stands behind it in the log, and segments are freed
//! from the oldest end only. What is moved to the newest end is live there and then, and so it
//! stands before what removes it later.

mod entries;
mod keys;
mod messages;
mod opens;
mod relocation;
mod usage;

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::frame::Header;
use crate::id::{MessageId, SegmentId};
use crate::record::{Decoded, Located, RecordError, Records};
use crate::tail;
use entries::Entries;
use keys::Keys;
use messages::Messages;
use opens::{Open, Opened, Opens};
use usage::Usage;

pub(crate) use relocation::{Batch, place};
pub(crate) use usage::Segment as SegmentUsage;

/// Keys are numbers that the journal itself gave out. Fixed, so that a simulated run repeats.
type Hashing = FixedState;

/// A message that nothing refers to any more is remembered for so many frames, for an entry that
/// another writer appended while the last reference went away.
const FORSAKEN_FRAMES: u64 = 64;

/// A deleted version is remembered for so many frames at least, for older values that come late.
/// That is seconds at the highest rate of commits.
const DELETED_FRAMES: u64 = 1 << 16;

/// Parts of a dropped queue that one frame cleans up, so that no commit waits for a large one.
const BURIED_PER_FRAME: usize = 4096;

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameAt {
    pub(crate) segment: SegmentId,
    /// Where its records begin in the segment's file.
    pub(crate) offset: u64,
    /// The commit.
    pub(crate) number: u64,
}

impl FrameAt {
    /// A frame whose header is at `place`.
    pub(crate) fn new(place: tail::Place, number: u64) -> Self {
        let offset = u64::from(place.offset) + Header::BYTES as u64;
        Self { segment: place.segment, offset, number }
    }
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

/// How much is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) entries: u64,
    pub(crate) keys: u64,
    pub(crate) queues: u64,
    pub(crate) open: u64,
}

/// What is live, and where.
#[derive(Default)]
pub(crate) struct Index {
    messages: Messages,
    queues: HashMap<u64, Queue, Hashing>,
    opens: Opens,
    usage: Usage,
    live: Live,
    /// The frame that is being applied, or was last.
    frame: u64,
    /// Messages that lost their last reference, with the frame that took it.
    forsaken: VecDeque<(u64, u64)>,
    /// Keys that were deleted, with the frame.
    deleted: VecDeque<(u64, u64, Box<[u8]>)>,
    /// Dropped queues whose parts are not all cleaned up.
    dropped: Vec<Queue>,
    /// What the garbage collection wants to have moved.
    offered: Batch,
    /// Some of that is in a frame that is not applied yet.
    is_moving: bool,
    within: WithinFrame,
}

#[derive(Default)]
struct Queue {
    entries: Entries,
    keys: Keys,
}

/// What counts only until the end of the frame, where records stand in any order.
#[derive(Default)]
struct WithinFrame {
    /// Where the records of the frame begin.
    segment: u32,
    offset: u64,
    /// Entries of messages of this frame that were not open by then, with their queue.
    early_entries: Vec<(u64, u64)>,
    /// Distributions that ended before they began.
    early_ends: Vec<u64>,
    opened: bool,
}

impl WithinFrame {
    /// True for a message that is in this frame.
    fn has(&self, message: &messages::Slot) -> bool {
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

    /// A frame that was applied was written again to another place.
    pub(crate) fn moved(&mut self, from: FrameAt, to: FrameAt, records: &[u8]) {
        self.usage.begin(small(to.segment.get()), to.number);
        for located in Records::new(records).map_while(Result::ok) {
            let old = place(from.segment, from.offset, &located);
            let new = place(to.segment, to.offset, &located);
            self.move_record(old, new, &located.record);
        }
    }

    /// Where a message is; `None` if it is not here, or nothing needs it.
    pub(crate) fn message(&self, id: u64) -> Option<Place> {
        let slot = self.messages.get(id)?;
        let there = slot.has_record() && self.usage.get(slot.segment).is_some();
        there.then_some(Place { segment: slot.segment, offset: slot.offset, len: slot.len })
    }

    /// Message and state of an entry whose record is in this segment.
    pub(crate) fn entry(&self, segment: u32, queue: u64, seq: u64) -> Option<(u64, u32)> {
        let slot = self.queues.get(&queue)?.entries.get(seq)?;
        (slot.segment == segment).then_some((slot.message, slot.state))
    }

    /// The records of all keys that have a value, in the order of their places.
    pub(crate) fn keys(&self) -> Vec<Place> {
        let slots = self.queues.values().flat_map(|queue| queue.keys.iter());
        let mut places: Vec<_> = slots
            .filter(|(_, slot)| !slot.deleted)
            .map(|(_, slot)| Place { segment: slot.segment, offset: slot.offset, len: slot.len })
            .collect();
        places.sort_unstable();
        places
    }

    /// The open messages with all the times that they were opened, in the order of their numbers.
    ///
    /// The queues that have an entry of one, or had one since, each once.
    pub(crate) fn opens(&self) -> Vec<(u64, Vec<Opened>)> {
        let mut opens: Vec<_> =
            self.opens.iter().map(|(id, open)| (*id, open.opened.clone())).collect();
        if opens.is_empty() {
            return opens;
        }
        for (queue, content) in &self.queues {
            for slot in content.entries.iter() {
                if let Ok(at) = opens.binary_search_by_key(&slot.message, |(id, _)| *id) {
                    // Invariant: the search found this place.
                    opens[at].1.iter_mut().for_each(|opened| opened.served.push(*queue));
                }
            }
        }
        for opened in opens.iter_mut().flat_map(|(_, opened)| opened) {
            opened.served.sort_unstable();
            opened.served.dedup();
        }
        opens
    }

    /// Entries and keys that refer to a message that is not there.
    pub(crate) fn unresolved(&self) -> u64 {
        let absent = |id: u64| id != 0 && self.messages.get(id).is_none_or(|m| !m.has_record());
        let queues = self.queues.values();
        let count = |queue: &Queue| {
            let entries = queue.entries.iter().filter(|slot| absent(slot.message)).count();
            let keys = queue.keys.iter().filter(|(_, slot)| absent(slot.message)).count();
            (entries + keys) as u64
        };
        queues.map(count).sum()
    }

    /// All messages that something refers to, and where they are, in the order of their places.
    pub(crate) fn messages(&self) -> Vec<(MessageId, Place)> {
        let live = self.messages.iter().filter(|(_, slot)| slot.is_live());
        let mut messages: Vec<_> = live
            .filter_map(|(id, slot)| {
                let (segment, offset, len) = (slot.segment, slot.offset, slot.len);
                Some((MessageId::new(id)?, Place { segment, offset, len }))
            })
            .collect();
        messages.sort_unstable_by_key(|(_, place)| *place);
        messages
    }

    /// How much is live.
    pub(crate) fn live(&self) -> Live {
        Live {
            bytes: self.usage.live_bytes(),
            queues: self.queues.len() as u64,
            open: self.opens.len() as u64,
            ..self.live
        }
    }

    /// The oldest segment.
    pub(crate) fn oldest(&self) -> Option<&SegmentUsage> {
        self.usage.oldest()
    }

    /// All segments with frames, oldest first.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &SegmentUsage> {
        self.usage.iter()
    }

    /// Forgets what only writers of before could still refer to: the log was closed since.
    pub(crate) fn settle(&mut self) {
        self.bury(usize::MAX);
        self.forsaken.clear();
        let Self { messages, usage, live, frame, .. } = self;
        messages.retain(|_, slot| {
            if slot.is_fresh() && slot.has_record() {
                usage.subtract(slot.segment, slot.len, *frame);
                live.messages -= 1;
            }
            !slot.is_forsaken() && !slot.is_fresh()
        });
    }

    /// Cleans up so many parts of dropped queues; false when there is nothing left to clean up.
    pub(crate) fn bury(&mut self, parts_max: usize) -> bool {
        let mut parts = parts_max;
        while let Some(queue) = self.dropped.last_mut() {
            if parts == 0 {
                return true;
            }
            parts -= 1;
            if let Some(slot) = queue.entries.pop() {
                self.live.entries -= 1;
                self.usage.subtract_entry(slot.segment, self.frame);
                self.release(slot.message);
            } else if let Some((_, slot)) = queue.keys.pop() {
                self.forget_key(&slot);
            } else {
                self.dropped.pop();
            }
        }
        false
    }

    fn apply_record(&mut self, at: Place, located: &Located<'_>) {
        match located.record {
            Decoded::Message { id, .. } => self.apply_message(id.get(), at),
            Decoded::Entry { queue, seq, message, state, .. } => {
                let slot = entries::Slot { seq, message, state, segment: at.segment };
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
                let opened = opened.iter().map(|(meta, served)| Opened {
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
        let slot = self.messages.get_or_insert(id, messages::Slot::NEW);
        if slot.is_live() {
            self.usage.subtract(slot.segment, slot.len, self.frame);
            self.live.messages -= 1;
        } else if slot.is_forsaken() {
            *slot = messages::Slot::NEW;
        }
        (slot.segment, slot.offset, slot.len) = (at.segment, at.offset, at.len);
        self.usage.add(at.segment, at.len, self.frame);
        self.live.messages += 1;
    }

    fn apply_entry(&mut self, queue: u64, slot: entries::Slot, bytes: u32) {
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
    }

    fn apply_state(&mut self, queue: u64, seq: u64, state: u32, keep_message: bool) {
        let Some(queue) = self.queues.get_mut(&queue) else { return };
        let Some(slot) = queue.entries.get_mut(seq) else { return };
        slot.state = state;
        if !keep_message {
            let message = std::mem::take(&mut slot.message);
            self.release(message);
        }
    }

    fn apply_remove(&mut self, queue: u64, seq: u64) {
        let Some(content) = self.queues.get_mut(&queue) else { return };
        let Some(slot) = content.entries.remove(seq) else { return };
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
        let slot = keys::Slot { version, message, segment, offset, len, lost_in, deleted: false };
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
            // Nothing can be older than this, so there is nothing to remember.
            let Some(content) = self.queues.get_mut(&queue) else { return };
            if content.keys.get(key).is_none_or(|known| known.version > 0) {
                return;
            }
            let removed = content.keys.remove(key);
            if content.entries.is_empty() && content.keys.is_empty() {
                self.queues.remove(&queue);
            }
            removed.iter().for_each(|old| self.forget_key(old));
            return;
        }
        let keys = &mut self.queues.entry(queue).or_default().keys;
        let lost_in = match keys.get(key) {
            Some(known) if known.version > version => return,
            Some(known) => known.lost_in,
            None => 0,
        };
        let Place { segment, offset, len } = at;
        let slot = keys::Slot { version, message: 0, segment, offset, len, lost_in, deleted: true };
        let replaced = keys.insert(key, slot);
        self.usage.add(at.segment, at.len, self.frame);
        self.deleted.push_back((self.frame, queue, key.into()));
        if let Some(old) = replaced {
            self.forget_key(&old);
        }
    }

    fn apply_open(&mut self, id: u64, meta: &[u8], at: Place) {
        if let Some(early) = self.within.early_ends.iter().position(|ended| *ended == id) {
            self.within.early_ends.swap_remove(early);
            return;
        }
        let has_record = self.messages.get(id).is_some_and(messages::Slot::has_record);
        self.within.opened |= has_record;
        let began = if has_record { self.frame } else { 0 };
        self.mark_open(id);
        let open = self.opens.entry(id).or_default();
        open.times += 1;
        open.opened.push(Opened { meta: meta.into(), served: Vec::new(), began });
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
            self.forsake_unless_needed(id, was_live);
        }
    }

    /// Sets all that is known of an open message, wherever it was known from.
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

    /// Takes an open message out of the table and its records out of what is live.
    fn close(&mut self, id: u64) {
        for (segment, len) in self.opens.remove(&id).into_iter().flat_map(|open| open.records) {
            self.usage.subtract(segment, len, self.frame);
        }
    }

    /// One more refers to a message.
    fn refer(&mut self, id: u64) -> messages::Slot {
        let slot = self.live_slot(id);
        let was_live = slot.is_live();
        slot.add();
        let slot = *slot;
        self.revive_if_needed(id, was_live);
        slot
    }

    /// The slot of a message, without its place if that is no part of the log any more.
    fn live_slot(&mut self, id: u64) -> &mut messages::Slot {
        let slot = self.messages.get_or_insert(id, messages::Slot::ABSENT);
        if slot.is_forsaken() && slot.has_record() && self.usage.get(slot.segment).is_none() {
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

    /// One less refers to a message.
    fn release(&mut self, id: u64) {
        if let Some(slot) = self.messages.get_mut(id) {
            let was_live = slot.is_live();
            slot.subtract();
            self.forsake_unless_needed(id, was_live);
        }
    }

    fn forsake_unless_needed(&mut self, id: u64, was_live: bool) {
        let Some(slot) = self.messages.get(id).filter(|slot| slot.is_forsaken()) else { return };
        if was_live {
            self.usage.subtract(slot.segment, slot.len, self.frame);
            self.live.messages -= 1;
        }
        self.forsaken.push_back((self.frame, id));
    }

    fn forget_entry(&mut self, slot: &entries::Slot) {
        self.live.entries -= 1;
        self.usage.subtract_entry(slot.segment, self.frame);
        self.release(slot.message);
    }

    fn forget_key(&mut self, slot: &keys::Slot) {
        self.usage.subtract(slot.segment, slot.len, self.frame);
        if !slot.deleted {
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
        self.within.opened = false;
        self.forget_forsaken();
        self.forget_deleted();
        self.bury(BURIED_PER_FRAME);
    }

    fn forget_forsaken(&mut self) {
        while let Some((frame, id)) = self.forsaken.front().copied() {
            if frame + FORSAKEN_FRAMES > self.frame {
                break;
            }
            self.forsaken.pop_front();
            if self.messages.get(id).is_some_and(messages::Slot::is_forsaken) {
                self.messages.remove(id);
            }
        }
    }

    fn forget_deleted(&mut self) {
        while let Some((frame, queue, _)) = self.deleted.front() {
            if frame + DELETED_FRAMES > self.frame {
                break;
            }
            let (queue, key) = (*queue, self.deleted.pop_front().map(|(_, _, key)| key));
            if let Some(key) = key {
                self.forget_deleted_key(queue, &key);
            }
        }
    }

    /// Forgets that a key was deleted, unless an older value stands behind that in the log: then
    /// the record has to be moved behind it first.
    fn forget_deleted_key(&mut self, queue: u64, key: &[u8]) {
        let Some(content) = self.queues.get_mut(&queue) else { return };
        let Some(slot) = content.keys.get(key) else { return };
        if !slot.deleted || slot.lost_in > slot.segment {
            return;
        }
        let removed = content.keys.remove(key);
        if content.entries.is_empty() && content.keys.is_empty() {
            self.queues.remove(&queue);
        }
        removed.iter().for_each(|slot| self.forget_key(slot));
    }
}

/// Segments are counted from 1 and never get so many that they do not fit.
fn small(segment: u64) -> u32 {
    u32::try_from(segment).unwrap_or(u32::MAX)
}
