//! `/metrics`: a text that others scrape.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::sync::oneshot;

use crate::address::Listen;
use crate::error::ConsoleError;
use crate::server::Server;

/// Version 0.0.4 of Prometheus' text format.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a scrape gets now.
type Scraped = Arc<RwLock<String>>;

/// A server of `/metrics`; dropping it ends it.
#[derive(Debug)]
pub struct MetricsPage {
    server: Server,
    text: Scraped,
    /// Gone once it is to end.
    end: Option<oneshot::Sender<()>>,
}

impl MetricsPage {
    /// Serves an empty text at `address`.
    ///
    /// # Errors
    /// When the address cannot be taken.
    pub fn start(address: SocketAddr) -> Result<Self, ConsoleError> {
        let listener = Listen::At(address).bind()?;
        let text = Scraped::default();
        let router = Router::new().route("/metrics", get(scrape)).with_state(Arc::clone(&text));
        let (end, ended) = oneshot::channel::<()>();
        let server = Server::start(listener, router, Vec::new(), async {
            let _ = ended.await;
        })?;
        Ok(Self { server, text, end: Some(end) })
    }

    /// From now on a scrape gets `text`.
    pub fn set(&self, text: String) {
        *self.text.write().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

impl Drop for MetricsPage {
    fn drop(&mut self) {
        self.end = None;
        self.server.join();
    }
}

async fn scrape(State(text): State<Scraped>) -> impl IntoResponse {
    let text = text.read().unwrap_or_else(PoisonError::into_inner).clone();
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text)
}
