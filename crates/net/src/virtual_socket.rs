//! Connections in memory for simulations: the loop's end, and the peer's end that the test holds.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::readiness::Readiness;

/// The state of the peer's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerEnd {
    Open,
    /// It has sent FIN.
    Finished,
    /// It has sent RST, or was dropped.
    Reset,
}

/// The state of the loop's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopEnd {
    Open,
    /// It has sent FIN.
    Finished,
    /// It was dropped in order.
    Dropped,
    /// It was dropped with a reset.
    Reset,
}

/// Both directions of one connection.
struct Pipe {
    number: u32,
    /// Sent by the peer and still in transit.
    transit: VecDeque<u8>,
    /// Arrived at the loop and not read yet.
    inbound: VecDeque<u8>,
    /// Written by the loop and not received by the peer yet.
    outbound: VecDeque<u8>,
    /// Capacity of `outbound`.
    window_bytes: usize,
    /// Percent of reads and writes that move less than they could.
    short_percent: u8,
    rng: fastrand::Rng,
    /// Readiness that was not reported to the loop yet.
    edges: Edges,
    peer_end: PeerEnd,
    loop_end: LoopEnd,
}

impl Pipe {
    /// How many of `len` bytes one call moves.
    fn portion(&mut self, len: usize) -> usize {
        if len > 1 && self.rng.u8(..100) < self.short_percent {
            return self.rng.usize(1..len);
        }
        len
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.inbound.is_empty() {
            return match self.peer_end {
                PeerEnd::Reset => Err(ErrorKind::ConnectionReset.into()),
                PeerEnd::Finished => Ok(0),
                PeerEnd::Open => Err(ErrorKind::WouldBlock.into()),
            };
        }
        let len = self.portion(self.inbound.len().min(into.len()));
        for (byte, arrived) in into.iter_mut().zip(self.inbound.drain(..len)) {
            *byte = arrived;
        }
        // After a short read the loop waits for an edge: the rest counts as arriving just now.
        self.edges.readable |= len < into.len() && !self.inbound.is_empty();
        Ok(len)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.peer_end == PeerEnd::Reset || self.loop_end != LoopEnd::Open {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let room = self.window_bytes.saturating_sub(self.outbound.len());
        if room == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = self.portion(room.min(bytes.len()));
        self.outbound.extend(&bytes[..len]);
        // The loop treats a short write as a full buffer and waits for an edge.
        self.edges.writable |= len < bytes.len() && len < room;
        Ok(len)
    }
}

/// A set of edges, as the kernel would report them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Edges {
    readable: bool,
    writable: bool,
    read_closed: bool,
    error: bool,
}

impl Edges {
    pub(crate) const fn is_empty(self) -> bool {
        !(self.readable || self.writable || self.read_closed || self.error)
    }
}

impl Readiness for Edges {
    fn is_readable(&self) -> bool {
        self.readable
    }

    fn is_writable(&self) -> bool {
        self.writable
    }

    fn is_read_closed(&self) -> bool {
        self.read_closed
    }

    fn is_error(&self) -> bool {
        self.error
    }
}

type Shared = Arc<Mutex<Pipe>>;

fn lock(pipe: &Shared) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that the peer's end buffers before the loop's writes block.
const WINDOW_BYTES: usize = 64 * 1024;

/// A new connection.
pub(crate) fn pair(number: u32, short_percent: u8, seed: u64) -> (Socket, Peer) {
    let pipe = Arc::new(Mutex::new(Pipe {
        number,
        transit: VecDeque::new(),
        inbound: VecDeque::new(),
        outbound: VecDeque::new(),
        window_bytes: WINDOW_BYTES,
        short_percent,
        rng: fastrand::Rng::with_seed(seed),
        edges: Edges::default(),
        peer_end: PeerEnd::Open,
        loop_end: LoopEnd::Open,
    }));
    (Socket { pipe: Arc::clone(&pipe), reset: false }, Peer { pipe })
}

/// Connections begun by the handler of a loop whose peer's end the test has not taken yet.
#[derive(Default)]
pub(crate) struct Outgoing {
    pub(crate) begun: Vec<(SocketAddr, Peer)>,
    pub(crate) short_percent: u8,
    pub(crate) seed: u64,
    connections: u32,
}

impl Outgoing {
    /// Returns the loop's end and keeps the peer's for the test.
    pub(crate) fn connect(&mut self, addr: SocketAddr) -> Socket {
        self.connections += 1;
        self.seed = self.seed.wrapping_add(1);
        let (socket, peer) = pair(self.connections, self.short_percent, self.seed);
        self.begun.push((addr, peer));
        socket
    }
}

/// The loop's end.
pub(crate) struct Socket {
    pipe: Shared,
    reset: bool,
}

impl Socket {
    /// Registration reports the current readiness.
    pub(crate) fn registered(&self) {
        let mut pipe = lock(&self.pipe);
        let reset = pipe.peer_end == PeerEnd::Reset;
        let at_end = reset || pipe.peer_end == PeerEnd::Finished && pipe.transit.is_empty();
        pipe.edges = Edges {
            readable: !pipe.inbound.is_empty() || at_end,
            writable: true,
            read_closed: at_end,
            error: reset,
        };
    }

    /// Whether there is readiness to report.
    pub(crate) fn has_edges(&self) -> bool {
        !lock(&self.pipe).edges.is_empty()
    }

