//! Messages that the session's owner keeps elsewhere until they are needed.

use super::Session;
use crate::{Delivery, Payload, Persist};

impl<M: Payload> Session<M> {
    /// The messages that are not loaded, with their numbers, in the order in which they are going
    /// to be sent. Finding the first of them costs a look at every message loaded and not sent.
    pub fn unloaded(&self) -> impl Iterator<Item = (u64, &Delivery<M>)> {
        self.outgoing.unloaded()
    }

    /// Whether the next message to be sent is not loaded, so that nothing behind it gets on.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.outgoing.is_starved()
    }

    /// Hands messages that are not loaded to `load`, with their numbers, in the order of
    /// [`Session::unloaded`] and not more than `len_max`; those it can it replaces. Poll then.
    pub fn load(&mut self, len_max: usize, load: impl FnMut(u64, &mut M)) {
        self.outgoing.load(len_max, load);
    }

    /// Hands the loaded messages of QoS 1 and 2 from position `from` of the queue on to `unload`,
    /// with their numbers, to be replaced by what only says where they are. Those of QoS 0 that are
    /// here may be nowhere else.
    pub fn unload(&mut self, from: usize, unload: impl FnMut(u64, &mut M)) {
        self.outgoing.unload(from, unload);
    }

    /// Gives up a message that [`Session::unloaded`] named and that cannot be loaded. False if it
    /// has left already. Poll then: what is behind it may leave.
    pub fn discard(&mut self, seq: u64, persist: &mut impl Persist<M>) -> bool {
        self.outgoing.discard(seq, persist)
    }
}
