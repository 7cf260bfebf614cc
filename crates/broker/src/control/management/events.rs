//! Events as a stream, filtered: what a watcher misses is told.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tacho_http::ApiError;
use tacho_net::clock;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::Api;
use super::answers::query;
use super::sse::{self, Pieces};
use crate::events::{Event, EventKind, Watch};

/// Watchers at once: each holds one of the connections.
pub(super) const WATCHERS_MAX: usize = 8;
/// Without events a comment says that the connection lives.
const QUIET_MAX: Duration = Duration::from_secs(15);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EventsQuery {
    /// Kinds with commas between them.
    events: Option<String>,
    client_id: Option<String>,
    prefix: Option<String>,
    user: Option<String>,
}

/// Which events are wanted.
struct EventFilter {
    kinds: Vec<EventKind>,
    client_id: Option<String>,
    prefix: Option<String>,
    user: Option<String>,
}

impl EventFilter {
    fn parse(query: EventsQuery) -> Result<Self, ApiError> {
        let EventsQuery { events, client_id, prefix, user } = query;
        let kind = |name: &str| {
            EventKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
                let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
                let message = format!("there is no event '{name}'; there are {}", known.join(", "));
                ApiError::about("events", message)
            })
        };
        let kinds = match events.as_deref() {
            None | Some("") => EventKind::ALL.to_vec(),
            Some(names) => names.split(',').map(kind).collect::<Result<_, _>>()?,
        };
        Ok(Self { kinds, client_id, prefix, user })
    }

    fn wants(&self, event: &Event) -> bool {
        let own = event.client_id.as_deref();
        self.kinds.contains(&event.event)
            && self.client_id.as_deref().is_none_or(|wanted| own == Some(wanted))
            && self
                .prefix
                .as_deref()
                .is_none_or(|prefix| own.is_some_and(|client_id| client_id.starts_with(prefix)))
            && self.user.as_deref().is_none_or(|wanted| event.user.as_deref() == Some(wanted))
    }
}

/// One stream of events.
struct EventStream {
    watch: Watch,
    filter: EventFilter,
    _place: OwnedSemaphorePermit,
}

impl Pieces for EventStream {
    async fn next(&mut self) -> Option<String> {
        loop {
            return match timeout(QUIET_MAX, self.watch.receiver.recv()).await {
                Err(_) => Some(": no events\n\n".to_owned()),
                Ok(Ok(event)) if self.filter.wants(&event) => data(&*event),
                Ok(Ok(_)) => continue,
                Ok(Err(RecvError::Lagged(missed))) => {
                    data(&json!({"event": "missed", "time_ms": unix_ms(), "count": missed}))
                }
                Ok(Err(RecvError::Closed)) => None,
            };
        }
    }
}

fn unix_ms() -> u64 {
    clock::unix_ns() / 1_000_000
}

fn data(event: &impl serde::Serialize) -> Option<String> {
    // Invariant: strings and numbers only, which JSON can always express.
    serde_json::to_string(event).ok().map(|json| format!("data: {json}\n\n"))
}

pub(super) async fn events(
    State(api): State<Api>,
    parsed: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let filter = EventFilter::parse(query(parsed)?)?;
    let place = Arc::clone(&api.0.watchers).try_acquire_owned().map_err(|_| {
        let message = format!("{WATCHERS_MAX} streams of events are open already: end one first");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
    })?;
    let watch = api.broker().shared.events.watch();
    let stream = EventStream { watch, filter, _place: place };
    // Whatever happens from here on is in the stream.
    let first = data(&json!({"event": "ready", "time_ms": unix_ms()}));
    Ok(sse::answer(stream, first))
}
