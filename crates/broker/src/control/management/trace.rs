//! Traces of clients and topics as streams: bounded in time and bytes; what a reader misses is
//! told. The end of the stream ends the trace.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tacho_access::AddressRange;
use tacho_http::ApiError;
use tacho_net::clock;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Api;
use super::answers::{query, topic_filter};
use super::gate::Caller;
use super::sse::{self, Pieces};
use crate::access::{AuditEvent, Name};
use crate::mail::Mail;
use crate::query::Query as Ask;
use crate::trace::{
    PayloadForm, PayloadShape, TRACES_MAX, Trace, TraceEntry, TraceFilter, TraceReader, TraceSet,
};

/// Without packets a comment says that the connection lives.
const QUIET_MAX: Duration = Duration::from_secs(15);
/// How long a trace runs unless it is asked for longer or shorter, and at most.
const SECONDS: u64 = 600;
const SECONDS_MAX: u64 = 86_400;
/// Bytes of a trace, and how many there may be at most.
const BYTES: u64 = 16 << 20;
const BYTES_MAX: u64 = 1 << 30;
/// Bytes of a payload that are shown, and how many may be at most.
const PAYLOAD_BYTES: usize = 256;
const PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// Entries that are here are sent together, up to so many bytes.
const PIECE_BYTES: usize = 32 << 10;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TraceQuery {
    client_id: Option<String>,
    user: Option<String>,
    address: Option<String>,
    topic: Option<String>,
    payload: PayloadName,
    payload_bytes: Option<usize>,
    seconds: Option<u64>,
    bytes: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PayloadName {
    #[default]
    Off,
    Text,
    Hex,
}

/// A trace that was asked for.
struct WantedTrace {
    filter: TraceFilter,
    shape: PayloadShape,
    seconds: u64,
    bytes: u64,
}

impl WantedTrace {
    fn parse(query: TraceQuery) -> Result<Self, ApiError> {
        let TraceQuery { client_id, user, address, topic, .. } = query;
        let addresses = address.as_deref().map(AddressRange::parse).transpose();
        let addresses = addresses.map_err(|why| ApiError::about("address", why))?;
        let topic = topic.as_deref().map(topic_filter).transpose();
        let topic = topic.map_err(|_| {
            let message = "a topic filter, such as state/# or jobs/+/done";
            ApiError::about("topic", message)
        })?;
        let filter = TraceFilter { client_id, user, addresses, topic };
        if filter == TraceFilter::default() {
            let message = "say what to follow: client_id, user, address or topic";
            return Err(ApiError::about("client_id", message));
        }
        let form = match query.payload {
            PayloadName::Off => PayloadForm::Off,
            PayloadName::Text => PayloadForm::Text,
            PayloadName::Hex => PayloadForm::Hex,
        };
        let bytes_max = query.payload_bytes.unwrap_or(PAYLOAD_BYTES);
        let (seconds, bytes) = (query.seconds.unwrap_or(SECONDS), query.bytes.unwrap_or(BYTES));
        within("payload_bytes", bytes_max as u64, PAYLOAD_BYTES_MAX as u64)?;
        within("seconds", seconds, SECONDS_MAX)?;
        within("bytes", bytes, BYTES_MAX)?;
        Ok(Self { filter, shape: PayloadShape { form, bytes_max }, seconds, bytes })
    }
}

fn within(field: &str, value: u64, max: u64) -> Result<(), ApiError> {
    match value {
        1.. if value <= max => Ok(()),
        _ => Err(ApiError::about(field, format!("write a number from 1 to {max}"))),
    }
}

/// The traces that run.
#[derive(Default)]
pub(super) struct RunningTraces(Mutex<Arc<TraceSet>>);

impl RunningTraces {
    /// Adds a trace: the new set, and its place. `None` where there are too many.
    fn add(&self, trace: Trace) -> Option<(Arc<TraceSet>, usize)> {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (with, place) = set.with(Arc::new(trace))?;
        *set = Arc::new(with);
        Some((Arc::clone(&set), place))
    }

    fn remove(&self, place: usize) -> Arc<TraceSet> {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *set = Arc::new(set.without(place));
        Arc::clone(&set)
    }
}

/// A trace that runs until this is dropped.
struct Running {
    api: Api,
    place: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        let (view, set) = (self.api.view(), self.api.0.traces.remove(self.place));
        for shard in 0..view.stats.len() {
            // The answer does not matter; a shard that has ended traces no more.
            let query = Ask::Trace(Arc::clone(&set), oneshot::channel().0);
            view.remote.post(shard, Mail::Query(Box::new(query)));
        }
    }
}

