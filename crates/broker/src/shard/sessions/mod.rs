//! The sessions of this shard: found by client or by slot, from their making to their end.

mod lifetime;
mod partial;
mod session;
mod terms;

use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tacho_net::ConnId;
use tacho_topic::{GradualMap, GradualSlab};

use crate::durable::ShardFlags;
use crate::keys::{ClientKey, SessionRef, SessionSlot};
use crate::shard::Net;
use crate::shard::timers::TimerToken;
use crate::stats::ShardStats;

pub(super) use session::{DroppedInKeeping, Peer, Session};
pub(super) use terms::{Explanations, PeerTerms, PublishForm};

/// Owns the sessions and the numbers that tell them apart, and counts what they have: connections,
/// places of messages, places in the journal.
pub(super) struct Sessions {
    /// Without a session, the slot is that of one that has ended, kept until its subscriptions are
    /// removed.
    slots: GradualSlab<Option<Box<Session>>>,
    /// Slots without a session.
    ended: usize,
    by_client: GradualMap<ClientKey, SessionSlot>,
    newest_generation: u32,
    /// The sum of [`Session::places`].
    places: u64,
    /// Sessions whose queue is full, or has room again, since that was last asked; some may have
    /// ended.
    level_changes: Vec<SessionSlot>,
    stats: Arc<ShardStats>,
    /// Where durable sessions are counted.
    flags: Option<Arc<ShardFlags>>,
}

impl Sessions {
    pub(super) fn new(stats: Arc<ShardStats>, flags: Option<Arc<ShardFlags>>) -> Self {
        Self {
            slots: GradualSlab::default(),
            ended: 0,
            by_client: GradualMap::default(),
            newest_generation: 0,
            places: 0,
            level_changes: Vec::new(),
            stats,
            flags,
        }
    }

    #[inline]
    pub(super) fn get(&self, slot: SessionSlot) -> Option<&Session> {
        self.slots.get(slot.index())?.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: SessionSlot) -> Option<&mut Session> {
        self.slots.get_mut(slot.index())?.as_deref_mut()
    }

    pub(super) fn contains(&self, slot: SessionSlot) -> bool {
        self.get(slot).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.ended
    }

    /// All slots ever used are below this.
    pub(super) fn slots_end(&self) -> usize {
        self.slots.places_end()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionSlot, &Session)> {
        let slots = self.slots.iter();
        slots.filter_map(|(slot, session)| {
            Some((SessionSlot::new(slot as u32), &**session.as_ref()?))
        })
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

    /// Adds a session, which gets a generation of its own. A durable one counts from here on: its
    /// subscriptions become visible to routing later.
    pub(super) fn insert(&mut self, mut session: Session) -> SessionSlot {
        session.generation = self.next_generation();
        if let Some(flags) = self.flags.as_ref().filter(|_| session.journal.is_durable()) {
            flags.sessions.fetch_add(1, Ordering::SeqCst);
        }
        let key = session.key().clone();
        let slot = SessionSlot::new(self.slots.insert(Some(Box::new(session))) as u32);
        self.by_client.insert(key, slot);
        slot
    }

    /// Whether the session that had this generation still has the slot.
    #[inline]
    pub(super) fn is_current(&self, slot: SessionSlot, generation: u32) -> bool {
        self.get(slot).is_some_and(|session| session.generation == generation)
    }

    /// Makes sure a timer fires no later than the session's next deadline. A timer that fires too
    /// early is armed again: activity need not touch the wheel.
    pub(super) fn arm_timer(&mut self, net: &mut Net, slot: SessionSlot) {
        let session = &mut self[slot];
        let Some(deadline_ns) = session.machine.next_timeout() else { return };
        let token = TimerToken::Session { slot, generation: session.generation };
        session.timer.arm(net, deadline_ns, 0, token);
    }

    /// A session's timer has fired; `generation` has as many bits as fit into a timer. True if the
    /// timer was the session's own.
    pub(super) fn timer_fired(&mut self, slot: SessionSlot, generation: u32) -> bool {
        let found = self.get_mut(slot);
        let own = found.filter(|s| TimerToken::is_generation(s.generation, generation));
        own.map(|session| session.timer.fired()).is_some()
    }

    /// Ends a session. No other session gets its slot before that is [released](Self::release).
    pub(super) fn end(&mut self, slot: SessionSlot) -> Box<Session> {
        // Invariant: callers know that the session exists.
        let session = self.slots[slot.index()].take().expect("the session has not ended");
        self.ended += 1;
        self.by_client.remove(session.key());
        self.places -= u64::from(session.places);
        if let Some(flags) = self.flags.as_ref().filter(|_| session.journal.is_durable()) {
            flags.sessions.fetch_sub(1, Ordering::SeqCst);
        }
        session
    }

    /// Nothing refers to the slot of a session that has ended.
    pub(super) fn release(&mut self, slot: SessionSlot) {
        debug_assert!(!self.contains(slot), "its session has ended");
        self.slots.remove(slot.index());
        self.ended -= 1;
    }

    /// The session has a connection.
    pub(super) fn connect(&mut self, slot: SessionSlot, conn: ConnId) {
        if self[slot].connection.replace(conn).is_none() {
            self.stats.sessions_connected.increment();
        }
    }

    /// The session has no connection any more.
    pub(super) fn disconnect(&mut self, slot: SessionSlot) {
        self[slot].request.forget();
        if self[slot].connection.take().is_some() {
            self.stats.sessions_connected.decrement();
        }
    }

    /// Counts the places that a session's messages take, if there is such a session, and notes
    /// whether its queue is full.
    #[inline]
    pub(super) fn count_places(&mut self, slot: SessionSlot) {
        self.settle(slot);
    }

    /// The same; and whether the session needs more than that its output moves.
    #[inline]
    pub(super) fn settle(&mut self, slot: SessionSlot) -> bool {
        let Some(session) = self.slots.get_mut(slot.index()).and_then(Option::as_mut) else {
            return false;
        };
        if session.note_level() {
            self.level_changes.push(slot);
        }
        let places = (session.machine.queue_len() + session.machine.inflight_len()) as u32;
        if places != session.places {
            let before = std::mem::replace(&mut session.places, places);
            self.places = self.places + u64::from(places) - u64::from(before);
        }
        session.needs_more()
    }

    /// Whether the queue of any session has become full or has room again.
    #[inline]
    pub(super) fn has_level_changes(&self) -> bool {
        !self.level_changes.is_empty()
    }

    /// The sessions whose queue has become full or has room again, some more than once; some may
    /// have ended.
    pub(super) fn take_level_changes(&mut self) -> Vec<SessionSlot> {
        std::mem::take(&mut self.level_changes)
    }

    /// The places that the messages of all sessions take, as last counted.
    #[inline]
    pub(super) fn places(&self) -> u64 {
        self.places
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
        // Invariant: callers know that the session exists, or look it up with `get`.
        self.get(slot).expect("the session has not ended")
    }
}

impl IndexMut<SessionSlot> for Sessions {
    #[inline]
    fn index_mut(&mut self, slot: SessionSlot) -> &mut Session {
        self.get_mut(slot).expect("the session has not ended")
    }
}
