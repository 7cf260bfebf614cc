//! The HTTP endpoints.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use tacho_http::Limits;
use tacho_net::is_own_name;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::ask::NoAnswer;
use super::drain::DrainPhase;
use super::exposition::CONTENT_TYPE;
use super::pages::{ClientPage, PageStart, ROWS_PER_QUERY};
use super::slow::{SlowClients, Slowest};
use super::{View, bridges, metrics};

/// Concurrent connections; when there are more, one that is idle gives way.
const CONNECTIONS_MAX: usize = 16;
/// Rows per answer at most.
const ROWS_MAX: usize = 1_000;
/// Rows per answer by default.
const ROWS: usize = 100;
/// Slow clients per answer by default.
const SLOWEST: usize = 10;
/// How long a scan of all sessions waits for another scan.
const SCAN_WAIT: Duration = Duration::from_secs(4);

const INDEX: &str = "\
tacho broker
/metrics              counters and gauges for Prometheus
/healthz              200 while every shard is responsive and clients are taken, 503 otherwise
/livez                200 while every shard is responsive, 503 otherwise
/clients              sessions by page: ?limit=100&after=<next of the previous page>
/clients/slowest      clients with the most queued bytes: ?n=10
/bridges              bridges to other brokers and their connections
";

#[derive(Clone)]
struct Served {
    view: Arc<View>,
    slow: SlowClients,
    /// Held during a scan of all sessions: one at a time.
    scan: Arc<Mutex<()>>,
}

/// Serves requests until the listener fails.
pub(super) async fn serve(view: Arc<View>, listener: TcpListener) -> io::Result<()> {
    let names = match listener.local_addr()?.ip().is_loopback() {
        true => OwnNames::Loopback,
        false => OwnNames::Numeric,
    };
    let counters = Arc::clone(&view.http);
    let served = Served { view, slow: SlowClients::default(), scan: Arc::default() };
    let router = Router::new()
        .route("/", get(async || INDEX))
        .route("/metrics", get(answer_metrics))
        .route("/healthz", get(readiness))
        .route("/livez", get(liveness))
        .route("/clients", get(clients))
        .route("/clients/slowest", get(slowest))
        .route("/bridges", get(bridges))
        .with_state(served)
        .layer(from_fn_with_state(names, guard));
    let limits = Limits::with_places(CONNECTIONS_MAX);
    tacho_http::serve(listener, router, limits, counters, std::future::pending()).await
}

/// The names by which requests may ask for the broker: others may be those of a foreign web page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnNames {
    /// Those of loopback.
    Loopback,
    /// Addresses.
    Numeric,
    /// Any: the certificate proves the name.
    Any,
}

/// Refuses requests that a foreign web page made a browser send.
pub(super) async fn guard(State(names): State<OwnNames>, request: Request, next: Next) -> Response {
    let mut response = match check(names, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(message) => (StatusCode::FORBIDDEN, format!("{message}\n")).into_response(),
    };
    for (name, value) in
        [(header::CACHE_CONTROL, "no-store"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")]
    {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn check(names: OwnNames, headers: &HeaderMap) -> Result<(), &'static str> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or(""));
    let is_own = match names {
        OwnNames::Any => true,
        names => {
            text(header::HOST).is_some_and(|host| is_own_name(host, names == OwnNames::Loopback))
        }
    };
    if !is_own {
        return Err("The broker answers only to its numeric address or localhost.");
    }
    let site = text(HeaderName::from_static("sec-fetch-site"));
    if headers.contains_key(header::ORIGIN) || site == Some("cross-site") {
        return Err("Requests from web pages are refused.");
    }
    Ok(())
}

async fn answer_metrics(State(served): State<Served>) -> impl IntoResponse {
    let slow = served.slow.clients(&served.view);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics::write(&served.view, &slow))
}

/// Whether clients should be sent here.
async fn readiness(State(served): State<Served>) -> Result<&'static str, Response> {
    let answer = liveness(State(served.clone())).await.map_err(IntoResponse::into_response)?;
    match served.view.drain.phase() {
        DrainPhase::Off => Ok(answer),
        _ => {
            let why = "the broker is being drained: it takes no clients\n";
            Err((StatusCode::SERVICE_UNAVAILABLE, why).into_response())
        }
    }
}

/// Whether the broker works: one that is being drained does.
async fn liveness(State(served): State<Served>) -> Result<&'static str, Unavailable> {
    served.view.health_of_all().await?;
    Ok("ok\n")
}

async fn bridges(State(served): State<Served>) -> Json<bridges::BridgeList> {
    Json(bridges::BridgeList::new(&served.view.bridges))
}

/// A shard that does not answer: 503.
struct Unavailable(NoAnswer);

impl From<NoAnswer> for Unavailable {
    fn from(why: NoAnswer) -> Self {
        Self(why)
    }
}

impl IntoResponse for Unavailable {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", self.0)).into_response()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowestQuery {
    n: Option<usize>,
}

async fn slowest(
    State(served): State<Served>,
    Query(query): Query<SlowestQuery>,
) -> Result<Json<Slowest>, (StatusCode, &'static str)> {
    let limit = query.n.unwrap_or(SLOWEST).min(ROWS_PER_QUERY);
    let Ok(_one_at_a_time) = timeout(SCAN_WAIT, served.scan.lock()).await else {
        return Err((
            StatusCode::SERVICE_UNAVAILABLE,
            "another scan is running: try again later\n",
        ));
    };
    Ok(Json(served.view.slowest(limit).await))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientsQuery {
    limit: Option<usize>,
    after: Option<String>,
}

async fn clients(
    State(served): State<Served>,
    Query(query): Query<ClientsQuery>,
) -> Result<Json<ClientPage>, Response> {
    let start = match query.after.as_deref().map(PageStart::parse) {
        None => PageStart::default(),
        Some(Some(place)) => place,
        Some(None) => {
            let message = "`after` must be the `next` of the previous page\n";
            return Err((StatusCode::BAD_REQUEST, message).into_response());
        }
    };
    let limit = query.limit.unwrap_or(ROWS).clamp(1, ROWS_MAX);
    let page = served.view.page(start, limit, None).await;
    page.map(Json).map_err(|why| Unavailable(why).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_pages_and_foreign_host_names_are_refused() {
        let refused = |loopback: bool, headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let names = if loopback { OwnNames::Loopback } else { OwnNames::Numeric };
            check(names, &map).is_err()
        };
        let host = ("host", "127.0.0.1:9883");
        assert!(!refused(true, &[host]));
        assert!(!refused(false, &[("host", "10.0.0.7:9883")]));
        assert!(refused(true, &[("host", "10.0.0.7:9883")]));
        assert!(refused(true, &[("host", "evil.example:9883")]));
        assert!(refused(true, &[]));
        assert!(refused(true, &[host, ("origin", "http://evil.example")]));
        assert!(refused(true, &[host, ("sec-fetch-site", "cross-site")]));
        assert!(!refused(true, &[host, ("sec-fetch-site", "none")]));
    }
}
