//! Who gets messages: the subscribers of a filter, and of a topic by whichever filter.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use tacho_http::ApiError;
use tacho_topic::{Filter, Group, TopicFilter};

use super::Api;
use super::answers::{no_cursor, query, rows, topic};
use super::cursor;
use super::groups::GroupRow;
use crate::control::ask::NoAnswer;
use crate::control::pages::ROWS_PER_QUERY;
use crate::query::{Query as Ask, SubscriberRow, SubscriberScan};

/// Questions to shards per answer: a page may have fewer rows than requested and a `next`.
const QUERIES_MAX: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilterQuery {
    filter: String,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiverQuery {
    topic: String,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Some subscribers.
#[derive(Serialize)]
pub(super) struct SubscriberPage {
    subscribers: Vec<SubscriberRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Some of those that get the messages of a topic.
#[derive(Serialize)]
pub(super) struct ReceiverPage {
    topic: String,
    subscribers: Vec<SubscriberRow>,
    /// Shared groups, of which one member each gets a message; on the first page.
    groups: Vec<GroupRow>,
    /// Bridges that forward a message; on the first page.
    bridges: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Goes through the subscribers of the filters of each shard.
struct Walk<'a> {
    api: &'a Api,
    rows: Vec<SubscriberRow>,
    limit: usize,
    queries_left: usize,
}

impl Walk<'_> {
    fn is_over(&self) -> bool {
        self.rows.len() >= self.limit || self.queries_left == 0
    }

    /// Subscribers of a filter in a shard from a place on; where to continue.
    async fn of_filter(
        &mut self,
        shard: usize,
        filter: &TopicFilter,
        mut from: usize,
    ) -> Result<Option<usize>, NoAnswer> {
        while !self.is_over() {
            self.queries_left -= 1;
            let limit = (self.limit - self.rows.len()).min(ROWS_PER_QUERY);
            let scan = SubscriberScan { filter: filter.clone(), from, limit };
            let ask = |reply| Ask::Subscribers(scan, reply);
            let answer = self.api.view().ask(shard, ask).await?;
            self.rows.extend(answer.rows);
            match answer.next {
                Some(next) => from = next,
                None => return Ok(None),
            }
        }
        Ok(Some(from))
    }
}

pub(super) async fn of_filter(
    State(api): State<Api>,
    parsed: Result<Query<FilterQuery>, QueryRejection>,
) -> Result<Json<SubscriberPage>, ApiError> {
    let FilterQuery { filter, limit, cursor } = query(parsed)?;
    let filter = Filter::parse(&filter).map_err(|e| ApiError::about("filter", e.to_string()))?;
    let Filter::Plain(filter) = filter else {
        let message = "this is a shared subscription: its members are those of its group";
        return Err(ApiError::about("filter", message));
    };
    let [mut shard, mut from] = cursor::numbers(cursor.as_deref()).ok_or_else(no_cursor)?;
    let (limit, queries_left) = (rows(limit)?, QUERIES_MAX.max(api.view().stats.len()));
    let mut walk = Walk { api: &api, rows: Vec::new(), limit, queries_left };
    let mut next = None;
    while shard < api.view().stats.len() {
        next = walk.of_filter(shard, &filter, from).await?.map(|from| [shard, from]);
        if next.is_some() {
            break;
        }
        (shard, from) = (shard + 1, 0);
    }
    let next = next.map(|place| cursor::of_numbers(&place));
    Ok(Json(SubscriberPage { subscribers: walk.rows, next }))
}

pub(super) async fn of_topic(
    State(api): State<Api>,
    parsed: Result<Query<ReceiverQuery>, QueryRejection>,
) -> Result<Json<ReceiverPage>, ApiError> {
    let ReceiverQuery { topic: name, limit, cursor } = query(parsed)?;
    topic(&name)?;
    let start = cursor::numbers(cursor.as_deref()).ok_or_else(no_cursor)?;
    let (limit, queries_left) = (rows(limit)?, QUERIES_MAX.max(2 * api.view().stats.len()));
    let mut walk = Walk { api: &api, rows: Vec::new(), limit, queries_left };
    let next = through_topic(&mut walk, &name, start).await?;
    let (groups, bridges) = match start == [0; 3] {
        true => (groups_of(&api, &name), bridges_of(&api, &name)),
        false => Default::default(),
    };
    let next = next.map(|place| cursor::of_numbers(&place));
    Ok(Json(ReceiverPage { topic: name, subscribers: walk.rows, groups, bridges, next }))
}

/// The subscribers of a topic by each of its filters, from a shard, a filter and a place on.
async fn through_topic(
    walk: &mut Walk<'_>,
    topic: &str,
    start: [usize; 3],
) -> Result<Option<[usize; 3]>, ApiError> {
    let [first, mut at, mut from] = start;
    for shard in first..walk.api.view().stats.len() {
        if walk.is_over() {
            return Ok(Some([shard, at, from]));
        }
        walk.queries_left -= 1;
        let name: Arc<str> = topic.into();
        let filters = walk.api.view().ask(shard, |reply| Ask::FiltersOf(name, reply)).await?;
        for (number, text) in filters.iter().enumerate().skip(at) {
            // Invariant: it is a filter of a subscription.
            let Ok(filter) = TopicFilter::parse(text) else { continue };
            if let Some(place) = walk.of_filter(shard, &filter, from).await? {
                return Ok(Some([shard, number, place]));
            }
            from = 0;
        }
        (at, from) = (0, 0);
    }
    Ok(None)
}

fn groups_of(api: &Api, topic: &str) -> Vec<GroupRow> {
    let mut groups = Vec::new();
    let routes = api.broker().shared.routes.snapshot();
    let _ = routes.shards_for(topic, &mut |group: &Arc<Group>| groups.push(GroupRow::new(group)));
    groups
}

fn bridges_of(api: &Api, topic: &str) -> Vec<String> {
    let all = api.view().bridges.now();
    let forwards = all.present().filter(|b| b.mode().takes() && b.egress(topic).is_some());
    forwards.map(|bridge| bridge.config().name.clone()).collect()
}
