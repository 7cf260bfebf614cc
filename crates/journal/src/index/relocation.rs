//! Moving live records to the newest end of the log.
//!
//! Compaction reads the oldest segment in the background and offers its live records. The committer
//! takes them when it begins a frame: only then is it certain which are still live, because all
//! earlier frames have been applied. Moved records are at the start of the frame, before any record
//! that may remove them.

use std::collections::VecDeque;

use super::{Index, Place, keys, messages, small};
use crate::id::SegmentId;
use crate::record::{Decoded, Located, decode, encode_entry, encode_open_state};

/// A message that has had no reference for this many frames is dropped.
const FRESH_FRAMES: u64 = 1 << 16;

/// Bytes moved in one frame; further offered records follow in the next ones.
const BYTES_PER_FRAME: usize = 256 << 10;

/// Records of a segment that were live when they were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    segment: u32,
    /// The records, one behind the other.
    bytes: Vec<u8>,
    /// Where each one was and how long it is.
    records: VecDeque<(u32, u32)>,
    /// Bytes of the records that were processed.
    done: usize,
}

impl Batch {
    /// An empty batch for this segment.
    pub(crate) fn new(segment: u32) -> Self {
        Self { segment, ..Self::default() }
    }

    /// Adds a record that is at `offset` of the segment.
    pub(crate) fn push(&mut self, offset: u32, bytes: &[u8]) {
        // Invariant: it comes from a segment, which is smaller than 4 GiB.
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.records.push_back((offset, len));
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes that are still to be moved.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.done
    }
}

/// The records that were moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relocated {
    pub(crate) records: u32,
    pub(crate) bytes: u64,
}

impl Index {
    /// Offers records for moving, after those of the last offer have been moved.
    pub(crate) fn offer(&mut self, batch: Batch) {
        debug_assert!(!self.is_moving(), "one offer at a time");
        self.offered = batch;
    }

    /// True while offered records are not all moved.
    pub(crate) fn is_moving(&self) -> bool {
        self.is_moving || !self.offered.is_empty()
    }

    /// Appends what is to be moved with the frame that is about to be made: what was offered and
    /// is still live where it was. That frame must be the next one that is applied.
    pub(crate) fn relocate(&mut self, out: &mut Vec<u8>) -> Relocated {
        let mut relocated = Relocated::default();
        if self.offered.is_empty() {
            return relocated;
        }
        let before = out.len();
        let mut batch = std::mem::take(&mut self.offered);
        let mut opens = Vec::new();
        while let Some((offset, len)) = batch.records.pop_front() {
            let bytes = batch.bytes.get(batch.done..batch.done + len as usize).unwrap_or_default();
            batch.done += len as usize;
            let at = Place { segment: batch.segment, offset, len };
            if let Ok((record, _)) = decode(bytes)
                && self.relocate_record(at, bytes, &record, &mut opens, out)
            {
                relocated.records += 1;
            }
            if out.len() - before >= BYTES_PER_FRAME {
                break;
            }
        }
        self.is_moving = relocated.records > 0;
        relocated.bytes = (out.len() - before) as u64;
        self.offered = batch;
        relocated
    }

    /// True if the record at this place is live: no later record supersedes it.
    pub(crate) fn needs(&self, at: Place, record: &Decoded<'_>) -> bool {
        match *record {
            Decoded::Message { id, .. } => self
                .messages
                .get(id.get())
                .is_some_and(|slot| slot.is_live() && message_is_at(slot, at)),
            Decoded::Entry { queue, seq, .. } => self.entry(at.segment, queue, seq).is_some(),
            Decoded::Put { queue, key, .. } | Decoded::Delete { queue, key, .. } => {
                let queue = self.queues.get(&queue);
                queue.and_then(|queue| queue.keys.get(key)).is_some_and(|slot| key_is_at(slot, at))
            }
            Decoded::Open { message, .. } | Decoded::OpenState { message, .. } => {
                let open = self.opens.get(&message.get());
                open.is_some_and(|open| open.records.contains(&(at.segment, at.len)))
            }
            Decoded::State { .. }
            | Decoded::Remove { .. }
            | Decoded::DropQueue { .. }
            | Decoded::Done { .. } => false,
        }
    }

    /// Takes segments at the oldest end that hold nothing live, oldest first, but never the last.
    /// They are free as of this frame.
    pub(crate) fn take_free(&mut self, frame: u64, freed: &mut VecDeque<(u64, SegmentId)>) {
        while self.usage.iter().nth(1).is_some() {
            let Some(oldest) = self.usage.oldest().filter(|oldest| oldest.live == 0) else { break };
            freed.push_back((frame, SegmentId::new(oldest.number.into())));
            let number = oldest.number;
            self.usage.forget(number);
        }
    }

