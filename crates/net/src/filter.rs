//! Byte filters between a socket and its handler, such as TLS and WebSocket.

use std::cell::Cell;
use std::io;

use crate::peer_certificates::PeerCertificates;

/// Translates between the bytes on the wire and the bytes that the handler sees.
///
/// A filter belongs to one connection ([`Net::set_filter`](crate::Net::set_filter)) and moves with
/// it between shards. [`Layers`] combines two.
pub trait Filter: Send {
    /// Takes all of `wire` and appends the translation to `plain`. Incomplete input is kept inside
    /// the filter.
    ///
    /// # Errors
    /// When the peer's bytes are not acceptable. The content of `plain` is still passed on; then
    /// the filter's own output is flushed and the connection is closed with this error.
    fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()>;

    /// Appends to `wire` the translation of `plain` (which may be empty) and the filter's own
    /// output.
    ///
    /// # Errors
    /// When translation is impossible; the connection is then closed with this error.
    fn outbound(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()>;

    /// False until an initial handshake is complete. [`Handler::ready`] is called once this becomes
    /// true. Queried after `inbound`.
    ///
    /// [`Handler::ready`]: crate::Handler::ready
    fn is_ready(&self) -> bool {
        true
    }

    /// True once the peer has announced that it sends no more, even if its socket is still open.
    /// The connection is then closed as at the end of the socket's input. Queried after `inbound`.
    fn peer_closed(&self) -> bool {
        false
    }

    /// True when the filter has output of its own (a handshake, a pong), even if the handler has
    /// written nothing. Queried after `inbound`.
    fn wants_write(&self) -> bool {
        false
    }

    /// The certificates of the peer, if it has proved to have any.
    fn peer_certificates(&self) -> Option<PeerCertificates<'_>> {
        None
    }

    /// The connection is being closed by us and all output was translated: appends the closing
    /// message of the filter's protocol, if it has one, to `wire`.
    fn finish(&mut self, wire: &mut Vec<u8>) {
        let _ = wire;
    }
}

/// Two filters stacked on each other, for instance WebSocket over TLS.
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

    fn peer_certificates(&self) -> Option<PeerCertificates<'_>> {
        self.lower.peer_certificates().or_else(|| self.upper.peer_certificates())
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        with_scratch(|middle| {
            self.upper.finish(middle);
            // A closing message that cannot be translated any more is dropped.
            let _ = self.lower.outbound(middle, wire);
        });
        self.lower.finish(wire);
    }
}

/// A larger scratch buffer is freed after use.
const SCRATCH_KEPT_BYTES_MAX: usize = 128 * 1024;

/// Bytes between two layers live for one call, so all connections of a thread share one buffer.
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
