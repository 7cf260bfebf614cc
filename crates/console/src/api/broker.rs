//! Requests that the pages of a broker make, passed on to it.
//!
//! Only what is listed here is: keys of the management API stay with `tacho ctl`, since they
//! outlive what they were made for. Operators of the console can run commands as its user, who has
//! the socket or the key: what the broker allows that one is passed on for them, also what is for
//! administrators of the broker.

use std::io;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, RequestExt as _};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use serde_json::json;
use tacho_http::{ApiError, Peer, Problem, Role, body};
use tokio::time::timeout;

use super::state::Api;
use crate::broker_door::{BrokerDoor, DoorAnswer};
use crate::relay::sse;

/// Where the operations of a broker are.
const BROKER_BASE: &str = "/api/v1";
/// Below this the pages ask for the broker.
const PREFIX: &str = "/api/v1/broker";
/// Bytes of an answer: a page of a thousand clients with long names, a large retained message.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// How long the rest of an answer may take.
const BODY_TIME: Duration = Duration::from_secs(30);
/// What all may see, by the first part of the path.
const VIEWS: [&str; 24] = [
    "alarms",
    "backup",
    "bans",
    "bridges",
    "clients",
    "config",
    "drain",
    "events",
    "explain",
    "group",
    "groups",
    "history",
    "journal",
    "limits",
    "listeners",
    "metrics",
    "openapi.json",
    "receivers",
    "retained",
    "roles",
    "session",
    "status",
    "subscribers",
    "users",
];
/// What only operators of the console may see: a trace shows what clients send.
const TRACE: &str = "trace";
/// What operators of the console may change, by the first part of the path.
const CHANGES: [(Method, &str); 12] = [
    (Method::POST, "backup"),
    (Method::POST, "bridge-test"),
    (Method::POST, "bridges"),
    (Method::DELETE, "bridges"),
    (Method::DELETE, "clients"),
    (Method::DELETE, "retained"),
    (Method::POST, "publish"),
    (Method::POST, "bans"),
    (Method::DELETE, "bans"),
    (Method::POST, "drain"),
    (Method::DELETE, "drain"),
    (Method::POST, "reload"),
];
/// The kind of an answer without an end.
const STREAM: &str = "text/event-stream";

/// An error of the management API.
#[derive(Deserialize)]
struct Refusal {
    error: Problem,
    #[serde(default)]
    problems: Vec<Problem>,
}

/// Whether there is a broker, and where.
pub(crate) async fn about(State(api): State<Api>) -> Response {
    let place = api.broker().map(ToString::to_string);
    Json(json!({ "place": place })).into_response()
}

/// Passes a request on to the broker, and its answer back.
pub(crate) async fn pass_on(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Extension(role): Extension<Role>,
    request: Request,
) -> Result<Response, ApiError> {
    let door = api.broker().ok_or_else(|| {
        ApiError::not_found("no broker is given: start the console with --manage")
    })?;
    let method = request.method().clone();
    let target = target(request.uri().path_and_query().map_or("", |target| target.as_str()));
    let target = target
        .filter(|target| is_passed_on(role, &method, target))
        .ok_or_else(|| ApiError::new(StatusCode::FORBIDDEN, "the console does not pass this on"))?;
    let sent: Result<Bytes, BytesRejection> = request.extract().await;
    let asked = door.ask(method, &target, body(sent)?).await;
    let DoorAnswer { response, connection } = asked.map_err(|error| unreachable(door, &error))?;
    let status = response.status();
    let (head, incoming) = response.into_parts();
    if status.is_success() && is_stream(&head.headers) {
        let (place, displaced) = api.watchers().enter(peer.0);
        let pieces = incoming.into_data_stream().filter_map(|piece| std::future::ready(piece.ok()));
        let farewell = "data: {\"event\":\"displaced\"}\n\n";
        let displaced = displaced.shared();
        let is_displaced = displaced.clone();
        let farewell = stream::once(async move {
            matches!(is_displaced.now_or_never(), Some(Ok(()))).then(|| Bytes::from(farewell))
        });
        let pieces = pieces.take_until(displaced);
        let pieces = pieces.chain(farewell.filter_map(std::future::ready));
        return Ok(sse(pieces.map(move |piece| {
            // Both are held for as long as the page is there.
            let _held = (&place, &connection);
            piece
        })));
    }
    let whole = timeout(BODY_TIME, Limited::new(incoming, ANSWER_BYTES_MAX).collect()).await;
    let whole = whole.map_err(|_| unreachable(door, &io::ErrorKind::TimedOut.into()))?;
    let bytes = whole
        .map_err(|_| {
            ApiError::new(StatusCode::BAD_GATEWAY, "the answer of the broker is too large")
        })?
        .to_bytes();
    if !status.is_success() {
        return Err(refused(status, &bytes));
    }
    let kind = match head.headers.get(header::CONTENT_TYPE) {
        Some(kind) if !bytes.is_empty() => kind.clone(),
        _ => return Ok(status.into_response()),
    };
    let head = [(header::CONTENT_TYPE, kind)];
    Ok((status, head, Body::from(bytes)).into_response())
}