/// One stream.
struct TraceStream {
    /// Present until it has ended.
    running: Option<Running>,
    reader: TraceReader,
    ends_ns: u64,
    bytes_left: u64,
}

impl Pieces for TraceStream {
    async fn next(&mut self) -> Option<String> {
        self.running.as_ref()?;
        let left = Duration::from_nanos(self.ends_ns.saturating_sub(clock::now_ns()));
        let mut piece = String::new();
        match timeout(QUIET_MAX.min(left), self.reader.next()).await {
            Ok(entry) => {
                self.add(&mut piece, &entry?);
                while piece.len() < PIECE_BYTES
                    && let Some(entry) = self.reader.try_next()
                {
                    self.add(&mut piece, &entry);
                }
            }
            Err(_) => piece.push_str(": nothing\n\n"),
        }
        self.bytes_left = self.bytes_left.saturating_sub(piece.len() as u64);
        if self.bytes_left == 0 {
            self.end(&mut piece, "it has as many bytes as it may have");
        } else if clock::now_ns() >= self.ends_ns {
            self.end(&mut piece, "its time is over");
        }
        Some(piece)
    }
}

impl TraceStream {
    fn add(&self, piece: &mut String, entry: &TraceEntry) {
        if entry.missed > 0 {
            add_missed(piece, entry.missed);
        }
        // Invariant: strings and numbers only, which JSON can always express.
        if let Ok(json) = serde_json::to_string(entry) {
            piece.push_str("data: ");
            piece.push_str(&json);
            piece.push_str("\n\n");
        }
    }

    fn end(&mut self, piece: &mut String, why: &str) {
        self.running = None;
        let missed = self.reader.take_missed();
        if missed > 0 {
            add_missed(piece, missed);
        }
        let why = format!("the trace ends: {why}");
        add(piece, &json!({"kind": "ended", "time_us": unix_us(), "text": why}));
    }
}

fn add_missed(piece: &mut String, missed: u64) {
    let text = format!("{missed} entries are missing: they came too fast");
    add(piece, &json!({"kind": "missed", "time_us": unix_us(), "count": missed, "text": text}));
}

fn add(piece: &mut String, value: &Value) {
    piece.push_str(&format!("data: {value}\n\n"));
}

fn unix_us() -> u64 {
    clock::unix_ns() / 1_000
}

pub(super) async fn trace(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    parsed: Result<Query<TraceQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let WantedTrace { filter, shape, seconds, bytes } = WantedTrace::parse(query(parsed)?)?;
    let name = |text: &Option<String>| text.as_deref().map(Name::new);
    let event = AuditEvent {
        client_id: name(&filter.client_id),
        user: name(&filter.user),
        topic_filter: filter.topic.as_ref().map(|topic| Name::new(topic.as_str())),
        why: filter.addresses.as_ref().map(|range| format!("clients from {range}")),
        ..AuditEvent::default()
    };
    let (trace, reader) = Trace::new(filter, shape);
    let Some((set, place)) = api.0.traces.add(trace) else {
        let message = format!("{TRACES_MAX} traces run already: end one first");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message));
    };
    let running = Running { api: api.clone(), place };
    for shard in 0..api.view().stats.len() {
        let set = Arc::clone(&set);
        api.view().ask(shard, |reply| Ask::Trace(set, reply)).await?;
    }
    // Payloads and names of others may be in it.
    api.note(&caller, "trace", event);
    let ends_ns = clock::now_ns().saturating_add(seconds * 1_000_000_000);
    let stream = TraceStream { running: Some(running), reader, ends_ns, bytes_left: bytes };
    let mut first = String::new();
    // Whatever happens from here on is in the stream.
    add(&mut first, &json!({"kind": "ready", "time_us": unix_us()}));
    Ok(sse::answer(stream, Some(first)))
}
