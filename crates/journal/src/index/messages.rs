//! Messages: the place and the reference count of each.
//!
//! Numbers are consecutive and close ones live at the same time, so they are kept in pages of 64: a
//! bit for each number present, and its slot. That is 16 bytes per message, and a table of pages
//! that is small enough to grow without a pause.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::Hashing;

const PAGE_BITS: u32 = 6;
const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageSlot {
    /// The place of its record. Undefined while `len` is 0.
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    /// Bytes of its record; 0 if an entry preceded it.
    pub(crate) len: u32,
    refs: u32,
}

/// Nothing has referred to it yet.
const FRESH: u32 = 1 << 31;
/// It is in the table of open messages.
const OPEN: u32 = 1 << 30;
const COUNT: u32 = OPEN - 1;

impl MessageSlot {
    /// A message that is referred to before it is there.
    pub(super) const ABSENT: Self = Self { segment: 0, offset: 0, len: 0, refs: 0 };

    /// A message that nothing refers to yet.
    pub(super) const NEW: Self = Self { refs: FRESH, ..Self::ABSENT };

    pub(super) const fn has_record(&self) -> bool {
        self.len > 0
    }

    /// The record is needed: something refers to it, or may soon.
    pub(super) const fn is_live(&self) -> bool {
        self.refs != 0 && self.has_record()
    }

    pub(super) const fn is_fresh(&self) -> bool {
        self.refs & FRESH != 0
    }

    pub(super) const fn is_open(&self) -> bool {
        self.refs & OPEN != 0
    }

    /// Nothing refers to it, and something did.
    pub(super) const fn is_unreferenced(&self) -> bool {
        self.refs == 0
    }

    pub(super) fn set_open(&mut self, open: bool) {
        self.refs = if open { self.refs | OPEN } else { self.refs & !OPEN } & !FRESH;
    }

    /// One more refers to it.
    pub(super) fn add(&mut self) {
        self.refs &= !FRESH;
        // The count saturates: a message with a thousand million references is never removed.
        if self.refs & COUNT < COUNT {
            self.refs += 1;
        }
    }

    /// One less refers to it.
    pub(super) fn subtract(&mut self) {
        let count = self.refs & COUNT;
        if count > 0 && count < COUNT {
            self.refs -= 1;
        }
    }

    pub(super) fn forget_record(&mut self) {
        self.len = 0;
    }
}

#[derive(Default)]
struct Page {
    present: u64,
    /// One for each bit that is set, in their order.
    slots: Vec<MessageSlot>,
}

impl Page {
    fn rank(&self, bit: u64) -> usize {
        (self.present & (bit - 1)).count_ones() as usize
    }
}

/// All messages.
#[derive(Default)]
pub(super) struct Messages {
    pages: HashMap<u64, Page, Hashing>,
    len: usize,
}

const fn split(id: u64) -> (u64, u64) {
    (id >> PAGE_BITS, 1 << (id & PAGE_MASK))
}

impl Messages {
    #[cfg(test)]
    const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, id: u64) -> Option<&MessageSlot> {
        let (page, bit) = split(id);
        let page = self.pages.get(&page)?;
        if page.present & bit == 0 { None } else { page.slots.get(page.rank(bit)) }
    }

    /// The slot of `id`; if there is none, `new`.
    pub(super) fn get_or_insert(&mut self, id: u64, new: MessageSlot) -> &mut MessageSlot {
        let (page, bit) = split(id);
        let page = self.pages.entry(page).or_default();
        let rank = page.rank(bit);
        if page.present & bit == 0 {
            page.present |= bit;
            page.slots.insert(rank, new);
            self.len += 1;
        }
        // Invariant: there is a slot for each bit, and the bit is set.
        &mut page.slots[rank]
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut MessageSlot> {
        let (page, bit) = split(id);
        let page = self.pages.get_mut(&page)?;
        let rank = page.rank(bit);
        if page.present & bit == 0 { None } else { page.slots.get_mut(rank) }
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<MessageSlot> {
        let (page, bit) = split(id);
        let Entry::Occupied(mut occupied) = self.pages.entry(page) else { return None };
        let page = occupied.get_mut();
        if page.present & bit == 0 {
            return None;
        }
        let slot = page.slots.remove(page.rank(bit));
        page.present &= !bit;
        self.len -= 1;
        if page.slots.is_empty() {
            occupied.remove();
        } else if page.slots.capacity() >= 4 * page.slots.len() {
            // A few that live long must not hold the room of 64.
            page.slots.shrink_to_fit();
        }
        Some(slot)
    }

    /// All messages, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &MessageSlot)> {
        self.pages.iter().flat_map(|(number, page)| {
            let bits = (0..1 << PAGE_BITS).filter(|bit| page.present & (1 << bit) != 0);
            bits.map(move |bit| (number << PAGE_BITS) | bit).zip(&page.slots)
        })
    }

    /// Removes those of which `keep` is false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(u64, &mut MessageSlot) -> bool) {
        let Self { pages, len } = self;
        pages.retain(|number, page| {
            let mut bits = page.present;
            let mut kept = 0;
            page.slots.retain_mut(|slot| {
                let bit = bits & bits.wrapping_neg();
                bits &= !bit;
                let keeps = keep((number << PAGE_BITS) | u64::from(bit.trailing_zeros()), slot);
                kept |= if keeps { bit } else { 0 };
                keeps
            });
            *len -= (page.present ^ kept).count_ones() as usize;
            page.present = kept;
            !page.slots.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_table_of_slots_is_a_map() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut messages = Messages::default();
        let mut model = BTreeMap::new();
        for step in 0..20_000_u32 {
            let id = random.u64(1..1_000);
            if random.bool() {
                let slot = MessageSlot { segment: step, offset: 1, len: 2, refs: 1 };
                *messages.get_or_insert(id, MessageSlot::NEW) = slot;
                model.insert(id, slot);
            } else {
                assert_eq!(messages.remove(id), model.remove(&id));
            }
            let id = random.u64(1..1_000);
            assert_eq!(messages.get(id), model.get(&id));
            assert_eq!(messages.len(), model.len());
        }
        let mut all: Vec<_> = messages.iter().map(|(id, slot)| (id, *slot)).collect();
        all.sort_by_key(|(id, _)| *id);
        assert_eq!(all, model.iter().map(|(id, slot)| (*id, *slot)).collect::<Vec<_>>());
        messages.retain(|id, _| id % 3 == 0);
        model.retain(|id, _| id % 3 == 0);
        assert_eq!(messages.len(), model.len());
        assert!((1..1_000).all(|id| messages.get(id) == model.get(&id)));
    }

    #[test]
    fn pages_that_are_empty_are_given_back() {
        let mut messages = Messages::default();
        for id in 1..10_000 {
            messages.get_or_insert(id, MessageSlot::NEW);
        }
        for id in 1..10_000 {
            assert!(messages.remove(id).is_some());
        }
        assert!(messages.pages.is_empty());
    }

    #[test]
    fn references_are_counted_beside_marks() {
        let mut slot = MessageSlot::NEW;
        slot.len = 1;
        assert!(slot.is_fresh() && slot.is_live());
        slot.set_open(true);
        assert!(slot.is_open() && !slot.is_fresh());
        slot.add();
        slot.set_open(false);
        assert!(slot.is_live());
        slot.subtract();
        assert!(slot.is_unreferenced());
        slot.subtract();
        assert!(slot.is_unreferenced());
    }
}
