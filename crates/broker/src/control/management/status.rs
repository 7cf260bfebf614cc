//! How the broker stands: figures, limits, listeners, bridges, journal, metrics.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use tacho_http::ApiError;
use tacho_journal::Journal;

use super::Api;
use crate::control::drain::DrainPhase;
use crate::control::exposition::CONTENT_TYPE;
use crate::control::{journal, metrics};

/// The broker in a few figures.
#[derive(Serialize)]
pub(super) struct BrokerStatus {
    version: &'static str,
    uptime_s: u64,
    shards: usize,
    /// Every shard takes turns, and does what it is asked in time.
    healthy: bool,
    /// Which does not, and why.
    problem: Option<String>,
    clients_connected: u64,
    sessions: u64,
    subscriptions: u64,
    retained: u64,
    messages_in: u64,
    messages_out: u64,
    /// Messages that sessions hold: queued or in flight.
    waiting: u64,
    /// `off`, or how far a drain is.
    drain: DrainPhase,
    /// Bytes of queued messages and of buffers.
    memory_bytes: u64,
    /// 0 normal, 1 accepts slowed, 2 QoS 0 to slow readers dropped, 3 publishers throttled, 4
    /// connections refused.
    overload_level: u64,
    bridges_up: usize,
    bridges: usize,
}

/// A limit and how much of it is used.
#[derive(Serialize)]
struct LimitRow {
    limit: &'static str,
    used: u64,
    max: u64,
}

/// The limits of the broker as a whole.
#[derive(Serialize)]
pub(super) struct LimitList {
    limits: Vec<LimitRow>,
}

/// The journal.
#[derive(Serialize)]
pub(super) struct JournalAnswer {
    directory: Option<String>,
    condition: &'static str,
    segments: u64,
    log_bytes: u64,
    live_bytes: u64,
    /// Bytes of the log that nothing needs any more.
    garbage_bytes: u64,
    live_messages: u64,
    live_entries: u64,
    live_keys: u64,
    commits: u64,
    freed_segments: u64,
    quarantined: u64,
}

pub(super) async fn status(State(api): State<Api>) -> Json<BrokerStatus> {
    let view = api.view();
    let problem = view.health_of_all().await.err().map(|error| error.to_string());
    let bridges = view.bridges.status();
    let max = |value: fn(&crate::stats::ShardStats) -> u64| {
        view.stats.iter().map(|stats| value(stats)).max().unwrap_or_default()
    };
    Json(BrokerStatus {
        version: env!("CARGO_PKG_VERSION"),
        uptime_s: view.uptime().as_secs(),
        shards: view.stats.len(),
        healthy: problem.is_none(),
        problem,
        clients_connected: view.total(|stats| &stats.sessions_connected),
        sessions: view.total(|stats| &stats.sessions),
        subscriptions: view.total(|stats| &stats.subscriptions),
        retained: view.total(|stats| &stats.retained),
        messages_in: view.sum(|stats| stats.publishes_in_total.total()),
        messages_out: view.sum(|stats| stats.publishes_out_total.total()),
        waiting: view.total(|stats| &stats.waiting),
        drain: view.drain.phase(),
        memory_bytes: view.total(|stats| &stats.memory_bytes),
        overload_level: max(|stats| stats.overload_level.value()),
        bridges_up: bridges.iter().filter(|b| b.connected == b.links.len()).count(),
        bridges: bridges.len(),
    })
}

pub(super) async fn limits(State(api): State<Api>) -> Json<LimitList> {
    let shared = &api.broker().shared;
    let limits = api.broker().reloads.limits();
    let (retained, retained_bytes) = shared.retained_totals.now();
    let (subscriptions, filter_bytes) = shared.subscriptions.now();
    let row = |limit, used: u64, max: u64| LimitRow { limit, used, max };
    let limits = vec![
        row("connections_max", shared.connections.used() as u64, shared.connections.max() as u64),
        row("handshakes_max", shared.handshakes.used() as u64, limits.handshakes_max as u64),
        row("sessions_max", api.view().total(|stats| &stats.sessions), limits.sessions_max as u64),
        row("subscriptions_max", subscriptions as u64, limits.subscriptions_max as u64),
        row("subscriptions_bytes_max", filter_bytes, limits.subscriptions_bytes_max),
        row("retained_count_max", retained as u64, limits.retained_count_max as u64),
        row("retained_bytes_max", retained_bytes, limits.retained_bytes_max),
    ];
    Json(LimitList { limits })
}

pub(super) async fn journal(State(api): State<Api>) -> Result<Json<JournalAnswer>, ApiError> {
    let Some(journal) = &api.view().journal else {
        let message = "this broker has no journal: it has no `data_dir`";
        return Err(ApiError::not_found(message));
    };
    let directory = api.broker().config.data_dir.as_ref().map(|dir| dir.display().to_string());
    Ok(Json(of_journal(journal, directory)))
}

fn of_journal(journal: &Journal, directory: Option<String>) -> JournalAnswer {
    let stats = journal.stats();
    let (log_bytes, live_bytes) = (stats.log_bytes.get(), stats.live_bytes.get());
    JournalAnswer {
        directory,
        condition: journal::condition_name(journal.condition()),
        segments: stats.segments.get(),
        log_bytes,
        live_bytes,
        garbage_bytes: log_bytes.saturating_sub(live_bytes),
        live_messages: stats.live_messages.get(),
        live_entries: stats.live_entries.get(),
        live_keys: stats.live_keys.get(),
        commits: stats.commits.get(),
        freed_segments: stats.freed_segments.get(),
        quarantined: stats.quarantined.get(),
    }
}

pub(super) async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics::write(api.view(), &[]))
}
