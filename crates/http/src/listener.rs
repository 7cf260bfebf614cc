//! A listener whose connections have places.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::net::TcpListener;

use crate::connection::HttpConnection;
use crate::places::{Place, Places};

/// A listener with a bound on its connections.
pub(crate) struct BoundedListener {
    pub(crate) listener: TcpListener,
    pub(crate) places: Arc<Places>,
}

impl Listener for BoundedListener {
    type Io = HttpConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (HttpConnection, SocketAddr) {
        // Earlier connections read what has come before a new one displaces them.
        tokio::task::yield_now().await;
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        // Each second of a live page is sent at once.
        let _ = stream.set_nodelay(true);
        let place = self.places.enter(peer.ip().to_canonical()).await;
        (HttpConnection::new(stream, place), peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, BoundedListener>> for Place {
    fn connect_info(stream: IncomingStream<'_, BoundedListener>) -> Self {
        stream.io().place().clone()
    }
}
