//! Records: the operations of a journal, and their encoding.
//!
//! A record is a byte for its kind, then its fields: numbers as variable-length integers
//! (seven bits per byte, least significant first), byte strings behind their length. The version
//! of this format is that of the frame. Decoding trusts no input: lengths are checked against the
//! bytes present, and nothing is allocated.

mod decode;
mod varint;

#[cfg(test)]
mod tests;

use crate::id::{MessageId, QueueId};

pub(crate) use decode::{Decoded, Located, RecordError, Records, decode};

/// The kinds of records, as in the first byte.
mod kind {
    pub(super) const MESSAGE: u8 = 1;
    pub(super) const ENTRY: u8 = 2;
    pub(super) const STATE: u8 = 3;
    pub(super) const STATE_WITHOUT_MESSAGE: u8 = 4;
    pub(super) const REMOVE: u8 = 5;
    pub(super) const PUT: u8 = 6;
    pub(super) const DELETE: u8 = 7;
    pub(super) const DROP_QUEUE: u8 = 8;
    pub(super) const OPEN: u8 = 9;
    pub(super) const DONE: u8 = 10;
    pub(super) const OPEN_STATE: u8 = 11;
}

/// An operation to be made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A message, written once for all references to it. Written twice it is the same message.
    ///
    /// It lives until the first reference, and from then on while entries or keys refer to it or it
    /// is open.
    Message {
        /// Its number, from [`Journal::new_message_id`](crate::Journal::new_message_id).
        id: MessageId,
        /// The body, in parts that are put together.
        body: &'a [&'a [u8]],
    },
    /// A queue has an entry; one that has the same number is replaced.
    Entry {
        /// The queue.
        queue: QueueId,
        /// The number of the entry in its queue.
        seq: u64,
        /// What it refers to.
        message: MessageId,
        /// The caller's state, changed by [`Record::State`].
        state: u32,
        /// The caller's metadata, which never changes.
        meta: &'a [u8],
    },
    /// An entry has another state.
    State {
        /// The queue.
        queue: QueueId,
        /// The entry.
        seq: u64,
        /// The new state.
        state: u32,
        /// False: the entry stays, but no longer refers to its message.
        keep_message: bool,
    },
    /// An entry is gone.
    Remove {
        /// The queue.
        queue: QueueId,
        /// The entry.
        seq: u64,
    },
    /// A key has a value. The greatest version wins, of equal ones the later.
    Put {
        /// The queue that the key belongs to.
        queue: QueueId,
        /// The key.
        key: &'a [u8],
        /// Keys that only one writer writes can always use 0.
        version: u64,
        /// The value.
        value: &'a [u8],
        /// A message that lives as long as this value.
        message: Option<MessageId>,
    },
    /// A key is gone, unless it has a greater version.
    ///
    /// If `version` is above 0 it is kept as a tombstone for a while, so that an older value that
    /// another writer appends a little later does not take effect.
    Delete {
        /// The queue that the key belongs to.
        queue: QueueId,
        /// The key.
        key: &'a [u8],
        /// As in [`Record::Put`].
        version: u64,
    },
    /// A queue is gone, with its entries and keys.
    DropQueue {
        /// The queue.
        queue: QueueId,
    },
    /// The distribution of a message is not finished. Opened twice it needs two [`Record::Done`].
    Open {
        /// The message.
        message: MessageId,
        /// The caller's data for finishing it after a restart.
        meta: &'a [u8],
    },
    /// The distribution of a message is finished.
    Done {
        /// The message.
        message: MessageId,
    },
}

