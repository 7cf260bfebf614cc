//! Retained messages: listed by filter, read, deleted.

use std::ops::Range;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use tacho_http::ApiError;
use tacho_topic::{RetainedCursor, TopicFilter, owner_shard};

use super::Api;
use super::answers::{no_cursor, not_own, query, rows, topic, topic_filter};
use super::cursor;
use super::gate::Caller;
use crate::access::{AuditEvent, Name};
use crate::keys::TenantId;
use crate::query::{Query as Ask, RetainedRow, RetainedScan};

/// Questions to shards per answer: a page may have fewer rows than requested and a `next`.
const QUERIES_MAX: usize = 64;
/// Messages that one request deletes.
const DELETED_MAX: usize = 1_000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RetainedQuery {
    filter: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetainedTopic {
    topic: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DeleteQuery {
    topic: Option<String>,
    filter: Option<String>,
    cursor: Option<String>,
}

/// Some retained messages.
#[derive(Serialize)]
pub(super) struct RetainedPage {
    retained: Vec<RetainedRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One retained message.
#[derive(Serialize)]
pub(super) struct RetainedAnswer {
    #[serde(flatten)]
    row: RetainedRow,
    /// Where it is text.
    payload: Option<String>,
    payload_base64: String,
    content_type: Option<String>,
}

/// What was deleted.
#[derive(Serialize)]
pub(super) struct DeletedAnswer {
    deleted: usize,
    /// Where the next request goes on; absent when all are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Api {
    /// The shards that own retained messages of these topics.
    fn owners_of(&self, filter: &TopicFilter) -> Range<usize> {
        match filter.is_exact() {
            true => {
                let owner = self.owner_of_topic(filter.as_str());
                owner..owner + 1
            }
            false => 0..self.view().stats.len(),
        }
    }

    fn owner_of_topic(&self, topic: &str) -> usize {
        owner_shard(TenantId::DEFAULT.0, topic.as_bytes(), self.view().stats.len())
    }

    /// Up to `limit` retained messages, from a place on.
    async fn retained(
        &self,
        filter: &TopicFilter,
        (shard, position): (usize, String),
        limit: usize,
    ) -> Result<RetainedPage, ApiError> {
        let owners = self.owners_of(filter);
        let mut retained = Vec::new();
        let mut place = (shard.max(owners.start), RetainedCursor::at(&position));
        for _ in 0..QUERIES_MAX {
            if place.0 >= owners.end || retained.len() >= limit {
                break;
            }
            let (filter, limit) = (filter.clone(), limit - retained.len());
            let scan = RetainedScan { filter, cursor: place.1, limit };
            let answer = self.view().ask(place.0, |reply| Ask::Retained(scan, reply)).await?;
            retained.extend(answer.rows);
            place = match answer.next {
                Some(cursor) => (place.0, cursor),
                None => (place.0 + 1, RetainedCursor::default()),
            };
        }
        let is_over = place.0 >= owners.end;
        let position = place.1.position().unwrap_or_default();
        let next = (!is_over).then(|| cursor::of_place(place.0, position));
        Ok(RetainedPage { retained, next })
    }

    async fn delete_retained(&self, topic: &str) -> Result<bool, ApiError> {
        let (owner, topic): (usize, Arc<str>) = (self.owner_of_topic(topic), topic.into());
        Ok(self.view().ask(owner, |reply| Ask::DeleteRetained(topic, reply)).await?)
    }
}

pub(super) async fn list(
    State(api): State<Api>,
    parsed: Result<Query<RetainedQuery>, QueryRejection>,
) -> Result<Json<RetainedPage>, ApiError> {
    let RetainedQuery { filter, limit, cursor } = query(parsed)?;
    let filter = topic_filter(filter.as_deref().unwrap_or("#"))?;
    let place = cursor::place(cursor.as_deref()).ok_or_else(no_cursor)?;
    Ok(Json(api.retained(&filter, place, rows(limit)?).await?))
}

pub(super) async fn read(
    State(api): State<Api>,
    parsed: Result<Query<RetainedTopic>, QueryRejection>,
) -> Result<Json<RetainedAnswer>, ApiError> {
    let name = query(parsed)?.topic;
    topic(&name)?;
    let (owner, asked): (usize, Arc<str>) = (api.owner_of_topic(&name), name.as_str().into());
    let found = api.view().ask(owner, |reply| Ask::RetainedMessage(asked, reply)).await?;
    let message = found.ok_or_else(|| nothing_retained(&name))?;
    Ok(Json(RetainedAnswer {
        row: message.row,
        payload_base64: BASE64.encode(&message.payload),
        payload: String::from_utf8(message.payload).ok(),
        content_type: message.content_type,
    }))
}

fn nothing_retained(topic: &str) -> ApiError {
    ApiError::not_found(format!("there is no retained message of the topic '{topic}'"))
}

pub(super) async fn delete(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    parsed: Result<Query<DeleteQuery>, QueryRejection>,
) -> Result<Json<DeletedAnswer>, ApiError> {
    let note = |filter: &str, count: usize| {
        let topic_filter = Some(Name::new(filter));
        let count = Some(count as u64);
        let event = AuditEvent { topic_filter, count, ..AuditEvent::default() };
        api.note(&caller, "delete_retained", event);
    };
    match query(parsed)? {
        DeleteQuery { topic: Some(name), filter: None, cursor: None } => {
            topic(&name)?;
            not_own("topic", &name)?;
            if !api.delete_retained(&name).await? {
                return Err(nothing_retained(&name));
            }
            note(&name, 1);
            Ok(Json(DeletedAnswer { deleted: 1, next: None }))
        }
        DeleteQuery { topic: None, filter: Some(text), cursor } => {
            let filter = topic_filter(&text)?;
            not_own("filter", &text)?;
            let place = cursor::place(cursor.as_deref()).ok_or_else(no_cursor)?;
            let page = api.retained(&filter, place, DELETED_MAX).await?;
            let mut deleted = 0;
            for row in &page.retained {
                deleted += usize::from(api.delete_retained(&row.topic).await?);
            }
            note(&text, deleted);
            Ok(Json(DeletedAnswer { deleted, next: page.next }))
        }
        _ => Err(ApiError::about("topic", "name either a topic or a filter")),
    }
}
