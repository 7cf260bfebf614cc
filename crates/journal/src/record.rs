//! What can be told to the journal, and how it is written.

use crate::id::{MessageId, QueueId};

/// One fact. Facts are applied in the order in which they were appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A message. It lives while entries, keys or [`Record::Open`] refer to it.
    Message {
        /// From [`Journal::new_message_id`](crate::Journal::new_message_id).
        id: MessageId,
        /// Its parts, one behind the other.
        body: &'a [&'a [u8]],
    },
    /// An entry of a queue.
    Entry {
        /// The queue.
        queue: QueueId,
        /// Its place in the queue; one entry per place.
        seq: u64,
        /// What it delivers.
        message: MessageId,
        /// Changed by [`Record::State`].
        state: u32,
        /// Never changed.
        meta: &'a [u8],
    },
    /// An entry has another state.
    State {
        /// The queue.
        queue: QueueId,
        /// The entry.
        seq: u64,
        /// Its new state.
        state: u32,
        /// False: the entry stays, without its message.
        keep_message: bool,
    },
    /// An entry is gone.
    Remove {
        /// The queue.
        queue: QueueId,
        /// The entry.
        seq: u64,
    },
    /// A key has this value, if no greater version of it was put or deleted; of equal versions the
    /// later one counts.
    Put {
        /// The queue that it belongs to.
        queue: QueueId,
        /// Its name in the queue.
        key: &'a [u8],
        /// Orders puts and deletes of this key.
        version: u64,
        /// Its value.
        value: &'a [u8],
        /// A message that the value refers to.
        message: Option<MessageId>,
    },
    /// A key is gone, if no greater version of it was put.
    Delete {
        /// The queue that it belongs to.
        queue: QueueId,
        /// Its name in the queue.
        key: &'a [u8],
        /// Orders puts and deletes of this key.
        version: u64,
    },
    /// All entries and keys of a queue are gone.
    DropQueue {
        /// The queue.
        queue: QueueId,
    },
    /// The distribution of a message is not finished: it lives until [`Record::Done`].
    Open {
        /// The message.
        message: MessageId,
        /// What is needed to go on with it.
        meta: &'a [u8],
    },
    /// The distribution of a message is finished.
    Done {
        /// The message.
        message: MessageId,
    },
}

impl Record<'_> {
    /// Appends its bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if let Record::Message { id, body } = self {
            out.extend_from_slice(&id.get().to_le_bytes());
            body.iter().for_each(|part| out.extend_from_slice(part));
        }
    }
}
