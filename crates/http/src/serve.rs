//! The server.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use tokio::sync::oneshot;

use crate::answering;
use crate::limits::{Counters, Limits};
use crate::listener::BoundedListener;
use crate::places::{Place, Places};

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
    let listener = BoundedListener { listener, places: Places::new(limits, counters) };
    let service =
        router.layer(from_fn(answering::note)).into_make_service_with_connect_info::<Place>();
    let (ending, ended) = oneshot::channel();
    let end = async move {
        end.await;
        let _ = ending.send(());
    };
    let patience = async move {
        let _ = ended.await;
        tokio::time::sleep(limits.farewell).await;
    };
    tokio::select! {
        served = axum::serve(listener, service).with_graceful_shutdown(end) => served,
        () = patience => Ok(()),
    }
}
