//! The sessions of this shard: found by client or by slot, from their making to their end.

mod lifetime;
mod session;

use std::ops::{Index, IndexMut};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use slab::Slab;

use crate::keys::{ClientKey, SessionRef, SessionSlot};

pub(super) use session::Session;

/// Owns the sessions and the numbers that tell them apart.
#[derive(Default)]
pub(super) struct Sessions {
    slots: Slab<Box<Session>>,
    by_client: HashMap<ClientKey, SessionSlot, RandomState>,
    newest_generation: u32,
}

impl Sessions {
    #[inline]
    pub(super) fn get(&self, slot: SessionSlot) -> Option<&Session> {
        self.slots.get(slot.index()).map(|session| &**session)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: SessionSlot) -> Option<&mut Session> {
        self.slots.get_mut(slot.index()).map(|session| &mut **session)
    }

    pub(super) fn contains(&self, slot: SessionSlot) -> bool {
        self.slots.contains(slot.index())
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// All slots ever used are below this.
    pub(super) fn slots_end(&self) -> usize {
        self.slots.capacity()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionSlot, &Session)> {
        self.slots.iter().map(|(slot, session)| (SessionSlot::new(slot as u32), &**session))
    }

    /// The session of a client.
    pub(super) fn find(&self, client: &ClientKey) -> Option<SessionSlot> {
        self.by_client.get(client).copied()
    }

    #[cfg(feature = "sim")]
    pub(super) fn clients_len(&self) -> usize {
        self.by_client.len()
    }

    /// The generation of the newest session: any later one has a greater one.
    #[inline]
    pub(super) fn newest_generation(&self) -> u32 {
        self.newest_generation
    }

    /// A session of this shard, numbered `shard`, as other shards and later events name it.
    pub(super) fn reference(&self, shard: usize, slot: SessionSlot) -> SessionRef {
        SessionRef { shard: shard as u16, slot, generation: self[slot].generation }
    }

    /// The session's slot, if it still is the session that was meant.
    pub(super) fn resolve(&self, session: SessionRef) -> Option<SessionSlot> {
        let found = self.get(session.slot)?;
        (found.generation == session.generation).then_some(session.slot)
    }

    /// Adds a session, which gets a generation of its own.
    pub(super) fn insert(&mut self, mut session: Session) -> SessionSlot {
        session.generation = self.next_generation();
        let key = session.key.clone();
        let slot = SessionSlot::new(self.slots.insert(Box::new(session)) as u32);
        self.by_client.insert(key, slot);
        slot
    }

    /// Gives a session another generation: what is on its way to it misses it.
    pub(super) fn renew(&mut self, slot: SessionSlot) {
        self[slot].generation = self.next_generation();
    }

    pub(super) fn remove(&mut self, slot: SessionSlot) -> Box<Session> {
        let session = self.slots.remove(slot.index());
        self.by_client.remove(&session.key);
        session
    }

    fn next_generation(&mut self) -> u32 {
        self.newest_generation = self.newest_generation.wrapping_add(1);
        self.newest_generation
    }
}

impl Index<SessionSlot> for Sessions {
    type Output = Session;

    #[inline]
    fn index(&self, slot: SessionSlot) -> &Session {
        &self.slots[slot.index()]
    }
}

impl IndexMut<SessionSlot> for Sessions {
    #[inline]
    fn index_mut(&mut self, slot: SessionSlot) -> &mut Session {
        &mut self.slots[slot.index()]
    }
}
