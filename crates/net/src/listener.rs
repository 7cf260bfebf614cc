//! Listening sockets: binding, accepting, and refusing peers when descriptors run out.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};

use mio::Token;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Listening sockets of a loop.
pub(crate) const LISTENERS_MAX: usize = 1 << 12;
/// Their tokens count down from this one; the two above are the loop's own.
const FIRST_TOKEN: usize = usize::MAX - 2;
/// The pause after an attempt that could neither accept nor refuse a peer.
const ACCEPT_PAUSE_NS: u64 = 50_000_000;

/// What a listening socket asks of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenSettings {
    /// Connections that may wait to be accepted; the kernel caps it at `net.core.somaxconn`.
    pub backlog: u32,
    /// Bytes of each connection that wait to be sent, instead of a size that the kernel adapts; it
    /// caps them at `net.core.wmem_max`.
    pub send_buffer_bytes: Option<u32>,
    /// Bytes of each connection that wait to be read; capped at `net.core.rmem_max`.
    pub receive_buffer_bytes: Option<u32>,
}

impl ListenSettings {
    /// Buffers as the kernel adapts them.
    #[must_use]
    pub const fn with_backlog(backlog: u32) -> Self {
        Self { backlog, send_buffer_bytes: None, receive_buffer_bytes: None }
    }
}

/// Opens a listening TCP socket: non-blocking, address reusable, `TCP_NODELAY` (which accepted
/// connections inherit on Linux). `backlog` is the number of connections that may wait to be
/// accepted; the kernel caps it at `net.core.somaxconn`.
///
/// # Errors
/// The system's error, for instance that the address is in use.
pub fn bind(addr: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    listen(addr, &ListenSettings::with_backlog(backlog))
}

/// The same with buffers of these sizes, which accepted connections inherit.
///
/// # Errors
/// See [`bind`].
pub fn listen(addr: SocketAddr, settings: &ListenSettings) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    set_buffers(&socket, settings)?;
    socket.bind(&addr.into())?;
    begin(&socket, settings)?;
    Ok(socket.into())
}

/// Another descriptor of a socket that listens already, with these settings.
///
/// # Errors
/// The system's error, for instance that there are no more descriptors.
pub fn adopt(socket: &TcpListener, settings: &ListenSettings) -> io::Result<TcpListener> {
    let socket = Socket::from(socket.try_clone()?);
    set_buffers(&socket, settings)?;
    begin(&socket, settings)?;
    Ok(socket.into())
}

fn set_buffers(socket: &Socket, settings: &ListenSettings) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    if let Some(bytes) = settings.send_buffer_bytes {
        socket.set_send_buffer_size(bytes as usize)?;
    }
    // Before listening: the window that peers are offered depends on it.
    if let Some(bytes) = settings.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    Ok(())
}

/// Listens; a socket that does so already gets another backlog.
fn begin(socket: &Socket, settings: &ListenSettings) -> io::Result<()> {
    socket.listen(i32::try_from(settings.backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)
}

/// The token of a listening socket.
pub(crate) const fn token_of(index: usize) -> Token {
    Token(FIRST_TOKEN - index)
}

/// The listening socket with this token; `None` for tokens of connections.
pub(crate) const fn index_of(token: Token) -> Option<usize> {
    if token.0 > FIRST_TOKEN - LISTENERS_MAX { Some(FIRST_TOKEN - token.0) } else { None }
}

/// One listening socket of a loop.
pub(crate) struct Listener {
    pub(crate) socket: mio::net::TcpListener,
    /// The kernel may have connections for us.
    pub(crate) ready: bool,
    /// No attempt before this time.
    pub(crate) retry_at_ns: u64,
}

impl Listener {
    pub(crate) fn new(socket: TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SockRef::from(&socket).set_tcp_nodelay(true)?;
        Ok(Self { socket: mio::net::TcpListener::from_std(socket), ready: true, retry_at_ns: 0 })
    }

    /// When the next attempt to accept is due; `u64::MAX` if no peer waits.
    pub(crate) fn due_ns(&self) -> u64 {
        if self.ready { self.retry_at_ns } else { u64::MAX }
    }
}

/// The result of one attempt to accept.
pub(crate) enum Accepted {
    Stream(mio::net::TcpStream),
    /// A peer was refused because descriptors have run out.
    Refused,
    /// This peer has left already; there may be others.
    Gone,
    /// No peer waits, or none can be accepted for now.
    Nothing,
}

/// A descriptor in reserve for refusing peers when descriptors have run out: it is closed to make
/// room, the peer is accepted and closed, and the reserve is opened again. Otherwise the peer would
/// wait in the backlog without an answer.
pub(crate) struct Reserve(Option<File>);

impl Reserve {
    pub(crate) fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    pub(crate) fn accept(&mut self, listener: &mut Listener, now_ns: u64) -> Accepted {
        if self.0.is_none() {
            self.0 = File::open("/dev/null").ok();
        }
        match listener.socket.accept() {
            Ok((stream, _)) => {
                if cfg!(not(any(target_os = "linux", target_os = "android"))) {
                    let _ = stream.set_nodelay(true);
                }
                Accepted::Stream(stream)
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::AGAIN) => {
                    listener.ready = false;
                    Accepted::Nothing
                }
                Some(Errno::MFILE | Errno::NFILE) => self.refuse(listener, now_ns),
                // Linux reports errors that the new connection already has; see accept(2).
                Some(
                    Errno::CONNABORTED
                    | Errno::CONNRESET
                    | Errno::INTR
                    | Errno::PROTO
                    | Errno::PERM
                    | Errno::NETDOWN
                    | Errno::NETUNREACH
                    | Errno::HOSTDOWN
                    | Errno::HOSTUNREACH
                    | Errno::OPNOTSUPP
                    | Errno::NOPROTOOPT,
                ) => Accepted::Gone,
                // No memory, or an error that an immediate retry would repeat.
                _ => {
                    listener.retry_at_ns = now_ns + ACCEPT_PAUSE_NS;
                    Accepted::Nothing
                }
            },
        }
    }

    fn refuse(&mut self, listener: &mut Listener, now_ns: u64) -> Accepted {
        let had_reserve = self.0.take().is_some();
        let accepted = if had_reserve { listener.socket.accept().ok() } else { None };
        let refused = accepted.is_some();
        drop(accepted);
        self.0 = File::open("/dev/null").ok();
        if refused {
            return Accepted::Refused;
        }
        // Another thread took the descriptor or the peer, or the peer has left.
        listener.retry_at_ns = now_ns + ACCEPT_PAUSE_NS;
        Accepted::Nothing
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn accepted_connections_have_the_buffers_that_the_listener_asked_for() {
        let bytes = Some(32_768);
        let settings =
            ListenSettings { backlog: 8, send_buffer_bytes: bytes, receive_buffer_bytes: bytes };
        let listener = listen(([127, 0, 0, 1], 0).into(), &settings).unwrap();
        listener.set_nonblocking(false).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let socket = SockRef::from(&accepted);
        // The kernel doubles what is asked for, for what it notes of its own (socket(7)).
        assert_eq!(socket.send_buffer_size().unwrap(), 65_536);
        assert_eq!(socket.recv_buffer_size().unwrap(), 65_536);
    }
}
