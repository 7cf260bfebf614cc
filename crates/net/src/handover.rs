//! A connection on its way from one loop to another.

use crate::conn::{ClientEnd, Conn, Demand, Filtering, Phase, ReadSide};
use crate::output::Output;
use crate::stream::Stream;

/// A connection that belongs to no loop, with everything that moves along: the socket, bytes that
/// were read but not consumed, unwritten output, and the filter. Dropping it closes the connection.
///
/// [`Net::detach`](crate::Net::detach) makes it; it can be sent to another thread, usually inside a
/// mail, and continues with [`Net::attach`](crate::Net::attach). Bytes that arrive meanwhile wait
/// in the kernel.
pub struct Detached<S> {
    /// For the caller's use; the loop does not read it.
    pub tag: u64,
    stream: Stream,
    unread: Vec<u8>,
    output: Output<S>,
    filter: Option<Box<Filtering<S>>>,
    client: Option<Box<ClientEnd>>,
    header_due: bool,
}

impl<S: AsRef<[u8]>> Detached<S> {
    pub(crate) fn new(mut conn: Conn<S>, unread: &[u8]) -> Self {
        let kept = conn.unit.map_or_else(|| conn.partial.take(), |unit| unit.into_bytes());
        let bytes = if unread.is_empty() { kept } else { [unread, &kept].concat() };
        Self {
            tag: 0,
            stream: conn.stream,
            unread: bytes,
            output: conn.output,
            filter: conn.filter,
            client: conn.client,
            header_due: conn.header_due,
        }
    }

    /// Bytes that were read and not consumed.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.unread
    }

    pub(crate) fn into_conn(self) -> Conn<S> {
        let mut conn = Conn::new(self.stream, Phase::Open);
        if !self.unread.is_empty() {
            conn.demand = Demand::Again;
        }
        conn.partial.put(self.unread);
        conn.output = self.output;
        if self.filter.as_ref().is_some_and(|filtering| filtering.over.is_some()) {
            // The filter has seen the end; the next owner is told about it.
            conn.read_side = ReadSide::Readable;
        }
        conn.filter = self.filter;
        conn.client = self.client;
        conn.header_due = self.header_due;
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