    pub(crate) fn take_edges(&self) -> Edges {
        std::mem::take(&mut lock(&self.pipe).edges)
    }

    /// The error of a connection whose peer was dropped or reset.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        let reset = lock(&self.pipe).peer_end == PeerEnd::Reset;
        reset.then(|| ErrorKind::ConnectionRefused.into())
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        let number = lock(&self.pipe).number;
        let [_, a, b, c] = number.to_be_bytes();
        SocketAddr::from((Ipv4Addr::new(127, a, b, c), 50_000))
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 1883))
    }

    pub(crate) fn finish(&self) -> io::Result<()> {
        let mut pipe = lock(&self.pipe);
        if pipe.peer_end == PeerEnd::Reset {
            return Err(ErrorKind::NotConnected.into());
        }
        pipe.loop_end = LoopEnd::Finished;
        Ok(())
    }

    pub(crate) fn reset_when_dropped(&mut self) {
        self.reset = true;
    }

    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        lock(&self.pipe).read(into)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        lock(&self.pipe).write(bytes)
    }

    pub(crate) fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut taken = 0;
        for slice in slices.iter().filter(|slice| !slice.is_empty()) {
            match self.write(slice) {
                Ok(len) => {
                    taken += len;
                    if len < slice.len() {
                        break;
                    }
                }
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut pipe = lock(&self.pipe);
        // A kernel also resets a connection that is dropped with unread input.
        if self.reset || !pipe.inbound.is_empty() {
            pipe.loop_end = LoopEnd::Reset;
            pipe.outbound.clear();
        } else {
            pipe.loop_end = LoopEnd::Dropped;
        }
    }
}

/// The peer's end of a connection to a simulated loop.
///
/// The test moves all bytes: those sent are in transit until they [`arrive`](Self::arrive), and
/// those that the loop has written stay where they are until [`receive`](Self::receive) is called.
/// Dropping a peer resets its connection.
pub struct Peer {
    pipe: Shared,
}

impl Peer {
    /// Sends bytes; they are in transit then. False if the connection is over; they are lost then.
    pub fn send(&self, bytes: &[u8]) -> bool {
        let mut pipe = lock(&self.pipe);
        let open = pipe.peer_end == PeerEnd::Open
            && matches!(pipe.loop_end, LoopEnd::Open | LoopEnd::Finished);
        if open {
            pipe.transit.extend(bytes);
        }
        open
    }

    /// Number of bytes in transit.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        lock(&self.pipe).transit.len()
    }

    /// Lets up to `len` of the bytes in transit arrive.
    pub fn arrive(&self, len: usize) {
        let mut pipe = lock(&self.pipe);
        let len = len.min(pipe.transit.len());
        if len == 0 {
            return;
        }
        let pipe = &mut *pipe;
        pipe.inbound.extend(pipe.transit.drain(..len));
        pipe.edges.readable = true;
        pipe.edges.read_closed |= pipe.peer_end == PeerEnd::Finished && pipe.transit.is_empty();
    }

    /// Receives up to `len_max` of the bytes that the loop has written.
    pub fn receive(&self, len_max: usize) -> Vec<u8> {
        let mut pipe = lock(&self.pipe);
        let len = len_max.min(pipe.outbound.len());
        pipe.edges.writable |= len > 0;
        pipe.outbound.drain(..len).collect()
    }

    /// Number of bytes that the loop has written and the peer has not received.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.pipe).outbound.len()
    }

    /// Sets how many bytes this end buffers before the loop's writes block.
    pub fn set_window(&self, bytes: usize) {
        let mut pipe = lock(&self.pipe);
        pipe.window_bytes = bytes;
        pipe.edges.writable = true;
    }

    /// Sends FIN: all bytes in transit arrive, and then the end. The loop may still write.
    pub fn finish(&self) {
        let mut pipe = lock(&self.pipe);
        let pipe = &mut *pipe;
        pipe.inbound.append(&mut pipe.transit);
        if pipe.peer_end == PeerEnd::Open {
            pipe.peer_end = PeerEnd::Finished;
        }
        pipe.edges.readable = true;
        pipe.edges.read_closed = true;
    }

    /// Sends RST. Bytes in transit in either direction are lost; those that have arrived at the
    /// loop are not.
    pub fn reset(&self) {
        let mut pipe = lock(&self.pipe);
        pipe.peer_end = PeerEnd::Reset;
        pipe.transit.clear();
        pipe.outbound.clear();
        pipe.edges = Edges { readable: true, writable: true, read_closed: true, error: true };
    }

    /// Whether the loop will write no more and all its output was received.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let pipe = lock(&self.pipe);
        pipe.peer_end == PeerEnd::Reset
            || pipe.loop_end != LoopEnd::Open && pipe.outbound.is_empty()
    }

    /// Whether the loop has dropped its end.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        matches!(lock(&self.pipe).loop_end, LoopEnd::Dropped | LoopEnd::Reset)
    }

    /// Whether the loop will write no more.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        lock(&self.pipe).loop_end != LoopEnd::Open
    }

    /// Whether the loop has reset the connection.
    #[must_use]
    pub fn was_reset(&self) -> bool {
        lock(&self.pipe).loop_end == LoopEnd::Reset
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.reset();
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pipe = lock(&self.pipe);
        f.debug_struct("Peer")
            .field("number", &pipe.number)
            .field("in_transit", &pipe.transit.len())
            .field("waiting", &pipe.outbound.len())
            .finish_non_exhaustive()
    }
}
