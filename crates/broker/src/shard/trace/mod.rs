//! Traces of this shard's clients and topics: which packets and decisions an operator follows; and
//! what is counted only while an operator wants to know.
//!
//! Without that each packet costs the look at a flag. With some, each session notes which of them
//! follow its client, so that the others cost a comparison more.

mod counts;
mod notes;

use std::cell::RefCell;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_net::ConnId;

use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};
use crate::topic_metrics::{TopicBits, TopicMetrics};
use crate::trace::{TraceBits, TraceMark, TraceSet};

use counts::PublishCounts;

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
    /// There is something to follow or to count.
    is_on: bool,
    set: Arc<TraceSet>,
    /// Filters whose messages are counted.
    topics: Arc<TopicMetrics>,
    publishes: RefCell<Option<PublishCounts>>,
    /// By [`ConnId::index`]: no more than there are connections.
    openings: RefCell<HashMap<u32, Opening, RandomState>>,
    /// The topic of the last message, which traces take it, and for which filters it counts.
    last_topic: RefCell<Option<(Arc<str>, TraceBits, TopicBits)>>,
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

    /// What is followed or counted has changed.
    fn changed(&mut self) {
        let is_counted = !self.topics.is_empty() || self.publishes.borrow().is_some();
        self.is_on = is_counted || !self.set.is_empty();
        // A topic that is remembered for ever would be one that no message has any more.
        (self.last_topic, self.offered) = (RefCell::default(), RefCell::default());
    }

    /// The traces that take messages of a topic, and the filters for which they count.
    fn of_topic(&self, topic: &Arc<str>) -> (TraceBits, TopicBits) {
        let mut last = self.last_topic.borrow_mut();
        if let Some((known, traces, filters)) = &*last
            && Arc::ptr_eq(known, topic)
        {
            return (*traces, *filters);
        }
        let (traces, filters) = (self.set.of_topic(topic), self.topics.of_topic(topic));
        *last = Some((Arc::clone(topic), traces, filters));
        (traces, filters)
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
            self.traces.set = set;
            self.traces.openings = RefCell::default();
            self.traces.changed();
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
            bits => bits & self.traces.of_topic(topic).0,
        }
    }

    /// A session is offered a message: what becomes of it may have to be told.
    #[cold]
    pub(in crate::shard) fn note_offered(&self, net: &Net, slot: SessionSlot, topic: &Arc<str>) {
        let is_followed =
            self.traces_of_message(net, slot, topic) != 0 || !self.traces.topics.is_empty();
        *self.traces.offered.borrow_mut() = is_followed.then(|| Arc::clone(topic));
    }
}