impl Record<'_> {
    /// Bytes of the body that it brings.
    #[inline]
    pub(crate) fn body_bytes(&self) -> u64 {
        match self {
            Self::Message { body, .. } => body.iter().map(|part| part.len() as u64).sum(),
            _ => 0,
        }
    }

    /// Appends its bytes.
    #[cfg(test)]
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        self.encode_unsummed(out);
        if let Self::Message { .. } = self {
            sum(&mut out[begin..]);
        }
    }

    /// Appends its bytes; [`sum`] sets the checksum of a message later. Transient messages are
    /// never written and need none.
    pub(crate) fn encode_unsummed(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Message { id, body } => encode_message(id, body, out),
            Self::Entry { queue, seq, message, state, meta } => {
                encode_entry(queue.get(), seq, message.get(), state, meta, out);
            }
            Self::State { queue, seq, state, keep_message } => {
                out.push(if keep_message { kind::STATE } else { kind::STATE_WITHOUT_MESSAGE });
                varint::put(queue.get(), out);
                varint::put(seq, out);
                varint::put(state.into(), out);
            }
            Self::Remove { queue, seq } => {
                out.push(kind::REMOVE);
                varint::put(queue.get(), out);
                varint::put(seq, out);
            }
            Self::Put { queue, key, version, value, message } => {
                out.push(kind::PUT);
                varint::put(queue.get(), out);
                varint::put_bytes(key, out);
                varint::put(version, out);
                varint::put(message.map_or(0, MessageId::get), out);
                varint::put_bytes(value, out);
            }
            Self::Delete { queue, key, version } => {
                out.push(kind::DELETE);
                varint::put(queue.get(), out);
                varint::put_bytes(key, out);
                varint::put(version, out);
            }
            Self::DropQueue { queue } => {
                out.push(kind::DROP_QUEUE);
                varint::put(queue.get(), out);
            }
            Self::Open { message, meta } => {
                out.push(kind::OPEN);
                varint::put(message.get(), out);
                varint::put_bytes(meta, out);
            }
            Self::Done { message } => {
                out.push(kind::DONE);
                varint::put(message.get(), out);
            }
        }
    }
}

/// Placeholder of a checksum that is not set yet.
const NO_CHECKSUM: [u8; 4] = [0; 4];

/// Sets the checksum of an encoded message. Each message has its own, so that it can be read back
/// without its frame.
pub(crate) fn sum(message: &mut [u8]) {
    let Ok((Decoded::Message { id, body, .. }, len)) = decode(message) else { return };
    let mut checksum = Checksum::for_message(id);
    checksum.add(body);
    let (at, value) = (len - body.len() - NO_CHECKSUM.len(), checksum.value().to_le_bytes());
    message[at..at + NO_CHECKSUM.len()].copy_from_slice(&value);
}

fn encode_message(id: MessageId, body: &[&[u8]], out: &mut Vec<u8>) {
    let len: usize = body.iter().map(|part| part.len()).sum();
    out.reserve(len + 24);
    out.push(kind::MESSAGE);
    varint::put(id.get(), out);
    varint::put(len as u64, out);
    out.extend_from_slice(&NO_CHECKSUM);
    body.iter().for_each(|part| out.extend_from_slice(part));
}

/// Appends an entry; `message` is 0 for one that no longer refers to a message.
pub(crate) fn encode_entry(
    queue: u64,
    seq: u64,
    message: u64,
    state: u32,
    meta: &[u8],
    out: &mut Vec<u8>,
) {
    out.push(kind::ENTRY);
    varint::put(queue, out);
    varint::put(seq, out);
    varint::put(message, out);
    varint::put(state.into(), out);
    varint::put_bytes(meta, out);
}

/// Appends the complete state of an open message, which replaces its earlier records: for each time
/// that it was opened, the caller's data and the queues that have received it since.
pub(crate) fn encode_open_state<'a>(
    message: u64,
    times: u32,
    opened: impl ExactSizeIterator<Item = (&'a [u8], &'a [u64])>,
    out: &mut Vec<u8>,
) {
    out.push(kind::OPEN_STATE);
    varint::put(message, out);
    varint::put(times.into(), out);
    varint::put(opened.len() as u64, out);
    for (meta, served) in opened {
        varint::put_bytes(meta, out);
        varint::put(served.len() as u64, out);
        served.iter().for_each(|queue| varint::put(*queue, out));
    }
}

/// The checksum of a message: of its number and its body.
struct Checksum(crc32fast::Hasher);

impl Checksum {
    fn for_message(id: MessageId) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&id.get().to_le_bytes());
        Self(hasher)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn value(self) -> u32 {
        self.0.finalize()
    }
}
