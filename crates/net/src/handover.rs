//! A connection on its way from one loop to another.

use crate::conn::{Conn, Phase};
use crate::filter::Filtering;
use crate::output::Output;
use crate::stream::Stream;

/// A connection without a loop, with all that belongs to it: the socket, bytes that were read but
/// not consumed, output that was not written, and the filter. Dropping it closes the connection.
///
/// It is made by [`Net::detach`](crate::Net::detach), can be sent to another thread, usually inside
/// a mail, and continues with [`Net::attach`](crate::Net::attach). Bytes that arrive meanwhile wait
/// in the kernel.
pub struct Detached<S> {
    /// For the caller: travels along unseen.
    pub tag: u64,
    stream: Stream,
    unread: Vec<u8>,
    output: Output<S>,
    filter: Option<Box<Filtering<S>>>,
}

impl<S: AsRef<[u8]>> Detached<S> {
    pub(crate) fn new(conn: Conn<S>, unread: &[u8]) -> Self {
        let mut bytes = conn.partial;
        bytes.extend_from_slice(unread);
        Self {
            tag: 0,
            stream: conn.stream,
            unread: bytes,
            output: conn.output,
            filter: conn.filter,
        }
    }

    /// Bytes that were read and not consumed.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.unread
    }

    pub(crate) fn into_conn(self) -> Conn<S> {
        let mut conn = Conn::new(self.stream, Phase::Open);
        conn.hand_partial = !self.unread.is_empty();
        conn.partial = self.unread;
        conn.output = self.output;
        // An end that was noted on the way is told here.
        conn.readable = self.filter.as_ref().is_some_and(|filtering| filtering.over.is_some());
        conn.filter = self.filter;
        conn
    }
}

impl<S> std::fmt::Debug for Detached<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Detached")
            .field("tag", &self.tag)
            .field("unread_bytes", &self.unread.len())
            .finish_non_exhaustive()
    }
}
