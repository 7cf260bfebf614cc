//! Listening sockets: binding, accepting, and what happens when descriptors run out.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// When neither accepting nor refusing is possible, both pause this long.
const ACCEPT_PAUSE_NS: u64 = 50_000_000;

/// Opens a listening TCP socket: non-blocking, address reusable, `TCP_NODELAY` (which accepted
/// connections inherit on Linux). `backlog` is the number of connections that may wait to be
/// accepted; the kernel caps it at `net.core.somaxconn`.
///
/// # Errors
/// What the system says, for instance that the address is in use.
pub fn bind(addr: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.bind(&addr.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// One listening socket of a loop.
pub(crate) struct Listener {
    pub(crate) socket: mio::net::TcpListener,
    /// The kernel may have connections for us.
    pub(crate) ready: bool,
    /// Not before this time.
    pub(crate) retry_at_ns: u64,
}

impl Listener {
    pub(crate) fn new(socket: TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SockRef::from(&socket).set_tcp_nodelay(true)?;
        Ok(Self { socket: mio::net::TcpListener::from_std(socket), ready: true, retry_at_ns: 0 })
    }

    /// The time at which this listener has work, if it has.
    pub(crate) fn due_ns(&self) -> u64 {
        if self.ready { self.retry_at_ns } else { u64::MAX }
    }
}

/// What one attempt to accept has brought.
pub(crate) enum Accepted {
    Stream(mio::net::TcpStream),
    /// A peer was refused because descriptors have run out.
    Refused,
    /// This peer is gone already; there may be others.
    Gone,
    /// Nobody waits, or nobody can be accepted for now.
    Nobody,
}

/// A descriptor held back so that, when they have run out, a peer can still be told: it is closed
/// to make room, the peer is accepted and closed, and the reserve is taken again. Without it the
/// peer would wait in the backlog for ever.
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
                    Accepted::Nobody
                }
                Some(Errno::MFILE | Errno::NFILE) => self.refuse(listener, now_ns),
                // Linux hands over errors that the new connection has suffered already.
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
                // No memory, or nothing that the next attempt would change.
                _ => {
                    listener.retry_at_ns = now_ns + ACCEPT_PAUSE_NS;
                    Accepted::Nobody
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
        // Another thread was faster, or the peer is gone: look again a little later.
        listener.retry_at_ns = now_ns + ACCEPT_PAUSE_NS;
        Accepted::Nobody
    }
}
