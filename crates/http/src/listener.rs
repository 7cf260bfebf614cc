//! Listeners whose connections have places.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::connection::HttpConnection;
use crate::places::{Place, Places};

/// What accepts connections.
pub(crate) trait Accept: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection, and the address of its peer.
    fn next(&mut self) -> impl Future<Output = (Self::Stream, IpAddr)> + Send;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn next(&mut self) -> (TcpStream, IpAddr) {
        let (stream, peer) = Listener::accept(self).await;
        // Each second of a live page is sent at once.
        let _ = stream.set_nodelay(true);
        (stream, peer.ip().to_canonical())
    }
}

/// A Unix socket for the processes of some users.
pub(crate) struct OwnSocket {
    pub(crate) listener: UnixListener,
    /// Whether the processes of a user may connect.
    pub(crate) admits: fn(u32) -> bool,
}

impl Accept for OwnSocket {
    type Stream = UnixStream;

    async fn next(&mut self) -> (UnixStream, IpAddr) {
        loop {
            let (stream, _) = Listener::accept(&mut self.listener).await;
            // The kernel says which user has connected.
            if stream.peer_cred().is_ok_and(|peer| (self.admits)(peer.uid())) {
                return (stream, IpAddr::V4(Ipv4Addr::LOCALHOST));
            }
        }
    }
}

/// A listener with a bound on its connections.
pub(crate) struct BoundedListener<A> {
    pub(crate) listener: A,
    pub(crate) places: Arc<Places>,
}

impl<A: Accept> Listener for BoundedListener<A> {
    type Io = HttpConnection<A::Stream>;
    type Addr = IpAddr;

    async fn accept(&mut self) -> (HttpConnection<A::Stream>, IpAddr) {
        // Earlier connections read what has come before a new one displaces them.
        tokio::task::yield_now().await;
        let (stream, peer) = self.listener.next().await;
        let place = self.places.enter(peer).await;
        (HttpConnection::new(stream, place), peer)
    }

    fn local_addr(&self) -> io::Result<IpAddr> {
        // Asked for by nothing.
        Ok(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}

impl<A: Accept> Connected<IncomingStream<'_, BoundedListener<A>>> for Place {
    fn connect_info(stream: IncomingStream<'_, BoundedListener<A>>) -> Self {
        stream.io().place().clone()
    }
}
