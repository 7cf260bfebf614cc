//! What a client's session keeps of an outgoing message until it is acknowledged.

use tacho_session::Payload;

/// A message of a stream. Its payload is generated again for a retransmission.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// The stream's number on this thread.
    pub(super) stream: u32,
    pub(super) seq: u32,
    pub(super) probe: bool,
    pub(super) intended_ns: u64,
    pub(super) sent_ns: u64,
}

/// A publication of a client.
#[derive(Debug, Clone, Copy)]
pub(super) enum Published {
    /// A message of one of its streams.
    Message(Message),
    /// The answer with this number.
    Answer(u32),
}

impl Payload for Published {}
