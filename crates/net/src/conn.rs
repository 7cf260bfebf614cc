//! The state of one connection.

use std::io;
use std::net::SocketAddr;

use crate::filter::Filter;
use crate::kept::Kept;
use crate::output::Output;
use crate::proxy::ProxyHeader;
use crate::stream::Stream;
use crate::unit::Unit;

/// Names a connection of one loop. Commands for a connection that no longer exists are ignored, so
/// an id may be kept longer than its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    index: u32,
    generation: u32,
}

impl ConnId {
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// A small number, unique among the connections that exist in this loop at one time; it can
    /// serve as the key of a slab.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Distinguishes the connections that have used this index one after the other.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

/// Why a connection has ended.
#[derive(Debug)]
pub enum Closed {
    /// The peer has closed its side.
    ByPeer,
    /// `close` or `abort` was called here.
    ByUs,
    /// The socket or its filter failed.
    Error(io::Error),
}

/// The life of a connection. [`Handler::closed`](crate::Handler::closed) is called on the way from
/// `Ending` to `Lingering`, or when an `Aborting` connection is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// An outgoing connection that is not established yet.
    Connecting,
    /// In use by the handler.
    Open,
    /// Over; `closed` is due, then the output is still written.
    Ending,
    /// Over; `closed` is due, then the socket is reset.
    Aborting,
    /// `closed` was called; the remaining output is being written and the peer's FIN is awaited.
    Lingering,
}

/// The handler's demand for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// New bytes are passed on as they arrive.
    Flowing,
    /// The bytes kept in `partial` are passed on again, even without new ones.
    Again,
    /// No input is wanted.
    Paused,
}

/// What the kernel has for us to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadSide {
    /// Nothing; the next edge reports more.
    Drained,
    /// An edge was reported, and no read has been short since.
    Readable,
    /// The end of input or an error was reported, or writing has failed. A short read is not the
    /// last one then: only a read of zero bytes, an error or `WouldBlock` is.
    EndPending,
    /// A read has returned zero bytes.
    Ended,
}

impl ReadSide {
    /// Whether a read may bring something.
    #[inline]
    pub(crate) fn is_readable(self) -> bool {
        matches!(self, Self::Readable | Self::EndPending)
    }

    /// Takes note of readiness; with `at_end` the end of input or an error was reported.
    #[inline]
    pub(crate) fn note_edge(&mut self, at_end: bool) {
        *self = match self {
            Self::Ended => Self::Ended,
            Self::EndPending => Self::EndPending,
            Self::Drained | Self::Readable if at_end => Self::EndPending,
            Self::Drained | Self::Readable => Self::Readable,
        };
    }

    /// A read took less than there was room for: the socket is drained, unless its end is pending.
    #[inline]
    pub(crate) fn note_short_read(&mut self) {
        if *self == Self::Readable {
            *self = Self::Drained;
        }
    }
}

/// What the kernel accepts from us.
#[derive(Debug)]
pub(crate) enum WriteSide {
    /// Output, as far as is known.
    Open,
    /// Nothing until the next writable edge. The initial state of outgoing connections.
    Blocked,
    /// Nothing more: FIN was sent.
    Finished,
    /// Nothing more: a write has failed. What the peer sent before is still read.
    Broken(io::Error),
}

impl WriteSide {
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self, Self::Blocked)
    }

    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    /// The error of a failed write, once.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        if !self.is_broken() {
            return None;
        }
        match std::mem::replace(self, Self::Open) {
            Self::Broken(error) => Some(error),
            Self::Open | Self::Blocked | Self::Finished => None,
        }
    }
}

/// The end that the client of a connection has.
#[derive(Debug)]
pub(crate) struct ClientEnd {
    pub(crate) address: Option<SocketAddr>,
    /// In the certificate that it has shown to its proxy.
    pub(crate) certificate_name: Option<Box<[u8]>>,
}

impl ClientEnd {
    /// As a proxy has told it; `None` if it has told nothing.
    pub(crate) fn of_header(header: &ProxyHeader<'_>) -> Option<Box<Self>> {
        let ProxyHeader { client: address, certificate_name, .. } = *header;
        let certificate_name = certificate_name.map(Into::into);
        let is_told = address.is_some() || certificate_name.is_some();
        is_told.then(|| Box::new(Self { address, certificate_name }))
    }
}

