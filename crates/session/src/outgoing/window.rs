//! Packet identifiers in use: a ring in which the slot of an identifier is computed.
//!
//! Identifiers are assigned consecutively, so the slot of an identifier is its distance from the
//! oldest one. Finished exchanges stay as tombstones until they reach the front. An exchange that
//! blocks the front while many behind it finish is moved to the stragglers, so the length of the
//! ring stays within twice the window.

use std::collections::VecDeque;

use tacho_codec::PacketId;

use super::slot::{Slot, Stage};

#[cfg(test)]
mod tests;

/// A ring shorter than this never moves its front to the stragglers.
const SPAN_MIN: usize = 64;

/// Identifiers are 1..=65,535.
const IDS: usize = 65_535;

/// The place of an identifier.
#[derive(Clone, Copy, Debug)]
enum Place {
    Ring(usize),
    Straggler(usize),
}

/// All identifiers in use, oldest first, and the position of this connection in sending them.
#[derive(Debug)]
pub(crate) struct Window<M> {
    ring: VecDeque<Slot<M>>,
    stragglers: Option<Box<Stragglers<M>>>,
    /// The identifier of `ring[0]`, minus 1.
    base: u16,
    /// Slots of the ring before this one are sent on this connection, or need no sending.
    cursor: usize,
    /// The number of exchanges that are not over.
    live: u32,
}

/// Old exchanges moved out of the ring, oldest first. There are at most as many as the width of the
/// window, and usually none, so they are searched linearly.
#[derive(Debug)]
struct Stragglers<M> {
    slots: Vec<(PacketId, Slot<M>)>,
    cursor: usize,
}

impl<M> Window<M> {
    pub(crate) const fn new() -> Self {
        Self { ring: VecDeque::new(), stragglers: None, base: 0, cursor: 0, live: 0 }
    }

    /// The window of a session without a connection: `slots` are live, have different identifiers,
    /// and are in the order of sending. `width` is the maximum number of them on a connection.
    ///
    /// The newest slots form the ring, as far back as their identifiers ascend and the ring does
    /// not get too long; older ones are stragglers. New identifiers start behind the newest one.
    pub(crate) fn restore(mut slots: Vec<(PacketId, Slot<M>)>, width: usize) -> Self {
        let mut window = Self::new();
        window.live = slots.len() as u32;
        let Some(&(newest, _)) = slots.last() else { return window };
        let age = |slot: &(PacketId, Slot<M>)| distance(slot.0, newest);
        let mut first = slots.len() - 1;
        while first > 0
            && age(&slots[first - 1]) > age(&slots[first])
            && age(&slots[first - 1]) < span_max(width)
        {
            first -= 1;
        }
        window.base = slots[first].0.get() - 1;
        let ring_len = age(&slots[first]) + 1;
        window.ring.resize_with(ring_len, Slot::done);
        for slot in slots.drain(first..) {
            // Invariant: their ages are distinct and at most that of the first one.
            let index = ring_len - 1 - age(&slot);
            window.ring[index] = slot.1;
        }
        if !slots.is_empty() {
            window.stragglers = Some(Box::new(Stragglers { slots, cursor: 0 }));
        }
        window
    }

    #[inline]
    pub(crate) const fn live(&self) -> usize {
        self.live as usize
    }

    /// Drops every exchange; identifiers continue behind the last one.
    pub(crate) fn clear(&mut self) {
        self.base = ((usize::from(self.base) + self.ring.len()) % IDS) as u16;
        self.ring = VecDeque::new();
        self.stragglers = None;
        self.cursor = 0;
        self.live = 0;
    }

    pub(crate) fn release_memory(&mut self) {
        if self.ring.is_empty() {
            self.ring = VecDeque::new();
        }
    }

    /// Starts a connection: everything in flight is to be retransmitted, nothing uses credit.
    pub(crate) fn rewind(&mut self) {
        self.cursor = 0;
        if let Some(stragglers) = &mut self.stragglers {
            stragglers.cursor = 0;
            stragglers.slots.retain(|(_, slot)| slot.stage != Stage::Reserved);
            stragglers.slots.iter_mut().for_each(|(_, slot)| slot.rewind());
        }
        self.stragglers = self.stragglers.take().filter(|stragglers| !stragglers.slots.is_empty());
        self.ring.iter_mut().for_each(Slot::rewind);
        self.pop_done();
    }

    /// Whether everything in the window is sent on this connection.
    #[inline]
    pub(crate) fn is_sent(&self) -> bool {
        self.cursor == self.ring.len() && !self.has_unsent_straggler()
    }

    #[inline]
    fn has_unsent_straggler(&self) -> bool {
        self.stragglers.as_ref().is_some_and(|s| s.cursor < s.slots.len())
    }

    /// Whether `make_room` would find room.
    #[inline]
    pub(crate) fn has_room(&self, width: usize) -> bool {
        self.ids_known() < IDS - 1 && (self.ring.len() < span_max(width) || self.cursor > 0)
    }

