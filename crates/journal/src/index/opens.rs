//! Messages whose distribution is not finished.
//!
//! They are few and are open for a moment, so all about them is in memory.

use std::collections::BTreeMap;

/// What is known of an open message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    /// How many times it was opened and not yet finished.
    pub(super) times: u32,
    /// Every time that it was opened; as nobody says which of them is finished, all are kept until
    /// the last one is.
    pub(super) opened: Vec<Opening>,
    /// Where the records are that say all this, with their bytes.
    pub(super) records: Vec<(u32, u32)>,
}

/// One time that a message was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// What was told then.
    pub(crate) meta: Box<[u8]>,
    /// The queues that got an entry of it since, some maybe twice.
    pub(crate) served: Vec<u64>,
    /// The frame, if that has the message too: entries that stand before both in it came later.
    pub(super) began: u64,
}

impl Open {
    /// A queue got an entry of it.
    pub(super) fn serve(&mut self, queue: u64) {
        self.opened.iter_mut().for_each(|opened| opened.served.push(queue));
    }
}

/// All open messages.
pub(super) type Opens = BTreeMap<u64, Open>;