    /// Gives up the live records of an unreadable segment: entries and keys are removed.
    ///
    /// Messages in it stay known to their references as damaged. Returns the number of records
    /// given up.
    pub(crate) fn give_up(&mut self, segment: u32) -> u64 {
        let mut lost = 0;
        let mut entries = Vec::new();
        let mut keys = Vec::new();
        for (queue, content) in &self.queues {
            let here = content.entries.iter().filter(|slot| slot.segment == segment);
            entries.extend(here.map(|slot| (*queue, slot.seq)));
            let here = content.keys.iter().filter(|(_, slot)| slot.segment == segment);
            keys.extend(here.map(|(key, _)| (*queue, Box::<[u8]>::from(key))));
        }
        for (queue, seq) in entries {
            self.apply_remove(queue, seq);
            lost += 1;
        }
        for (queue, key) in keys {
            self.remove_key(queue, &key);
            lost += 1;
        }
        let Self { messages, opens, usage, live, frame, .. } = self;
        for open in opens.values_mut() {
            // It is known until the journal is closed.
            open.records.retain(|(of, len)| {
                let is_here = *of == segment;
                if is_here {
                    usage.subtract(segment, *len, *frame);
                    lost += 1;
                }
                !is_here
            });
        }
        messages.retain(|_, slot| {
            if slot.is_live() && slot.segment == segment {
                usage.subtract(slot.segment, slot.len, *frame);
                live.messages -= 1;
                slot.forget_record();
                lost += 1;
            }
            true
        });
        lost
    }

    fn relocate_record(
        &mut self,
        at: Place,
        bytes: &[u8],
        record: &Decoded<'_>,
        opens: &mut Vec<u64>,
        out: &mut Vec<u8>,
    ) -> bool {
        if !self.needs(at, record) {
            return false;
        }
        match *record {
            Decoded::Message { id, .. } if self.is_stale(id.get(), at.segment) => {
                self.drop_unused(id.get());
                return false;
            }
            Decoded::Entry { queue, seq, meta, .. } => {
                let Some((message, state)) = self.entry(at.segment, queue, seq) else {
                    return false;
                };
                encode_entry(queue, seq, message, state, meta, out);
            }
            Decoded::Open { message, .. } | Decoded::OpenState { message, .. } => {
                let id = message.get();
                let Some(open) = self.opens.get(&id).filter(|_| !opens.contains(&id)) else {
                    return false;
                };
                let opened = open.opened.iter().map(|opened| (&*opened.meta, &*opened.served));
                encode_open_state(id, open.times, opened, out);
                opens.push(id);
            }
            _ => out.extend_from_slice(bytes),
        }
        true
    }

    /// A message that nothing ever referred to, and whose segment is an old one.
    fn is_stale(&self, id: u64, segment: u32) -> bool {
        let is_fresh = self.messages.get(id).is_some_and(messages::MessageSlot::is_fresh);
        let last = self.usage.get(segment).map_or(0, |segment| segment.last_frame);
        is_fresh && last + FRESH_FRAMES <= self.frame
    }

    fn drop_unused(&mut self, id: u64) {
        if let Some(slot) = self.messages.get_mut(id) {
            let was_live = slot.is_live();
            // No longer fresh, and no reference is left.
            slot.add();
            slot.subtract();
            self.drop_unless_needed(id, was_live);
        }
    }

    /// Follows a record that was written again to another place.
    pub(super) fn move_record(&mut self, old: Place, new: Place, record: &Decoded<'_>) {
        if !self.needs(old, record) {
            return;
        }
        match *record {
            Decoded::Message { id, .. } => {
                if let Some(slot) = self.messages.get_mut(id.get()) {
                    (slot.segment, slot.offset) = (new.segment, new.offset);
                    self.move_usage(old, new);
                }
            }
            Decoded::Entry { queue, seq, .. } => {
                let queue = self.queues.get_mut(&queue);
                if let Some(slot) = queue.and_then(|queue| queue.entries.get_mut(seq)) {
                    slot.segment = new.segment;
                    self.usage.subtract_entry(old.segment, self.frame);
                    self.usage.add_entry(new.segment, new.len, self.frame);
                }
            }
            Decoded::Put { queue, key, .. } | Decoded::Delete { queue, key, .. } => {
                let queue = self.queues.get_mut(&queue);
                if let Some(slot) = queue.and_then(|queue| queue.keys.get_mut(key)) {
                    (slot.segment, slot.offset) = (new.segment, new.offset);
                    self.move_usage(old, new);
                }
            }
            Decoded::Open { message, .. } | Decoded::OpenState { message, .. } => {
                let records = self.opens.get_mut(&message.get()).map(|open| &mut open.records);
                let at = (old.segment, old.len);
                if let Some(record) = records.and_then(|r| r.iter_mut().find(|r| **r == at)) {
                    record.0 = new.segment;
                    self.move_usage(old, new);
                }
            }
            _ => {}
        }
    }

    fn move_usage(&mut self, old: Place, new: Place) {
        self.usage.subtract(old.segment, old.len, self.frame);
        self.usage.add(new.segment, new.len, self.frame);
    }
}

const fn message_is_at(slot: &messages::MessageSlot, at: Place) -> bool {
    slot.segment == at.segment && slot.offset == at.offset
}

const fn key_is_at(slot: &keys::KeySlot, at: Place) -> bool {
    slot.segment == at.segment && slot.offset == at.offset
}

/// Where a record of a frame is whose records begin at `frame` of the segment.
pub(crate) fn place(segment: SegmentId, frame: u64, located: &Located<'_>) -> Place {
    // Invariant: a segment is smaller than 4 GiB, recovery and the committer see to it.
    let offset = u32::try_from(frame + located.offset as u64).unwrap_or(u32::MAX);
    let len = u32::try_from(located.bytes.len()).unwrap_or(u32::MAX);
    Place { segment: small(segment.get()), offset, len }
}
