//! Messages that were requested and are not in the index.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::id::MessageId;

/// So many messages that are not there are remembered.
const DOUBTFUL_MAX: usize = 1 << 16;

/// Messages that were asked for and are not in the index: the commit that will tell what to think
/// of them.
#[derive(Default)]
pub(crate) struct Doubts(Mutex<HashMap<MessageId, u64>>);

impl Doubts {
    /// The commit that has what was appended before the first question for this message.
    pub(crate) fn until(&self, id: MessageId, appended: impl FnOnce() -> u64) -> u64 {
        let mut doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if doubts.len() >= DOUBTFUL_MAX {
            // Who asks again only waits for another commit.
            doubts.clear();
        }
        *doubts.entry(id).or_insert_with(appended)
    }

    pub(crate) fn end(&self, id: MessageId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
