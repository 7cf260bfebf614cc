//! Leaves transient messages out of a commit: a message whose entries were all added and removed
//! before the commit, with these entries and their state changes.
//!
//! A frame is valid as a whole or not at all, so the result after a crash is the same, and a
//! subscriber that acknowledges at once costs the disk nothing. A message stays as soon as another
//! record of the commit refers to it: a key, the beginning or the end of its distribution, an entry
//! that stays.

use std::ops::Deref;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::index::{Hashing, Index};
use crate::record::{Decoded, Records, sum};

/// A search is worth its cost if it leaves out at least one part of this many bytes.
const WORTH: usize = 8;

/// After a search that was not, this many commits are not searched.
const REST_COMMITS: u32 = 31;

/// The record belongs to no message that may be left out.
const NONE: u32 = u32::MAX;

/// What is known of a message in this commit.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    entries: u32,
    removed: u32,
    /// It is needed beyond this commit.
    stays: bool,
}

impl Fate {
    const fn is_left_out(self) -> bool {
        !self.stays && self.entries > 0 && self.entries == self.removed
    }
}

/// A record, by its length, and the message that it belongs to.
#[derive(Clone, Copy, Debug)]
struct Span {
    bytes: u32,
    fate: u32,
    /// It is the message itself, whose checksum is still missing.
    is_message: bool,
}

/// Finds the records that can be left out. The tables are empty between commits.
#[derive(Default)]
pub(crate) struct TransientFilter {
    fates: Vec<Fate>,
    messages: HashMap<u64, u32, Hashing>,
    /// Entries of these messages by queue and number, until they are removed.
    entries: HashMap<(u64, u64), u32, Hashing>,
    /// Messages that were referred to before their own record.
    early: Vec<u64>,
    spans: Vec<Span>,
    /// Number of further commits that are not searched.
    rest: u32,
}

/// The records that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) records: u32,
    pub(crate) bytes: u64,
}

impl TransientFilter {
    /// Appends to `into` the records that have to be written, messages with their checksums. The
    /// lock of the index is released before records are copied.
    pub(crate) fn append(
        &mut self,
        index: impl Deref<Target = Index>,
        taken: &[Vec<u8>],
        into: &mut Vec<u8>,
    ) -> LeftOut {
        let all = taken.iter().map(Vec::len).sum();
        into.reserve(all);
        if self.rest > 0 {
            drop(index);
            self.rest -= 1;
            return append_all(taken, into);
        }
        let is_whole = taken.iter().all(|records| self.look_at(&index, records));
        drop(index);
        self.keep_early();
        let left_out = match is_whole {
            true => self.append_rest(taken, into),
            false => append_all(taken, into),
        };
        if (left_out.bytes as usize) < all / WORTH {
            self.rest = REST_COMMITS;
        }
        self.forget();
        left_out
    }

    /// False if a record cannot be decoded; then all records are written as they are.
    fn look_at(&mut self, index: &Index, records: &[u8]) -> bool {
        for located in Records::new(records) {
            let Ok(located) = located else { return false };
            let Ok(bytes) = u32::try_from(located.bytes.len()) else { return false };
            let fate = self.fate_of(index, &located.record);
            let is_message = matches!(located.record, Decoded::Message { .. });
            self.spans.push(Span { bytes, fate, is_message });
        }
        true
    }

    fn fate_of(&mut self, index: &Index, record: &Decoded<'_>) -> u32 {
        match *record {
            Decoded::Message { id, .. } => self.message(id.get()),
            Decoded::Entry { queue, seq, message, .. } => self.entry(queue, seq, message),
            Decoded::State { queue, seq, .. } => {
                self.entries.get(&(queue, seq)).copied().unwrap_or(NONE)
            }
            Decoded::Remove { queue, seq } => self.remove(index, queue, seq),
            Decoded::Put { message, .. } => self.name(message),
            Decoded::Open { message, .. }
            | Decoded::Done { message }
            | Decoded::OpenState { message, .. } => self.name(message.get()),
            Decoded::Delete { .. } | Decoded::DropQueue { .. } => NONE,
        }
    }

