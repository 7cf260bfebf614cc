//! The index: all live records and their places in the log, without bodies and values.
//!
//! The committer applies each frame once it is complete, recovery applies all of them again; the
//! results must be equal. Within a frame the records of different writers are in any order, so an
//! entry may precede its message and the end of a distribution its beginning. Frames are in
//! chronological order.
//!
//! Removed records do not reappear: a removal is behind the record in the log, and segments are
//! freed from the oldest end only. Compaction moves records only while they are live, so that a
//! moved record precedes its removal, too.

mod apply;
mod entries;
mod keys;
mod messages;
mod opens;
mod relocation;
mod usage;

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::frame::{FramePlace, Header};
use crate::id::{MessageId, SegmentId};
use crate::record::Records;
use apply::WithinFrame;
use entries::Entries;
use keys::Keys;
use messages::Messages;
use opens::{Opening, Opens};
use usage::Usage;

pub(crate) use relocation::{Batch, place};
pub(crate) use usage::SegmentUsage;

/// Keys are numbers assigned by the journal. A fixed seed makes simulated runs reproducible.
pub(crate) type Hashing = FixedState;

/// The place of a frame.
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
    pub(crate) fn new(place: FramePlace, number: u64) -> Self {
        let offset = u64::from(place.offset) + Header::BYTES as u64;
        Self { segment: place.segment, offset, number }
    }
}

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

/// Totals of live records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) entries: u64,
    pub(crate) keys: u64,
    pub(crate) queues: u64,
    pub(crate) open: u64,
}

/// The live records and their places.
#[derive(Default)]
pub(crate) struct Index {
    messages: Messages,
    queues: HashMap<u64, Queue, Hashing>,
    opens: Opens,
    usage: Usage,
    live: Live,
    /// The current or last frame applied.
    frame: u64,
    /// Messages that lost their last reference, with the frame that removed it.
    unreferenced: VecDeque<(u64, u64)>,
    /// Tombstones of deleted keys, with their frame.
    tombstones: VecDeque<(u64, u64, Box<[u8]>)>,
    /// Dropped queues whose entries and keys are not all reclaimed.
    dropped: Vec<Queue>,
    /// Bytes of frames since the start, without records moved by compaction.
    appended_bytes: u64,
    /// Records that compaction has offered for moving.
    offered: Batch,
    /// Some of them are in a frame that is not applied yet.
    is_moving: bool,
    within: WithinFrame,
}

#[derive(Default)]
struct Queue {
    entries: Entries,
    keys: Keys,
}

impl Index {
    /// A frame that was applied was written again to another place.
    pub(crate) fn moved(&mut self, from: FrameAt, to: FrameAt, records: &[u8]) {
        self.usage.begin(small(to.segment.get()), to.number);
        for located in Records::new(records).map_while(Result::ok) {
            let old = place(from.segment, from.offset, &located);
            let new = place(to.segment, to.offset, &located);
            self.move_record(old, new, &located.record);
        }
    }

    /// The place of a message; `None` if it is unknown or no longer needed.
    pub(crate) fn message(&self, id: u64) -> Option<Place> {
        let slot = self.messages.get(id)?;
        let there = slot.has_record() && self.usage.get(slot.segment).is_some();
        there.then_some(Place { segment: slot.segment, offset: slot.offset, len: slot.len })
    }

    /// Whether a queue has an entry of this number.
    pub(crate) fn has_entry(&self, queue: u64, seq: u64) -> bool {
        self.queues.get(&queue).is_some_and(|queue| queue.entries.get(seq).is_some())
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
            .filter(|(_, slot)| !slot.is_tombstone)
            .map(|(_, slot)| Place { segment: slot.segment, offset: slot.offset, len: slot.len })
            .collect();
        places.sort_unstable();
        places
    }

    /// The open messages with all the times that they were opened, in the order of their numbers.
    ///
    /// The queues that have an entry of one, or had one since, each once.
    pub(crate) fn opens(&self) -> Vec<(u64, Vec<Opening>)> {
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

    /// Totals of live records.
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

    /// The newest segment.
    pub(crate) fn newest(&self) -> Option<&SegmentUsage> {
        self.usage.newest()
    }

    /// Counts the bytes of an applied frame without moved records.
    pub(crate) fn count_appended(&mut self, bytes: u64) {
        self.appended_bytes += bytes;
    }

    /// Grows by appended records that are not live and by records that cease to be live. Moving
    /// records does not change it, so it is constant without appends.
    pub(crate) fn garbage_made(&self) -> i64 {
        // Invariant: neither comes near 2^63 bytes.
        self.appended_bytes as i64 - self.usage.live_bytes() as i64
    }

    /// All segments with frames, oldest first.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &SegmentUsage> {
        self.usage.iter()
    }

    /// Drops unreferenced messages that only the writers of the previous process could refer to.
    pub(crate) fn settle(&mut self) {
        self.reclaim_dropped(usize::MAX);
        self.unreferenced.clear();
        let Self { messages, usage, live, frame, .. } = self;
        messages.retain(|_, slot| {
            if slot.is_fresh() && slot.has_record() {
                usage.subtract(slot.segment, slot.len, *frame);
                live.messages -= 1;
            }
            !slot.is_unreferenced() && !slot.is_fresh()
        });
    }

    /// Reclaims entries and keys of dropped queues, up to `parts_max`; false when none are left.
    pub(crate) fn reclaim_dropped(&mut self, parts_max: usize) -> bool {
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
}

/// Segments are counted from 1 and their numbers fit in 32 bits.
fn small(segment: u64) -> u32 {
    u32::try_from(segment).unwrap_or(u32::MAX)
}
