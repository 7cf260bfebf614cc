//! The socket of a connection: the kernel's, or a simulated one.
//!
//! Without the feature `sim` there is only one kind, and the match statements compile to nothing.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use socket2::SockRef;

#[cfg(feature = "sim")]
use crate::virtual_socket::Socket;

/// The socket of one connection.
pub(crate) enum Stream {
    Tcp(TcpStream),
    #[cfg(feature = "sim")]
    Virtual(Socket),
}

impl Stream {
    /// Registers for all events, once for the whole life of the connection in this loop. A
    /// simulated socket is polled in every turn and needs no registry.
    pub(crate) fn register(&mut self, registry: Option<&Registry>, token: Token) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => match registry {
                Some(registry) => {
                    stream.register(registry, token, Interest::READABLE | Interest::WRITABLE)
                }
                None => Err(io::ErrorKind::Unsupported.into()),
            },
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => {
                socket.registered();
                Ok(())
            }
        }
    }

    pub(crate) fn deregister(&mut self, registry: Option<&Registry>) {
        if let (Self::Tcp(stream), Some(registry)) = (self, registry) {
            // Fails only for a socket that is not registered.
            let _ = registry.deregister(stream);
        }
    }

    /// The kernel's socket.
    #[cfg(target_os = "linux")]
    #[inline]
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(stream) => Some(stream.as_fd()),
            #[cfg(feature = "sim")]
            Self::Virtual(_) => None,
        }
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr(),
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => Ok(socket.peer_addr()),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr(),
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => Ok(socket.local_addr()),
        }
    }

    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Self::Tcp(stream) => stream.take_error(),
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => Ok(socket.take_error()),
        }
    }

    /// Ends the output: the peer receives FIN.
    pub(crate) fn finish(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => socket.finish(),
        }
    }

    /// Makes dropping the socket reset the connection; otherwise the kernel would still send
    /// unsent output.
    pub(crate) fn reset_when_dropped(&mut self) {
        match self {
            Self::Tcp(stream) => {
                let _ = SockRef::from(&*stream).set_linger(Some(Duration::ZERO));
            }
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => socket.reset_when_dropped(),
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => socket.read(into),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => socket.write(bytes),
        }
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write_vectored(slices),
            #[cfg(feature = "sim")]
            Self::Virtual(socket) => socket.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
