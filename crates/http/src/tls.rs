//! TLS below HTTP. The handshake is a part of reading and writing, so that the places and deadlines
//! of connections hold for it, and a peer that is slow with it keeps no other one waiting.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};

use crate::listener::Accept;

/// The settings of the next connection: certificates may change while the server runs.
pub type TlsSource = Arc<dyn Fn() -> Arc<rustls::ServerConfig> + Send + Sync>;

/// A listener whose connections are encrypted.
pub(crate) struct TlsListener {
    pub(crate) listener: TcpListener,
    pub(crate) source: TlsSource,
}

impl Accept for TlsListener {
    type Stream = TlsConnection;

    async fn next(&mut self) -> (TlsConnection, IpAddr) {
        let (stream, peer) = self.listener.next().await;
        let handshake = TlsAcceptor::from((self.source)()).accept(stream);
        (TlsConnection::Handshake(Box::new(handshake)), peer)
    }
}

/// An encrypted connection.
pub(crate) enum TlsConnection {
    Handshake(Box<tokio_rustls::Accept<TcpStream>>),
    Open(Box<TlsStream<TcpStream>>),
    Failed,
}

impl TlsConnection {
    /// The connection once its handshake is done.
    fn poll_open(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let Self::Handshake(handshake) = self {
            *self = match ready!(Pin::new(&mut **handshake).poll(context)) {
                Ok(stream) => Self::Open(Box::new(stream)),
                Err(error) => {
                    *self = Self::Failed;
                    return Poll::Ready(Err(error));
                }
            };
        }
        Poll::Ready(match self {
            Self::Open(stream) => Ok(Pin::new(&mut **stream)),
            Self::Handshake(_) | Self::Failed => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_open(context))?.poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.get_mut().poll_open(context))?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(&mut **stream).poll_flush(context),
            // Nothing was written.
            Self::Handshake(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(&mut **stream).poll_shutdown(context),
            Self::Handshake(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }
}
