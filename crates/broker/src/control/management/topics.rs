//! Topic metrics: messages of chosen filters, counted.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tacho_http::{ApiError, body, json};
use tacho_net::clock;

use super::Api;
use super::answers::{query, topic_filter};
use super::gate::Caller;
use crate::access::{AuditEvent, Name};
use crate::query::Query as Ask;
use crate::topic_metrics::{TOPIC_METRICS_MAX, TopicMetric, TopicMetricRow, TopicMetrics};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopicMetricRequest {
    filter: String,
}

/// Filters whose messages are counted.
#[derive(Serialize)]
pub(super) struct TopicMetricList {
    topics: Vec<TopicMetricRow>,
}

/// The filters that are counted. Their counts end with the broker.
#[derive(Default)]
pub(super) struct CountedTopics(Mutex<Arc<TopicMetrics>>);

impl CountedTopics {
    fn now(&self) -> Arc<TopicMetrics> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes another set of the one that there is; `None` where that cannot be.
    fn change(
        &self,
        make: impl FnOnce(&TopicMetrics) -> Option<TopicMetrics>,
    ) -> Option<Arc<TopicMetrics>> {
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *topics = Arc::new(make(&topics)?);
        Some(Arc::clone(&topics))
    }
}

impl Api {
    /// Has all shards count these filters.
    async fn count_topics(&self, topics: Arc<TopicMetrics>) -> Result<(), ApiError> {
        for shard in 0..self.view().stats.len() {
            let topics = Arc::clone(&topics);
            self.view().ask(shard, |reply| Ask::CountTopics(topics, reply)).await?;
        }
        Ok(())
    }

    fn note_topic(&self, caller: &Caller, action: &'static str, filter: &str) {
        let topic_filter = Some(Name::new(filter));
        self.note(caller, action, AuditEvent { topic_filter, ..AuditEvent::default() });
    }
}

pub(super) async fn list(State(api): State<Api>) -> Json<TopicMetricList> {
    Json(TopicMetricList { topics: api.0.topics.now().rows() })
}

pub(super) async fn add(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, ApiError> {
    let TopicMetricRequest { filter } = json(&body(bytes)?)?;
    let parsed = topic_filter(&filter)?;
    let metric = TopicMetric::new(parsed.clone(), clock::unix_ns() / 1_000_000);
    let Some(topics) = api.0.topics.change(|topics| topics.with(metric)) else {
        return Err(ApiError::conflict(match api.0.topics.now().has(&parsed) {
            true => format!("messages of '{filter}' are counted already"),
            false => format!("{TOPIC_METRICS_MAX} filters are counted already: remove one first"),
        }));
    };
    api.count_topics(topics).await?;
    api.note_topic(&caller, "count_topic", &filter);
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn remove(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    parsed: Result<Query<TopicMetricRequest>, QueryRejection>,
) -> Result<StatusCode, ApiError> {
    let TopicMetricRequest { filter } = query(parsed)?;
    let parsed = topic_filter(&filter)?;
    let Some(topics) = api.0.topics.change(|topics| topics.without(&parsed)) else {
        return Err(ApiError::not_found(format!("messages of '{filter}' are not counted")));
    };
    api.count_topics(topics).await?;
    api.note_topic(&caller, "count_topic_no_more", &filter);
    Ok(StatusCode::NO_CONTENT)
}
