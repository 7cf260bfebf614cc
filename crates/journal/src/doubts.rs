//! Messages that were requested and are not in the index.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::id::MessageId;

/// Number of missing messages that are remembered.
const DOUBTFUL_MAX: usize = 1 << 16;

/// For each requested message that is not in the index: the commit after which its absence means
/// that it is gone.
#[derive(Default)]
pub(crate) struct Doubts(Mutex<HashMap<MessageId, u64>>);

impl Doubts {
    /// The commit that includes all records appended before the first request for this message.
    pub(crate) fn until(&self, id: MessageId, appended: impl FnOnce() -> u64) -> u64 {
        let mut doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if doubts.len() >= DOUBTFUL_MAX {
            // The only consequence is that another request waits for another commit.
            doubts.clear();
        }
        *doubts.entry(id).or_insert_with(appended)
    }

    pub(crate) fn end(&self, id: MessageId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