    /// Makes room for a `push`. False if the oldest exchanges wait to be sent, or no identifier is
    /// free. `width` is the maximum number of live slots.
    #[inline]
    pub(crate) fn make_room(&mut self, width: usize) -> bool {
        let has_room = self.has_room(width);
        if has_room && self.ring.len() >= span_max(width) {
            self.move_front_aside();
        }
        has_room
    }

    /// Appends `slot` under the next free identifier, after `make_room`.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot<M>) -> (PacketId, &mut Slot<M>) {
        if self.stragglers.is_some() {
            self.skip_stragglers();
        }
        let packet_id = self.id_at(self.ring.len());
        self.live += u32::from(slot.is_live());
        let needs_no_sending = !slot.is_live() && self.cursor == self.ring.len();
        self.cursor += usize::from(needs_no_sending);
        (packet_id, self.ring.push_back_mut(slot))
    }

    /// Skips identifiers that belong to stragglers.
    fn skip_stragglers(&mut self) {
        while self.is_straggler(self.id_at(self.ring.len())) {
            if self.ring.is_empty() {
                self.base = next_base(self.base);
            } else {
                self.cursor += usize::from(self.cursor == self.ring.len());
                self.ring.push_back(Slot::done());
            }
        }
    }

    fn ids_known(&self) -> usize {
        self.ring.len() + self.stragglers.as_ref().map_or(0, |s| s.slots.len())
    }

    /// The slot of an identifier in use.
    #[inline]
    pub(crate) fn get_mut(&mut self, packet_id: PacketId) -> Option<&mut Slot<M>> {
        match self.find(packet_id)? {
            Place::Ring(index) => self.ring.get_mut(index),
            Place::Straggler(index) => {
                self.stragglers.as_mut()?.slots.get_mut(index).map(|(_, slot)| slot)
            }
        }
    }

    /// Frees an identifier and returns its slot.
    #[inline]
    pub(crate) fn finish(&mut self, packet_id: PacketId) -> Option<Slot<M>> {
        let slot = match self.find(packet_id)? {
            // Most are finished in order.
            Place::Ring(0) => {
                let slot = self.pop_front()?;
                self.pop_done();
                slot
            }
            Place::Ring(index) => {
                let slot = std::mem::replace(self.ring.get_mut(index)?, Slot::done());
                self.pop_done();
                slot
            }
            Place::Straggler(index) => {
                let stragglers = self.stragglers.as_mut()?;
                let (_, slot) = stragglers.slots.remove(index);
                stragglers.cursor -= usize::from(index < stragglers.cursor);
                if stragglers.slots.is_empty() {
                    self.stragglers = None;
                }
                slot
            }
        };
        self.live -= u32::from(slot.is_live());
        Some(slot)
    }

    /// The oldest slot that is not sent on this connection. Amortized constant time: the cursor
    /// moves past skipped slots once per connection.
    #[inline]
    pub(crate) fn next_unsent(&mut self) -> Option<(PacketId, &mut Slot<M>)> {
        if self.stragglers.is_some() && self.pass_sent_stragglers() {
            let stragglers = self.stragglers.as_mut()?;
            let (packet_id, slot) = stragglers.slots.get_mut(stragglers.cursor)?;
            return Some((*packet_id, slot));
        }
        while self.ring.get(self.cursor).is_some_and(|slot| !slot.is_unsent()) {
            self.cursor += 1;
        }
        let packet_id = self.id_at(self.cursor);
        self.ring.get_mut(self.cursor).map(|slot| (packet_id, slot))
    }

    /// Moves past stragglers that need no sending. False if no unsent one is left.
    #[cold]
    fn pass_sent_stragglers(&mut self) -> bool {
        if let Some(stragglers) = &mut self.stragglers {
            let unsent = stragglers.slots[stragglers.cursor..].iter();
            stragglers.cursor += unsent.take_while(|(_, slot)| !slot.is_unsent()).count();
        }
        self.has_unsent_straggler()
    }

    /// Marks the slot just pushed as sent; everything before it is sent.
    #[inline]
    pub(crate) fn send_newest(&mut self, now_ns: u64) {
        debug_assert!(self.cursor + 1 == self.ring.len() && !self.has_unsent_straggler());
        if let Some(slot) = self.ring.back_mut() {
            slot.mark_sent(now_ns);
        }
        self.cursor = self.ring.len();
    }

    /// Marks the slot returned by `next_unsent` as sent.
    #[inline]
    pub(crate) fn advance(&mut self) {
        if let Some(stragglers) = &mut self.stragglers
            && stragglers.cursor < stragglers.slots.len()
        {
            stragglers.cursor += 1;
        } else {
            self.cursor += 1;
        }
    }

    /// Like `next_unsent`, but immutable.
    pub(crate) fn peek_unsent(&self) -> Option<&Slot<M>> {
        self.unsent().next()
    }

    /// All exchanges, oldest first; some may be over.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot<M>> {
        let stragglers = self.stragglers.iter().flat_map(|stragglers| &stragglers.slots);
        stragglers.map(|(_, slot)| slot).chain(&self.ring)
    }

    /// Like `slots`, mutable and with identifiers.
    pub(crate) fn slots_mut(&mut self) -> impl Iterator<Item = (PacketId, &mut Slot<M>)> {
        let base = self.base;
        let stragglers = self.stragglers.iter_mut().flat_map(|stragglers| &mut stragglers.slots);
        let ring = self.ring.iter_mut().enumerate();
        stragglers
            .map(|(packet_id, slot)| (*packet_id, slot))
            .chain(ring.map(move |(index, slot)| (id_after(base, index), slot)))
    }

    /// The slots that are not sent on this connection, oldest first.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = &Slot<M>> {
        let stragglers = self.stragglers.iter().flat_map(|s| s.slots.iter().skip(s.cursor));
        let ring = self.ring.range(self.cursor.min(self.ring.len())..);
        stragglers.map(|(_, slot)| slot).chain(ring).filter(|slot| slot.is_unsent())
    }

    /// Like `unsent`, mutable and with identifiers.
    pub(crate) fn unsent_mut(&mut self) -> impl Iterator<Item = (PacketId, &mut Slot<M>)> {
        let (base, cursor) = (self.base, self.cursor.min(self.ring.len()));
        let stragglers = self.stragglers.iter_mut().flat_map(|s| s.slots.iter_mut().skip(s.cursor));
        let ring = self.ring.range_mut(cursor..).enumerate();
        stragglers
            .map(|(packet_id, slot)| (*packet_id, slot))
            .chain(ring.map(move |(index, slot)| (id_after(base, cursor + index), slot)))
            .filter(|(_, slot)| slot.is_unsent())
    }

    /// Removes and returns all slots, oldest first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (PacketId, Slot<M>)> + use<M> {
        let stragglers = self.stragglers.take().map(|stragglers| stragglers.slots);
        let base = self.base;
        let ring = std::mem::take(&mut self.ring);
        self.base = id_after(base, ring.len()).get() - 1;
        self.cursor = 0;
        self.live = 0;
        let ring = ring.into_iter().enumerate();
        let ring = ring.map(move |(index, slot)| (id_after(base, index), slot));
        stragglers.into_iter().flatten().chain(ring)
    }

    #[inline]
    fn id_at(&self, index: usize) -> PacketId {
        id_after(self.base, index)
    }

    #[inline]
    fn find(&self, packet_id: PacketId) -> Option<Place> {
        let index = (usize::from(packet_id.get() - 1) + IDS - usize::from(self.base)) % IDS;
        if self.ring.get(index).is_some_and(|slot| slot.stage != Stage::Done) {
            return Some(Place::Ring(index));
        }
        let slots = &self.stragglers.as_ref()?.slots;
        slots.iter().position(|(id, _)| *id == packet_id).map(Place::Straggler)
    }

    fn is_straggler(&self, packet_id: PacketId) -> bool {
        self.stragglers.as_ref().is_some_and(|s| s.slots.iter().any(|(id, _)| *id == packet_id))
    }

    /// Moves the front, which is sent, to the stragglers.
    fn move_front_aside(&mut self) {
        let front_id = self.id_at(0);
        let Some(front) = self.pop_front() else { return };
        let stragglers = self
            .stragglers
            .get_or_insert_with(|| Box::new(Stragglers { slots: Vec::new(), cursor: 0 }));
        // Invariant: the cursor of the ring moves only after all stragglers are sent.
        stragglers.slots.push((front_id, front));
        stragglers.cursor += 1;
        self.pop_done();
    }

    #[inline]
    fn pop_done(&mut self) {
        while self.ring.front().is_some_and(|slot| slot.stage == Stage::Done) {
            self.pop_front();
        }
    }

    #[inline]
    fn pop_front(&mut self) -> Option<Slot<M>> {
        let front = self.ring.pop_front()?;
        self.base = next_base(self.base);
        self.cursor = self.cursor.saturating_sub(1);
        Some(front)
    }
}

/// The number of identifiers from `from` to `to`.
fn distance(from: PacketId, to: PacketId) -> usize {
    (usize::from(to.get()) + IDS - usize::from(from.get())) % IDS
}

/// The maximum length of the ring for a window of `width`.
#[inline]
fn span_max(width: usize) -> usize {
    (2 * width).clamp(SPAN_MIN, IDS)
}

/// The identifier of slot `index` of a ring with this base.
#[inline]
fn id_after(base: u16, index: usize) -> PacketId {
    let id = (usize::from(base) + index) % IDS + 1;
    // Invariant: 1 <= id <= 65,535.
    PacketId::new(id as u16).unwrap_or(PacketId::FIRST)
}

#[inline]
fn next_base(base: u16) -> u16 {
    ((usize::from(base) + 1) % IDS) as u16
}
