//! The server.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use tokio::sync::oneshot;

use crate::answering;
use crate::limits::{Counters, Limits};
use crate::listener::{Accept, BoundedListener, OwnSocket};
use crate::places::{Place, Places};
use crate::tls::{TlsListener, TlsSource};

/// Serves `router` on a non-blocking `listener` until `end` has come; connections then have
/// [`Limits::farewell`] to end.
///
/// # Errors
/// When the listener cannot be used by this runtime.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    counters: Arc<Counters>,
    end: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    serve_on(listener, router, Places::new(limits, counters), end).await
}

/// The same over TLS, with the settings that `source` has for each connection.
///
/// # Errors
/// When the listener cannot be used by this runtime.
pub async fn serve_tls(
    (listener, source): (TcpListener, TlsSource),
    router: Router,
    limits: Limits,
    counters: Arc<Counters>,
    end: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let listener = TlsListener { listener: tokio::net::TcpListener::from_std(listener)?, source };
    serve_on(listener, router, Places::new(limits, counters), end).await
}

/// The same on a Unix socket; connections of users that `admits` does not admit are closed at once.
///
/// # Errors
/// When the listener cannot be used by this runtime.
pub async fn serve_socket(
    (listener, admits): (UnixListener, fn(u32) -> bool),
    router: Router,
    limits: Limits,
    counters: Arc<Counters>,
    end: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let listener = tokio::net::UnixListener::from_std(listener)?;
    let listener = OwnSocket { listener, admits };
    serve_on(listener, router, Places::new(limits, counters), end).await
}

async fn serve_on(
    listener: impl Accept,
    router: Router,
    places: Arc<Places>,
    end: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let farewell = places.farewell();
    let listener = BoundedListener { listener, places };
    let service =
        router.layer(from_fn(answering::note)).into_make_service_with_connect_info::<Place>();
    let (ending, ended) = oneshot::channel();
    let end = async move {
        end.await;
        let _ = ending.send(());
    };
    let patience = async move {
        let _ = ended.await;
        tokio::time::sleep(farewell).await;
    };
    tokio::select! {
        served = axum::serve(listener, service).with_graceful_shutdown(end) => served,
        () = patience => Ok(()),
    }
}
