//! The place for what lies between the socket and the handler, such as TLS and WebSocket.

use std::cell::Cell;
use std::io;

use crate::{Closed, Output};

/// Translates between the bytes on the wire and the bytes that the handler sees.
///
/// A filter belongs to one connection ([`Net::set_filter`](crate::Net::set_filter)) and moves with
/// it between shards. [`Layers`] combines two.
pub trait Filter: Send {
    /// Takes all of `wire` and appends to `plain` what it means. Incomplete input is kept inside
    /// the filter.
    ///
    /// # Errors
    /// When the peer's bytes are not acceptable. What is in `plain` is still handed up; then the
    /// connection is closed with this error, after the filter's own output was flushed.
    fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()>;

    /// Appends to `wire` the translation of `plain` (which may be empty), and whatever the filter
    /// itself has to say.
    ///
    /// # Errors
    /// When translation is impossible; the connection is then closed with this error.
    fn outbound(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()>;

    /// False until a handshake that must come first is over. [`Handler::ready`] is called once this
    /// becomes true. Asked after `inbound`.
    ///
    /// [`Handler::ready`]: crate::Handler::ready
    fn is_ready(&self) -> bool {
        true
    }

    /// True once the peer has said that it will send no more, although its socket may still be
    /// open. The connection is then closed as if the socket had said so. Asked after `inbound`.
    fn peer_closed(&self) -> bool {
        false
    }

    /// True when the filter itself has something to say (a handshake, a pong), although the handler
    /// may have written nothing. Asked after `inbound`.
    fn wants_write(&self) -> bool {
        false
    }

    /// The connection is being closed by us and all output was translated: appends the farewell, if
    /// there is one, to `wire`.
    fn finish(&mut self, wire: &mut Vec<u8>) {
        let _ = wire;
    }
}

/// A filter with what it has translated and the socket has not taken yet.
pub(crate) struct Filtering<S> {
    pub(crate) filter: Box<dyn Filter>,
    pub(crate) wire: Output<S>,
    pub(crate) finished: bool,
    /// The handler knows that the handshake is over, or there is none.
    pub(crate) announced: bool,
    /// How the connection ends once the handler has seen what came before.
    pub(crate) over: Option<Closed>,
}

impl<S: AsRef<[u8]>> Filtering<S> {
    pub(crate) fn new(filter: Box<dyn Filter>) -> Self {
        let announced = filter.is_ready();
        Self { filter, wire: Output::new(), finished: false, announced, over: None }
    }
}

/// Two filters, one upon the other: WebSocket over TLS, for instance.
pub struct Layers<L, U> {
    lower: L,
    upper: U,
}

impl<L: Filter, U: Filter> Layers<L, U> {
    /// `lower` is next to the socket, `upper` next to the handler.
    pub const fn new(lower: L, upper: U) -> Self {
        Self { lower, upper }
    }
}

impl<L: Filter, U: Filter> Filter for Layers<L, U> {
    fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        with_scratch(|middle| {
            let lower = self.lower.inbound(wire, middle);
            let upper = match middle.is_empty() {
                true => Ok(()),
                false => self.upper.inbound(middle, plain),
            };
            lower.and(upper)
        })
    }

    fn outbound(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        with_scratch(|middle| {
            self.upper.outbound(plain, middle)?;
            self.lower.outbound(middle, wire)
        })
    }

    fn is_ready(&self) -> bool {
        self.lower.is_ready() && self.upper.is_ready()
    }

    fn peer_closed(&self) -> bool {
        self.lower.peer_closed() || self.upper.peer_closed()
    }

    fn wants_write(&self) -> bool {
        self.lower.wants_write() || self.upper.wants_write()
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        with_scratch(|middle| {
            self.upper.finish(middle);
            // What cannot be said any more is not said.
            let _ = self.lower.outbound(middle, wire);
        });
        self.lower.finish(wire);
    }
}

/// Bytes between two layers live for one call; a thread's connections share the room for them.
const SCRATCH_KEPT_BYTES_MAX: usize = 128 * 1024;

fn with_scratch<T>(body: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    thread_local! {
        static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut scratch = SCRATCH.take();
    let result = body(&mut scratch);
    scratch.clear();
    if scratch.capacity() <= SCRATCH_KEPT_BYTES_MAX {
        SCRATCH.set(scratch);
    }
    result
}
