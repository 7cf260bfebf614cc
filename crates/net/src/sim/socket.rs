//! Connections in memory: the loop's end and the peer's, which the test holds.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::stream::Readiness;

/// Both directions of one connection.
struct Pipe {
    number: u32,
    /// Sent by the peer and still on the way.
    transit: VecDeque<u8>,
    /// Arrived at the loop and not read yet.
    inbound: VecDeque<u8>,
    /// Written by the loop and not taken by the peer yet.
    outbound: VecDeque<u8>,
    /// Bytes that `outbound` takes.
    window_bytes: usize,
    /// Percent of reads and writes that move less than they could.
    short_percent: u8,
    rng: fastrand::Rng,
    /// What became possible since the loop looked last.
    edges: Edges,
    peer_finished: bool,
    peer_reset: bool,
    loop_finished: bool,
    loop_reset: bool,
    loop_gone: bool,
}

impl Pipe {
    /// How much of `len` bytes one call moves.
    fn portion(&mut self, len: usize) -> usize {
        if len > 1 && self.rng.u8(..100) < self.short_percent {
            return self.rng.usize(1..len);
        }
        len
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.inbound.is_empty() {
            return match (self.peer_reset, self.peer_finished) {
                (true, _) => Err(ErrorKind::ConnectionReset.into()),
                (_, true) => Ok(0),
                _ => Err(ErrorKind::WouldBlock.into()),
            };
        }
        let len = self.portion(self.inbound.len().min(into.len()));
        for (byte, arrived) in into.iter_mut().zip(self.inbound.drain(..len)) {
            *byte = arrived;
        }
        // After a short read the loop waits for an edge: the rest has arrived just now.
        self.edges.readable |= len < into.len() && !self.inbound.is_empty();
        Ok(len)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.peer_reset || self.loop_finished {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let room = self.window_bytes.saturating_sub(self.outbound.len());
        if room == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = self.portion(room.min(bytes.len()));
        self.outbound.extend(&bytes[..len]);
        // The loop takes a short write for a full buffer.
        self.edges.writable |= len < bytes.len() && len < room;
        Ok(len)
    }
}

/// Readiness as the kernel would report it.
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

/// Bytes that a peer's side holds before the loop's writes block.
const WINDOW_BYTES: usize = 64 * 1024;

/// A new connection.
pub(super) fn pair(number: u32, short_percent: u8, seed: u64) -> (Socket, Peer) {
    let pipe = Arc::new(Mutex::new(Pipe {
        number,
        transit: VecDeque::new(),
        inbound: VecDeque::new(),
        outbound: VecDeque::new(),
        window_bytes: WINDOW_BYTES,
        short_percent,
        rng: fastrand::Rng::with_seed(seed),
        edges: Edges::default(),
        peer_finished: false,
        peer_reset: false,
        loop_finished: false,
        loop_reset: false,
        loop_gone: false,
    }));
    (Socket { pipe: Arc::clone(&pipe), reset: false }, Peer { pipe })
}

/// The loop's end.
pub(crate) struct Socket {
    pipe: Shared,
    reset: bool,
}

impl Socket {
    /// Registering reports what is possible already.
    pub(crate) fn registered(&self) {
        let mut pipe = lock(&self.pipe);
        let over = pipe.peer_finished && pipe.transit.is_empty();
        pipe.edges = Edges {
            readable: !pipe.inbound.is_empty() || over || pipe.peer_reset,
            writable: true,
            read_closed: over || pipe.peer_reset,
            error: pipe.peer_reset,
        };
    }

    /// Whether something is to be reported.
    pub(crate) fn has_edges(&self) -> bool {
        !lock(&self.pipe).edges.is_empty()
    }

    pub(crate) fn take_edges(&self) -> Edges {
        std::mem::take(&mut lock(&self.pipe).edges)
    }

    /// Nobody is at the other end any more.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        lock(&self.pipe).peer_reset.then(|| ErrorKind::ConnectionRefused.into())
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
        if pipe.peer_reset {
            return Err(ErrorKind::NotConnected.into());
        }
        pipe.loop_finished = true;
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
        pipe.loop_gone = true;
        pipe.loop_finished = true;
        // Bytes that nobody read make the kernel reset, too.
        if self.reset || !pipe.inbound.is_empty() {
            pipe.loop_reset = true;
            pipe.outbound.clear();
        }
    }
}

/// The other end of a connection to a simulated loop.
///
/// Nothing happens there unless the test does it: bytes are on the way until they
/// [`arrive`](Self::arrive), and what the loop wrote stays where it is until it is
/// [`received`](Self::receive). Dropping a peer resets its connection.
pub struct Peer {
    pipe: Shared,
}

impl Peer {
    /// Puts bytes on the way. False if the connection is over already; they are lost then.
    pub fn send(&self, bytes: &[u8]) -> bool {
        let mut pipe = lock(&self.pipe);
        let open = !(pipe.peer_finished || pipe.peer_reset || pipe.loop_gone);
        if open {
            pipe.transit.extend(bytes);
        }
        open
    }

    /// Bytes on the way.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        lock(&self.pipe).transit.len()
    }

    /// Lets up to `len` of the bytes on the way arrive.
    pub fn arrive(&self, len: usize) {
        let mut pipe = lock(&self.pipe);
        let len = len.min(pipe.transit.len());
        if len == 0 {
            return;
        }
        let pipe = &mut *pipe;
        pipe.inbound.extend(pipe.transit.drain(..len));
        pipe.edges.readable = true;
        pipe.edges.read_closed |= pipe.peer_finished && pipe.transit.is_empty();
    }

    /// Takes up to `len_max` of the bytes that the loop has written.
    pub fn receive(&self, len_max: usize) -> Vec<u8> {
        let mut pipe = lock(&self.pipe);
        let len = len_max.min(pipe.outbound.len());
        pipe.edges.writable |= len > 0;
        pipe.outbound.drain(..len).collect()
    }

    /// Bytes that the loop has written and nobody has taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.pipe).outbound.len()
    }

    /// How many bytes may wait on this side before the loop's writes block.
    pub fn set_window(&self, bytes: usize) {
        let mut pipe = lock(&self.pipe);
        pipe.window_bytes = bytes;
        pipe.edges.writable = true;
    }

    /// Everything on the way arrives, and then the end (FIN). The loop may still write.
    pub fn finish(&self) {
        let mut pipe = lock(&self.pipe);
        let pipe = &mut *pipe;
        pipe.inbound.append(&mut pipe.transit);
        pipe.peer_finished = true;
        pipe.edges.readable = true;
        pipe.edges.read_closed = true;
    }

    /// The connection breaks (RST). What is on the way in either direction is lost; what has
    /// arrived at the loop is not.
    pub fn reset(&self) {
        let mut pipe = lock(&self.pipe);
        pipe.peer_reset = true;
        pipe.transit.clear();
        pipe.outbound.clear();
        pipe.edges = Edges { readable: true, writable: true, read_closed: true, error: true };
    }

    /// The loop will write no more, and everything it wrote was received.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let pipe = lock(&self.pipe);
        pipe.peer_reset || (pipe.loop_finished || pipe.loop_gone) && pipe.outbound.is_empty()
    }

    /// The loop has dropped its end: nothing of this connection will be acted upon any more.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        lock(&self.pipe).loop_gone
    }

    /// The loop will write no more.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        lock(&self.pipe).loop_finished
    }

    /// The loop has reset the connection.
    #[must_use]
    pub fn was_reset(&self) -> bool {
        lock(&self.pipe).loop_reset
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