pub(crate) struct Conn<S> {
    pub(crate) stream: Stream,
    pub(crate) phase: Phase,
    pub(crate) demand: Demand,
    pub(crate) read_side: ReadSide,
    pub(crate) write_side: WriteSide,
    /// Queued for reading, among the established connections, the newcomers or the leavers.
    pub(crate) on_ready: bool,
    /// Queued for writing.
    pub(crate) on_dirty: bool,
    /// Queued for writing after all that are only dirty.
    pub(crate) on_later: bool,
    /// Its share of the output that may wait.
    pub(crate) later_bytes: usize,
    /// The handler has not called the connection established: it is served after those that are.
    pub(crate) newcomer: bool,
    /// The header of a proxy is not complete; its beginning is in `partial`.
    pub(crate) header_due: bool,
    /// The output was above the high-water mark: `drained` is due when it reaches the low one.
    pub(crate) drained_due: bool,
    pub(crate) output: Output<S>,
    /// Input that the handler has not consumed.
    pub(crate) partial: Kept,
    /// Or the beginning of a large unit; `partial` is empty then.
    pub(crate) unit: Option<Box<Unit>>,
    pub(crate) filter: Option<Box<Filtering<S>>>,
    /// What is kept of the client: its address, or what its proxy has told.
    pub(crate) client: Option<Box<ClientEnd>>,
    /// The share of `output` and of the filter's output in the loop's total.
    pub(crate) output_counted: usize,
    /// The share of `partial` and `unit` in the loop's total.
    pub(crate) input_counted: usize,
}

impl<S: AsRef<[u8]>> Conn<S> {
    pub(crate) fn new(stream: Stream, phase: Phase) -> Self {
        let write_side = match phase {
            Phase::Connecting => WriteSide::Blocked,
            _ => WriteSide::Open,
        };
        Self {
            stream,
            phase,
            demand: Demand::Flowing,
            read_side: ReadSide::Drained,
            write_side,
            on_ready: false,
            on_dirty: false,
            on_later: false,
            later_bytes: 0,
            newcomer: false,
            header_due: false,
            drained_due: false,
            output: Output::new(),
            partial: Kept::default(),
            unit: None,
            filter: None,
            client: None,
            output_counted: 0,
            input_counted: 0,
        }
    }

    /// Bytes of unwritten output in memory that belongs to this connection alone.
    #[inline]
    pub(crate) fn output_owned_bytes(&self) -> usize {
        let filtered = self.filter.as_ref().map_or(0, |filtering| filtering.wire.owned_bytes());
        self.output.owned_bytes() + filtered
    }

    #[inline]
    pub(crate) fn output_bytes(&self) -> usize {
        let filtered = self.filter.as_ref().map_or(0, |filtering| filtering.wire.len_bytes());
        self.output.len_bytes() + filtered
    }

    /// Bytes of memory for input that the handler has not consumed.
    #[inline]
    pub(crate) fn input_bytes(&self) -> usize {
        self.partial.capacity() + self.unit.as_ref().map_or(0, |unit| unit.allocated())
    }

    /// The peer's address, or the client's behind a proxy.
    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self.client.as_ref().and_then(|client| client.address) {
            Some(address) => Ok(address),
            None => self.stream.peer_addr(),
        }
    }

    /// Whether the handler may write to this connection.
    #[inline]
    pub(crate) fn takes_output(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Connecting) && !self.write_side.is_broken()
    }
}

/// A filter, and the output it has translated that the socket has not accepted yet.
pub(crate) struct Filtering<S> {
    pub(crate) filter: Box<dyn Filter>,
    pub(crate) wire: Output<S>,
    /// [`Filter::finish`] was called.
    pub(crate) finished: bool,
    /// The handler knows that the handshake is complete, or there is none.
    pub(crate) announced: bool,
    /// How the connection ends once the handler has seen the input before the end.
    pub(crate) over: Option<Closed>,
}

impl<S: AsRef<[u8]>> Filtering<S> {
    pub(crate) fn new(filter: Box<dyn Filter>) -> Self {
        let announced = filter.is_ready();
        Self { filter, wire: Output::new(), finished: false, announced, over: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_read_drains_a_socket_unless_its_end_is_pending() {
        let mut side = ReadSide::Drained;
        side.note_edge(false);
        assert_eq!(side, ReadSide::Readable);
        side.note_short_read();
        assert_eq!(side, ReadSide::Drained);
        side.note_edge(true);
        side.note_short_read();
        side.note_edge(false);
        assert_eq!(side, ReadSide::EndPending);
        assert!(side.is_readable());
    }

    #[test]
    fn nothing_follows_the_end_of_input() {
        let mut side = ReadSide::Ended;
        side.note_edge(true);
        assert!(!side.is_readable());
    }

    #[test]
    fn a_failed_write_is_reported_once() {
        let mut side = WriteSide::Broken(io::ErrorKind::BrokenPipe.into());
        assert!(side.is_broken());
        assert_eq!(side.take_error().map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
        assert!(side.take_error().is_none());
    }
}
