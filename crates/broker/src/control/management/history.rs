//! How the broker has been in the last hour and the last day: a bounded number of points, which the
//! control plane takes from its counters.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use tacho_http::ApiError;
use tacho_net::clock;
use tokio::time::MissedTickBehavior;

use super::Api;
use super::answers::query;
use crate::control::View;

/// Time between two points of the last hour.
const FINE_EVERY_S: u64 = 10;
/// Time between two points of the last day.
const COARSE_EVERY_S: u64 = 60;
/// Points of the last hour, and of the last day.
const POINTS_MAX: [usize; 2] = [360, 1_440];

/// The broker at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HistoryPoint {
    time_ms: u64,
    clients_connected: u64,
    sessions: u64,
    messages_in: u64,
    messages_out: u64,
    dropped: u64,
    waiting: u64,
    memory_bytes: u64,
    journal_bytes: u64,
    /// The largest since the point before.
    loop_lag_us: u64,
    overload_level: u64,
}

/// Points of the last hour and of the last day.
#[derive(Debug, Default)]
pub(super) struct History {
    points: Mutex<HistoryRings>,
}

#[derive(Debug, Default)]
struct HistoryRings {
    hour: VecDeque<HistoryPoint>,
    day: VecDeque<HistoryPoint>,
    /// Of the points since the last one of the day.
    lag_us_max: u64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HistoryQuery {
    /// `hour`, the default, or `day`.
    span: Option<HistorySpan>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HistorySpan {
    #[default]
    Hour,
    Day,
}

/// A value per point in each list, the oldest first. Messages and drops are counted since the start
/// of the broker: the difference of two points is a rate.
#[derive(Serialize)]
pub(super) struct HistoryAnswer {
    span: HistorySpan,
    every_s: u64,
    time_ms: Vec<u64>,
    clients_connected: Vec<u64>,
    sessions: Vec<u64>,
    messages_in: Vec<u64>,
    messages_out: Vec<u64>,
    dropped: Vec<u64>,
    waiting: Vec<u64>,
    memory_bytes: Vec<u64>,
    journal_bytes: Vec<u64>,
    loop_lag_us: Vec<u64>,
    overload_level: Vec<u64>,
}

impl HistoryPoint {
    fn of(view: &View) -> Self {
        let max = |value: fn(&crate::stats::ShardStats) -> u64| {
            view.stats.iter().map(|stats| value(stats)).max().unwrap_or_default()
        };
        let journal = view.journal.as_ref().map(|journal| journal.stats().log_bytes.get());
        Self {
            time_ms: clock::unix_ns() / 1_000_000,
            clients_connected: view.total(|stats| &stats.sessions_connected),
            sessions: view.total(|stats| &stats.sessions),
            messages_in: view.sum(|stats| stats.publishes_in_total.total()),
            messages_out: view.sum(|stats| stats.publishes_out_total.total()),
            dropped: view
                .total_named(|name| name.starts_with("dropped") && name.ends_with("_total")),
            waiting: view.total(|stats| &stats.waiting),
            memory_bytes: view.total(|stats| &stats.memory_bytes),
            journal_bytes: journal.unwrap_or_default(),
            loop_lag_us: max(|stats| stats.loop_lag_us.value()),
            overload_level: max(|stats| stats.overload_level.value()),
        }
    }
}

impl History {
    fn add(&self, point: HistoryPoint) {
        self.points.lock().unwrap_or_else(PoisonError::into_inner).add(point);
    }

    fn answer(&self, span: HistorySpan) -> HistoryAnswer {
        let rings = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        let (points, every_s) = match span {
            HistorySpan::Hour => (&rings.hour, FINE_EVERY_S),
            HistorySpan::Day => (&rings.day, COARSE_EVERY_S),
        };
        let all = |value: fn(&HistoryPoint) -> u64| points.iter().map(value).collect();
        HistoryAnswer {
            span,
            every_s,
            time_ms: all(|point| point.time_ms),
            clients_connected: all(|point| point.clients_connected),
            sessions: all(|point| point.sessions),
            messages_in: all(|point| point.messages_in),
            messages_out: all(|point| point.messages_out),
            dropped: all(|point| point.dropped),
            waiting: all(|point| point.waiting),
            memory_bytes: all(|point| point.memory_bytes),
            journal_bytes: all(|point| point.journal_bytes),
            loop_lag_us: all(|point| point.loop_lag_us),
            overload_level: all(|point| point.overload_level),
        }
    }
}

impl HistoryRings {
    fn add(&mut self, point: HistoryPoint) {
        let [hour_max, day_max] = POINTS_MAX;
        push(&mut self.hour, hour_max, point);
        self.lag_us_max = self.lag_us_max.max(point.loop_lag_us);
        let is_due = self.day.back().is_none_or(|last| {
            point.time_ms.saturating_sub(last.time_ms) >= COARSE_EVERY_S * 1_000
        });
        if is_due {
            let loop_lag_us = std::mem::take(&mut self.lag_us_max);
            push(&mut self.day, day_max, HistoryPoint { loop_lag_us, ..point });
        }
    }
}

fn push(ring: &mut VecDeque<HistoryPoint>, max: usize, point: HistoryPoint) {
    if ring.len() >= max {
        ring.pop_front();
    }
    ring.push_back(point);
}

/// Adds a point now and then, until the control plane ends.
pub(super) async fn keep(api: Api) {
    let mut ticks = tokio::time::interval(Duration::from_secs(FINE_EVERY_S));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // The first tick is immediate.
        ticks.tick().await;
        api.0.history.add(HistoryPoint::of(api.view()));
    }
}

pub(super) async fn history(
    State(api): State<Api>,
    parsed: Result<Query<HistoryQuery>, QueryRejection>,
) -> Result<Json<HistoryAnswer>, ApiError> {
    let HistoryQuery { span } = query(parsed)?;
    Ok(Json(api.0.history.answer(span.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_and_a_day_are_kept_and_the_oldest_points_go() {
        let history = History::default();
        let day_s = 2 * 24 * 3_600;
        for second in (0..day_s).step_by(FINE_EVERY_S as usize) {
            let loop_lag_us = if second % 3_600 == 30 { 900 } else { 10 };
            history.add(HistoryPoint {
                time_ms: second * 1_000,
                loop_lag_us,
                ..Default::default()
            });
        }
        let (hour, day) = (history.answer(HistorySpan::Hour), history.answer(HistorySpan::Day));
        assert_eq!([hour.time_ms.len(), day.time_ms.len()], POINTS_MAX);
        let span_s = |times: &[u64]| (times[times.len() - 1] - times[0]) / 1_000;
        assert_eq!((span_s(&hour.time_ms), span_s(&day.time_ms)), (3_590, 24 * 3_600 - 60));
        // A minute has the largest lag of its seconds.
        assert_eq!(day.loop_lag_us.iter().filter(|lag| **lag == 900).count(), 24);
    }
}
