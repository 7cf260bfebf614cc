//! The connections of one loop.

use crate::conn::{Conn, ConnId};

struct Slot<S> {
    generation: u32,
    conn: Option<Conn<S>>,
}

/// A slab of connections; each index has a generation, so that an outdated [`ConnId`] is
/// recognised.
pub(crate) struct Connections<S> {
    slots: Vec<Slot<S>>,
    free: Vec<u32>,
}

impl<S> Connections<S> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, conn: Conn<S>) -> ConnId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, conn: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.conn = Some(conn);
        ConnId::new(index, slot.generation)
    }

    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Conn<S>> {
        let slot = self.slots.get_mut(id.index())?;
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
        let slot = self.slots.get(id.index())?;
        if slot.generation == id.generation() { slot.conn.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn<S>> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation == id.generation() { slot.conn.as_mut() } else { None }
    }

    /// The connection with this index, which events carry as their token.
    #[inline]
    pub(crate) fn at_index(&mut self, index: usize) -> Option<(ConnId, &mut Conn<S>)> {
        let slot = self.slots.get_mut(index)?;
        let id = ConnId::new(index as u32, slot.generation);
        slot.conn.as_mut().map(|conn| (id, conn))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.conn.is_some())
            .map(|(index, slot)| ConnId::new(index as u32, slot.generation))
    }
}
