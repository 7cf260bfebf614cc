//! The connections of one loop.

use crate::conn::{Conn, ConnId};

struct Slot<S> {
    generation: u32,
    conn: Option<Conn<S>>,
}

/// Slots that are allocated together. A list of all slots would be copied when it is full, in one
/// turn.
const CHUNK_LEN: usize = 256;

/// A slab of connections; each index has a generation, so that an outdated [`ConnId`] is
/// recognised.
pub(crate) struct Connections<S> {
    /// All are full, except the last one.
    chunks: Vec<Vec<Slot<S>>>,
    free: Vec<u32>,
}

impl<S> Connections<S> {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots_len() - self.free.len()
    }

    fn slots_len(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::len);
        self.chunks.len().saturating_sub(1) * CHUNK_LEN + last
    }

    #[inline]
    fn slot(&self, index: usize) -> Option<&Slot<S>> {
        self.chunks.get(index / CHUNK_LEN)?.get(index % CHUNK_LEN)
    }

    #[inline]
    fn slot_mut(&mut self, index: usize) -> Option<&mut Slot<S>> {
        self.chunks.get_mut(index / CHUNK_LEN)?.get_mut(index % CHUNK_LEN)
    }

    /// Adds a slot and returns its index.
    fn add_slot(&mut self, conn: Conn<S>) -> u32 {
        let index = self.slots_len();
        if index == self.chunks.len() * CHUNK_LEN {
            self.chunks.push(Vec::with_capacity(CHUNK_LEN));
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(Slot { generation: 0, conn: Some(conn) });
        }
        index as u32
    }

    pub(crate) fn insert(&mut self, conn: Conn<S>) -> ConnId {
        let Some(index) = self.free.pop() else {
            return ConnId::new(self.add_slot(conn), 0);
        };
        // Invariant: an index is only freed after its slot was added.
        let slot = self.slot_mut(index as usize).expect("a free slot exists");
        slot.conn = Some(conn);
        ConnId::new(index, slot.generation)
    }

    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Conn<S>> {
        let slot = self.slot_mut(id.index())?;
        if slot.generation != id.generation() {
            return None;
        }
        let conn = slot.conn.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index() as u32);
        Some(conn)
    }

    #[inline]
    pub(crate) fn get(&self, id: ConnId) -> Option<&Conn<S>> {
        let slot = self.slot(id.index())?;
        if slot.generation == id.generation() { slot.conn.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn<S>> {
        let slot = self.slot_mut(id.index())?;
        if slot.generation == id.generation() { slot.conn.as_mut() } else { None }
    }

    /// The connection with this index, which events carry as their token.
    #[inline]
    pub(crate) fn at_index(&mut self, index: usize) -> Option<(ConnId, &mut Conn<S>)> {
        let slot = self.slot_mut(index)?;
        let id = ConnId::new(index as u32, slot.generation);
        slot.conn.as_mut().map(|conn| (id, conn))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.chunks
            .iter()
            .flatten()
            .enumerate()
            .filter(|(_, slot)| slot.conn.is_some())
            .map(|(index, slot)| ConnId::new(index as u32, slot.generation))
    }
}
