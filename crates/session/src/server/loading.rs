//! Messages that the session's owner keeps out of memory until they are needed.

use super::Session;
use crate::{Delivery, Payload, Persist};

impl<M: Payload> Session<M> {
    /// The messages that are not loaded, with their numbers, in the order of sending. Finding the
    /// first of them visits every message that is loaded and not sent.
    pub fn unloaded(&self) -> impl Iterator<Item = (u64, &Delivery<M>)> {
        self.outgoing.unloaded()
    }

    /// Whether the next message to send is not loaded, so that it blocks the messages behind it.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.outgoing.is_starved()
    }

    /// Passes up to `len_max` messages that are not loaded to `load`, with their numbers, in the
    /// order of [`Session::unloaded`]; `load` replaces those that it can. Then poll.
    pub fn load(&mut self, len_max: usize, load: impl FnMut(u64, &mut M)) {
        self.outgoing.load(len_max, load);
    }

    /// Passes the loaded messages of QoS 1 and 2 from position `from` of the queue on to `unload`,
    /// with their numbers, which replaces them by references to their storage. Messages of QoS 0
    /// are left out, since they may not be stored.
    pub fn unload(&mut self, from: usize, unload: impl FnMut(u64, &mut M)) {
        self.outgoing.unload(from, unload);
    }

    /// Discards a message that [`Session::unloaded`] listed and that cannot be loaded. False if it
    /// is no longer waiting. Then poll: the messages behind it may be sent.
    pub fn discard(&mut self, seq: u64, persist: &mut impl Persist<M>) -> bool {
        self.outgoing.discard(seq, persist)
    }
}
