//! Traces of this shard's clients and topics: which packets and decisions an operator follows.
//!
//! Without traces each packet costs the look at a flag. With some, each session notes which of them
//! follow its client, so that the others cost a comparison more.

mod notes;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_net::ConnId;

use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};
use crate::trace::{TraceBits, TraceSet};

/// Which traces follow the client of a session, as noted when that was last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::shard) struct TraceMark {
    /// Of the traces; 0 is never one.
    version: u32,
    bits: TraceBits,
}

/// A client that is not connected yet and that traces follow.
struct Opening {
    conn: ConnId,
    version: u32,
    bits: TraceBits,
    client_id: Box<str>,
    user: Option<Box<str>>,
}

/// Owns the traces as this shard knows them.
#[derive(Default)]
pub(super) struct Traces {
    is_on: bool,
    set: Arc<TraceSet>,
    /// By [`ConnId::index`]: no more than there are connections.
    openings: RefCell<HashMap<u32, Opening, RandomState>>,
    /// The topic of the last message, and which traces take it.
    last_topic: RefCell<Option<(Arc<str>, TraceBits)>>,
    /// The topic of the message that a session is offered.
    offered: RefCell<Option<Arc<str>>>,
}

impl Traces {
    /// Whether there are any.
    #[inline]
    pub(super) const fn are_on(&self) -> bool {
        self.is_on
    }

    /// A connection has left this shard.
    #[inline]
    pub(super) fn connection_gone(&self, conn: ConnId) {
        if self.is_on {
            self.openings.borrow_mut().remove(&(conn.index() as u32));
        }
    }

    /// Those that take messages of a topic.
    fn of_topic(&self, topic: &Arc<str>) -> TraceBits {
        let mut last = self.last_topic.borrow_mut();
        if let Some((known, bits)) = &*last
            && Arc::ptr_eq(known, topic)
        {
            return *bits;
        }
        let bits = self.set.of_topic(topic);
        *last = Some((Arc::clone(topic), bits));
        bits
    }

    /// Those that follow a client that is not connected yet.
    fn of_opening<T>(&self, conn: ConnId, take: impl FnOnce(&Opening) -> T) -> Option<T> {
        let openings = self.openings.borrow();
        let opening = openings.get(&(conn.index() as u32))?;
        (opening.conn == conn && opening.version == self.set.version).then(|| take(opening))
    }
}

impl Shard {
    /// The traces from now on.
    pub(super) fn set_traces(&mut self, set: Arc<TraceSet>) {
        let age = set.version.wrapping_sub(self.traces.set.version).cast_signed();
        // Answers to operators may overtake each other.
        if age > 0 {
            self.traces = Traces { is_on: !set.is_empty(), set, ..Traces::default() };
        }
    }

    /// Which traces follow the client of a session, whatever their topics.
    #[inline]
    fn traces_of(&self, net: &Net, slot: SessionSlot) -> TraceBits {
        let mark = self.sessions[slot].trace.get();
        if mark.version == self.traces.set.version {
            return mark.bits;
        }
        self.look_for_traces(net, slot)
    }

    #[cold]
    fn look_for_traces(&self, net: &Net, slot: SessionSlot) -> TraceBits {
        let session = &self.sessions[slot];
        let names = (&*session.key().client_id, session.access.user_name());
        let address = || {
            let address = session.connection().and_then(|conn| net.peer_addr(conn));
            address.map(|address| address.ip())
        };
        let set = &self.traces.set;
        let bits = set.bits(|filter| filter.follows(names, address));
        session.trace.set(TraceMark { version: set.version, bits });
        bits
    }

    /// Which traces follow a message of this topic that comes from or goes to a session.
    #[inline]
    fn traces_of_message(&self, net: &Net, slot: SessionSlot, topic: &Arc<str>) -> TraceBits {
        match self.traces_of(net, slot) {
            0 => 0,
            bits => bits & self.traces.of_topic(topic),
        }
    }

    /// A session is offered a message: what becomes of it may have to be told.
    #[inline]
    pub(in crate::shard) fn note_offered(&self, net: &Net, slot: SessionSlot, topic: &Arc<str>) {
        if self.traces.is_on {
            let is_followed = self.traces_of_message(net, slot, topic) != 0;
            *self.traces.offered.borrow_mut() = is_followed.then(|| Arc::clone(topic));
        }
    }
}

/// A mark that changes while its session is only looked at.
pub(in crate::shard) type SessionTrace = Cell<TraceMark>;
