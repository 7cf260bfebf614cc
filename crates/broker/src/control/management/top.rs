//! The clients and messages that take most: found by looking at everything in pieces, or counted
//! for a while.

use std::cmp::Reverse;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tacho_http::ApiError;
use tacho_net::clock;
use tacho_topic::{RetainedCursor, TopicFilter};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::Api;
use super::answers::query;
use crate::control::View;
use crate::control::slow::Slowest;
use crate::mail::Mail;
use crate::query::{
    ClientRow, PublisherRow, PublisherScan, Query as Ask, RetainedRow, RetainedScan, ScanOrder,
    SlowRow,
};

/// Rows by default, and at most.
const ROWS: usize = 10;
const ROWS_MAX: usize = 100;
/// For how long publishes are counted by default, and at most.
const COUNTED_S: u64 = 5;
const COUNTED_S_MAX: u64 = 30;
/// Pause between two questions to a shard, which has clients to serve.
const PAUSE: Duration = Duration::from_millis(1);
/// Rows of one question about retained messages.
const RETAINED_ROWS: usize = 512;
/// Limit for a look at everything: what has been found by then is the answer.
const LOOK_MAX: Duration = Duration::from_secs(8);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TopQuery {
    limit: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PublishersQuery {
    limit: Option<usize>,
    seconds: Option<u64>,
}

/// Clients with the largest queues.
#[derive(Serialize)]
pub(super) struct QueueList {
    clients: Vec<ClientRow>,
    /// All sessions were looked at.
    complete: bool,
}

/// The largest retained messages.
#[derive(Serialize)]
pub(super) struct LargestRetained {
    retained: Vec<RetainedRow>,
    complete: bool,
}

/// Clients that publish most.
#[derive(Serialize)]
pub(super) struct PublisherList {
    /// For how long publishes were counted.
    counted_ms: u64,
    clients: Vec<PublisherRow>,
}

/// Clients that are or were slow.
#[derive(Serialize)]
pub(super) struct SlowList {
    now: Vec<ClientRow>,
    complete: bool,
    /// The last ones first.
    past: Vec<SlowRow>,
}

/// How many rows are wanted.
fn rows(limit: Option<usize>) -> Result<usize, ApiError> {
    match limit.unwrap_or(ROWS) {
        rows @ 1..=ROWS_MAX => Ok(rows),
        _ => Err(ApiError::about("limit", format!("write a number from 1 to {ROWS_MAX}"))),
    }
}

pub(super) async fn queues(
    State(api): State<Api>,
    parsed: Result<Query<TopQuery>, QueryRejection>,
) -> Result<Json<QueueList>, ApiError> {
    let limit = rows(query(parsed)?.limit)?;
    let _one_at_a_time = api.search().await?;
    let Slowest { clients, complete } = api.view().first_of(limit, ScanOrder::Queue).await;
    Ok(Json(QueueList { clients, complete }))
}

pub(super) async fn slow(
    State(api): State<Api>,
    parsed: Result<Query<TopQuery>, QueryRejection>,
) -> Result<Json<SlowList>, ApiError> {
    let limit = rows(query(parsed)?.limit)?;
    let _one_at_a_time = api.search().await?;
    let Slowest { clients, complete } = api.view().slowest(limit).await;
    let mut past = Vec::new();
    for shard in 0..api.view().stats.len() {
        past.extend(api.view().ask(shard, Ask::SlowHistory).await?);
    }
    past.sort_by_key(|row| row.ended_s_ago);
    Ok(Json(SlowList { now: clients, complete, past }))
}

pub(super) async fn retained(
    State(api): State<Api>,
    parsed: Result<Query<TopQuery>, QueryRejection>,
) -> Result<Json<LargestRetained>, ApiError> {
    let limit = rows(query(parsed)?.limit)?;
    let _one_at_a_time = api.search().await?;
    let mut retained = Vec::new();
    let look = largest_retained(api.view(), limit, &mut retained);
    let complete = match timeout(LOOK_MAX, look).await {
        Ok(found) => found.map(|()| true)?,
        Err(_) => false,
    };
    Ok(Json(LargestRetained { retained, complete }))
}

/// Looks at all retained messages; the largest so far are in `found`.
async fn largest_retained(
    view: &View,
    limit: usize,
    found: &mut Vec<RetainedRow>,
) -> Result<(), ApiError> {
    // Invariant: it is a filter.
    let Ok(all) = TopicFilter::parse("#") else { return Ok(()) };
    for shard in 0..view.stats.len() {
        let mut next = Some(RetainedCursor::default());
        while let Some(cursor) = next {
            let scan = RetainedScan { filter: all.clone(), cursor, limit: RETAINED_ROWS };
            let answer = view.ask(shard, |reply| Ask::Retained(scan, reply)).await?;
            found.extend(answer.rows);
            found.sort_by_key(|row| Reverse(row.payload_bytes));
            found.truncate(limit);
            next = answer.next;
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Publishes are counted until this is dropped.
struct Counting<'a>(&'a View);

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        for shard in 0..self.0.stats.len() {
            // The answer does not matter.
            let query = Ask::CountPublishes(false, oneshot::channel().0);
            self.0.remote.post(shard, Mail::Query(Box::new(query)));
        }
    }
}

pub(super) async fn publishers(
    State(api): State<Api>,
    parsed: Result<Query<PublishersQuery>, QueryRejection>,
) -> Result<Json<PublisherList>, ApiError> {
    let PublishersQuery { limit, seconds } = query(parsed)?;
    let limit = rows(limit)?;
    let seconds = seconds.unwrap_or(COUNTED_S);
    if !(1..=COUNTED_S_MAX).contains(&seconds) {
        let message = format!("write a number from 1 to {COUNTED_S_MAX}");
        return Err(ApiError::about("seconds", message));
    }
    let _one_at_a_time = api.0.counting.try_lock().map_err(|_| {
        let message = "publishes are being counted for another request: try again later";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
    })?;
    let (view, began_ns) = (api.view(), clock::now_ns());
    let counting = Counting(view);
    for shard in 0..view.stats.len() {
        view.ask(shard, |reply| Ask::CountPublishes(true, reply)).await?;
    }
    sleep(Duration::from_secs(seconds)).await;
    let counted_ms = clock::now_ns().saturating_sub(began_ns) / 1_000_000;
    let mut clients: Vec<PublisherRow> = Vec::new();
    for shard in 0..view.stats.len() {
        let mut next = Some(0);
        while let Some(from) = next {
            let scan = PublisherScan { from, limit };
            let answer = view.ask(shard, |reply| Ask::Publishers(scan, reply)).await?;
            clients.extend(answer.rows);
            clients.sort_by_key(|row| Reverse((row.messages, row.bytes)));
            clients.truncate(limit);
            next = answer.next;
            if next.is_some() {
                sleep(PAUSE).await;
            }
        }
    }
    drop(counting);
    Ok(Json(PublisherList { counted_ms, clients }))
}