    fn message(&mut self, id: u64) -> u32 {
        let next = self.fates.len() as u32;
        match self.messages.entry(id) {
            Entry::Vacant(vacant) => {
                vacant.insert(next);
                self.fates.push(Fate::default());
                next
            }
            Entry::Occupied(known) => {
                // A message that was written twice stays.
                let fate = *known.get();
                self.fates[fate as usize].stays = true;
                fate
            }
        }
    }

    fn entry(&mut self, queue: u64, seq: u64, message: u64) -> u32 {
        let Some(&fate) = self.messages.get(&message) else {
            self.name(message);
            return NONE;
        };
        self.fates[fate as usize].entries += 1;
        if let Some(replaced) = self.entries.insert((queue, seq), fate) {
            self.fates[replaced as usize].stays = true;
            self.fates[fate as usize].stays = true;
        }
        fate
    }

    fn remove(&mut self, index: &Index, queue: u64, seq: u64) -> u32 {
        let Some(fate) = self.entries.remove(&(queue, seq)) else { return NONE };
        let known = &mut self.fates[fate as usize];
        known.removed += 1;
        // It has replaced an older entry, whose removal must be written.
        known.stays |= index.has_entry(queue, seq);
        fate
    }

    /// A record that stays refers to a message.
    fn name(&mut self, message: u64) -> u32 {
        match self.messages.get(&message) {
            Some(&fate) => self.fates[fate as usize].stays = true,
            None if message != 0 => self.early.push(message),
            None => {}
        }
        NONE
    }

    fn keep_early(&mut self) {
        for message in self.early.drain(..) {
            if let Some(&fate) = self.messages.get(&message) {
                self.fates[fate as usize].stays = true;
            }
        }
    }

    fn append_rest(&self, taken: &[Vec<u8>], into: &mut Vec<u8>) -> LeftOut {
        let mut left_out = LeftOut::default();
        let mut spans = self.spans.iter();
        for records in taken {
            let (mut begin, mut end) = (0, 0);
            while end < records.len() {
                // Invariant: there is a span for each record.
                let Some(span) = spans.next() else { break };
                let next = end + span.bytes as usize;
                let fate = self.fates.get(span.fate as usize);
                if fate.is_some_and(|fate| fate.is_left_out()) {
                    into.extend_from_slice(&records[begin..end]);
                    begin = next;
                    left_out.records += 1;
                    left_out.bytes += u64::from(span.bytes);
                } else if span.is_message {
                    into.extend_from_slice(&records[begin..end]);
                    append_message(&records[end..next], into);
                    begin = next;
                }
                end = next;
            }
            into.extend_from_slice(&records[begin..]);
        }
        left_out
    }

    fn forget(&mut self) {
        self.fates.clear();
        self.messages.clear();
        self.entries.clear();
        self.early.clear();
        self.spans.clear();
        if self.spans.capacity() > KEPT_RECORDS {
            *self = Self { rest: self.rest, ..Self::default() };
        }
    }
}

/// Tables for more records than this are freed.
const KEPT_RECORDS: usize = 1 << 16;

fn append_all(taken: &[Vec<u8>], into: &mut Vec<u8>) -> LeftOut {
    for records in taken {
        let mut begin = 0;
        for located in Records::new(records).map_while(Result::ok) {
            if let Decoded::Message { .. } = located.record {
                into.extend_from_slice(&records[begin..located.offset]);
                append_message(located.bytes, into);
                begin = located.offset + located.bytes.len();
            }
        }
        into.extend_from_slice(&records[begin..]);
    }
    LeftOut::default()
}

/// Appends a message, with its checksum.
fn append_message(message: &[u8], into: &mut Vec<u8>) {
    let begin = into.len();
    into.extend_from_slice(message);
    sum(&mut into[begin..]);
}

#[cfg(test)]
mod tests;