/// The address at the broker: the rest of the path, as it is, with its query.
fn target(asked: &str) -> Option<String> {
    let rest = asked.strip_prefix(PREFIX)?.strip_prefix('/')?;
    Some(format!("{BROKER_BASE}/{rest}"))
}

fn is_passed_on(role: Role, method: &Method, target: &str) -> bool {
    let rest =
        target.strip_prefix(BROKER_BASE).and_then(|rest| rest.strip_prefix('/')).unwrap_or("");
    let first = rest.split(['/', '?']).next().unwrap_or("");
    match *method {
        Method::GET if first == TRACE => role >= Role::Operator,
        Method::GET => VIEWS.contains(&first),
        _ => CHANGES.iter().any(|(known, part)| known == method && *part == first),
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(STREAM))
}

fn unreachable(door: &BrokerDoor, error: &io::Error) -> ApiError {
    let message = format!("the broker does not answer at {door}: {error}");
    ApiError::new(StatusCode::BAD_GATEWAY, message)
}

/// An error of the broker as one of the console. That it does not know the key is no fault of who
/// asks here.
fn refused(status: StatusCode, bytes: &[u8]) -> ApiError {
    let Ok(Refusal { error, problems }) = serde_json::from_slice(bytes) else {
        return ApiError::new(StatusCode::BAD_GATEWAY, "the broker's answer is none of its API");
    };
    match status {
        StatusCode::UNAUTHORIZED => {
            let message =
                format!("the broker does not take the key of the console: {}", error.message);
            ApiError::new(StatusCode::BAD_GATEWAY, message)
        }
        status => ApiError::with(status, error, problems),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_passed_on() {
        let passes = |method: Method, asked: &str| {
            target(asked).is_some_and(|target| is_passed_on(Role::Operator, &method, &target))
        };
        for asked in ["status", "clients?limit=1", "clients/a%2Fb", "events", "openapi.json"] {
            assert!(passes(Method::GET, &format!("{PREFIX}/{asked}")), "{asked}");
        }
        for asked in ["", "/", "/keys", "/keys/x", "/%6Beys", "/../keys", "/traces", "x"] {
            assert!(!passes(Method::GET, &format!("{PREFIX}{asked}")), "{asked}");
        }
        assert!(passes(Method::DELETE, "/api/v1/broker/clients/a?session=end"));
        assert!(passes(Method::POST, "/api/v1/broker/publish"));
        assert!(passes(Method::POST, "/api/v1/broker/bridges/cloud"));
        assert!(passes(Method::POST, "/api/v1/broker/bridges?replace=true"));
        assert!(passes(Method::DELETE, "/api/v1/broker/bridges/cloud?discard=true"));
        assert!(passes(Method::POST, "/api/v1/broker/drain"));
        assert!(passes(Method::GET, "/api/v1/broker/trace?client_id=a"));
        let seen = |target: &str| is_passed_on(Role::Viewer, &Method::GET, target);
        assert!(seen("/api/v1/clients") && !seen("/api/v1/trace?client_id=a"));
        for (method, asked) in [
            (Method::POST, "keys"),
            (Method::DELETE, "keys/a"),
            (Method::POST, "clients"),
            (Method::PATCH, "clients/a"),
            (Method::POST, "users"),
            (Method::POST, "bridge-tests"),
            (Method::DELETE, "backup"),
        ] {
            assert!(!passes(method, &format!("{PREFIX}/{asked}")), "{asked}");
        }
    }

    #[test]
    fn errors_of_the_broker_are_errors_of_the_console() {
        let error = br#"{"error": {"field": "limit", "message": "write a number from 1 to 1000"}}"#;
        let refusal = refused(StatusCode::BAD_REQUEST, error);
        assert_eq!(refusal.status(), StatusCode::BAD_REQUEST);
        assert_eq!(refusal.error().field.as_deref(), Some("limit"));
        assert_eq!(refused(StatusCode::UNAUTHORIZED, error).status(), StatusCode::BAD_GATEWAY);
        assert_eq!(refused(StatusCode::NOT_FOUND, b"<html>").status(), StatusCode::BAD_GATEWAY);
    }
}
