//! Connections of the HTTP server, each with a time limit and a size limit.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// Concurrent connections; further ones wait in the backlog of the kernel.
const CONNECTIONS_MAX: usize = 16;
/// Bytes of a request at most.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// From the first byte of a request to the first byte of its answer.
const REQUEST_TIME: Duration = Duration::from_secs(15);
/// Between bytes of an answer, and between an answer and the next request: Prometheus keeps
/// connections for its next scrape.
const IDLE_TIME: Duration = Duration::from_secs(75);

/// A listener with a limit on its connections.
pub(super) struct BoundedListener {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

impl BoundedListener {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, free: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for BoundedListener {
    type Io = HttpConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (HttpConnection, SocketAddr) {
        loop {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&self.free).acquire_owned().await else { continue };
            let (stream, peer) = Listener::accept(&mut self.listener).await;
            let (deadline, asking, left) = (Box::pin(sleep(IDLE_TIME)), false, REQUEST_BYTES_MAX);
            return (HttpConnection { stream, deadline, asking, left, _permit: permit }, peer);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when its time or its bytes are used up.
pub(super) struct HttpConnection {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    /// A request is being received or handled: no byte of its answer has been written.
    asking: bool,
    /// Bytes left for this request.
    left: usize,
    _permit: OwnedSemaphorePermit,
}

impl HttpConnection {
    fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_pending() && self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        result
    }
}

impl AsyncRead for HttpConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let got = buffer.filled().len() - before;
        if got > 0 {
            if !self.asking {
                self.asking = true;
                self.left = REQUEST_BYTES_MAX;
                self.deadline.set(sleep(REQUEST_TIME));
            }
            if got > self.left {
                let why = "the request is too long";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
            }
            self.left -= got;
        }
        self.check(context, result)
    }
}

impl AsyncWrite for HttpConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(result, Poll::Ready(Ok(written)) if written > 0) {
            self.asking = false;
            self.deadline.set(sleep(IDLE_TIME));
        }
        self.check(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
