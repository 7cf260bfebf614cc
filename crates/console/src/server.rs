//! The thread that serves.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tacho_http::Limits;

use crate::error::ConsoleError;
use crate::guard::Guard;

/// Bounds of connections. Each of the page's browsers holds one for its events.
const LIMITS: Limits = Limits::with_places(64);

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
        Self::spawn(listener, router, (LIMITS, cpus), end).map_err(ConsoleError::Serve)
    }

    /// The same for requests of up to `request_bytes_max`, anywhere on the machine.
    pub(crate) fn start_for_uploads(
        listener: TcpListener,
        router: Router,
        request_bytes_max: usize,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, ConsoleError> {
        let limits = Limits { request_bytes_max, ..LIMITS };
        Self::spawn(listener, router, (limits, Vec::new()), end).map_err(ConsoleError::Serve)
    }

    fn spawn(
        listener: TcpListener,
        router: Router,
        (limits, cpus): (Limits, Vec<usize>),
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
                // The measured threads come first.
                tacho_net::lower_priority();
                let served = tacho_http::serve(listener, router, limits, Arc::default(), end);
                // Fails only where the runtime does not take the listener: there is no page then.
                let _ = runtime.block_on(served);
                runtime.shutdown_timeout(limits.farewell);
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
