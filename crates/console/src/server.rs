//! The thread that serves, and the connections that it takes.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::ConsoleError;
use crate::guard::Guard;

/// Connections at a time; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;
/// How long connections may take to end once the server ends.
const FAREWELL: Duration = Duration::from_secs(2);
/// The lowest priority that a thread can have.
const NICE: i32 = 19;

/// A server on a thread of its own.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `router` until `end` has come; `cpus` says where, empty leaves it to the system.
    pub(crate) fn start(
        listener: TcpListener,
        router: Router,
        cpus: Vec<usize>,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, ConsoleError> {
        Self::spawn(listener, router, cpus, end).map_err(ConsoleError::Serve)
    }

    fn spawn(
        listener: TcpListener,
        router: Router,
        cpus: Vec<usize>,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let guard = Guard { loopback: address.ip().is_loopback() };
        let router = router.layer(from_fn_with_state(guard, Guard::check));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(4)
            .thread_name("tacho-page-file")
            .build()?;
        let thread =
            std::thread::Builder::new().name("tacho-page".to_owned()).spawn(move || {
                if !cpus.is_empty() {
                    // Without effect where the system does not allow it.
                    let _ = tacho_net::bind_to_cpus(&cpus);
                }
                // Of this thread alone, on Linux. The measured threads come first.
                let _ = rustix::process::setpriority_process(None, NICE);
                runtime.block_on(run(listener, router, end));
                runtime.shutdown_timeout(FAREWELL);
            })?;
        Ok(Self { address, thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL to open in a browser.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits until it has ended, which it does once its `end` has come.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn run(
    listener: TcpListener,
    router: Router,
    end: impl Future<Output = ()> + Send + 'static,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let listener = Bounded { listener, free: Arc::new(Semaphore::new(CONNECTIONS_MAX)) };
    let (ending, ended) = oneshot::channel();
    let end = async move {
        end.await;
        let _ = ending.send(());
    };
    let patience = async move {
        let _ = ended.await;
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        _ = axum::serve(listener, router).with_graceful_shutdown(end) => {}
        () = patience => {}
    }
}

/// A listener with a bound on its connections.
struct Bounded {
    listener: tokio::net::TcpListener,
    free: Arc<Semaphore>,
}

impl Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&self.free).acquire_owned().await else { continue };
            let (stream, peer) = Listener::accept(&mut self.listener).await;
            // Each second is sent at once.
            let _ = stream.set_nodelay(true);
            return (Connection { stream, _permit: permit }, peer);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that gives its place back.
struct Connection {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
