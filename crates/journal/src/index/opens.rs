//! Messages whose distribution is not finished.
//!
//! They are few and short-lived, so their whole state is in memory.

use std::collections::BTreeMap;

/// The state of an open message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    /// How many times it was opened and not yet finished.
    pub(super) times: u32,
    /// Every time that it was opened. An end does not name its beginning, so all are kept until the
    /// last one is finished.
    pub(super) opened: Vec<Opening>,
    /// The segments and sizes of the records with this state.
    pub(super) records: Vec<(u32, u32)>,
}

/// One time that a message was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The caller's data.
    pub(crate) meta: Box<[u8]>,
    /// The queues that have received an entry since, possibly repeated.
    pub(crate) served: Vec<u64>,
    /// The frame, if that has the message too: entries that stand before both in it came later.
    pub(super) began: u64,
}

impl Open {
    /// A queue has received an entry of it.
    pub(super) fn serve(&mut self, queue: u64) {
        self.opened.iter_mut().for_each(|opened| opened.served.push(queue));
    }
}

/// All open messages.
pub(super) type Opens = BTreeMap<u64, Open>;
