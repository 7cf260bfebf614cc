//! The place for what lies between the socket and the handler, such as TLS and WebSocket.

use std::io;

use crate::Output;

/// Translates between the bytes on the wire and the bytes that the handler sees.
///
/// A filter belongs to one connection ([`Net::set_filter`](crate::Net::set_filter)) and moves with
/// it between shards. Layers are combined by a filter that calls others.
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
}

impl<S: AsRef<[u8]>> Filtering<S> {
    pub(crate) fn new(filter: Box<dyn Filter>) -> Self {
        Self { filter, wire: Output::new(), finished: false }
    }
}
