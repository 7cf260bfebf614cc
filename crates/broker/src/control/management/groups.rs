//! Shared groups: how they stand, and their members.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use tacho_http::ApiError;
use tacho_topic::{Filter, Group};

use super::Api;
use super::answers::{no_cursor, query, rows};
use super::cursor;
use crate::query::{MemberRow, Query as Ask};

/// Members that one shard tells of.
const MEMBERS_MAX: usize = 1_000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GroupsQuery {
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupQuery {
    filter: String,
}

/// A shared group.
#[derive(Serialize)]
pub(super) struct GroupRow {
    /// `$share/name/filter`.
    filter: String,
    members: usize,
    connected: u32,
    /// QoS 1 and 2 messages that the connected members could take at once.
    free_credit: i64,
    /// QoS 1 and 2 messages on their way to them or not acknowledged by them.
    inflight: i64,
    /// Messages queued because no member can take them.
    waiting: usize,
    /// Its queue is full, and publishers are refused or held back for that.
    queue_full: bool,
}

impl GroupRow {
    pub(super) fn new(group: &Group) -> Self {
        let loads = || (0..group.shards()).map(|shard| group.load(shard));
        Self {
            filter: group.shared_filter().to_string(),
            members: group.members(),
            connected: loads().map(|load| load.connected).sum(),
            free_credit: loads().map(|load| load.free_credit).sum(),
            inflight: loads().map(|load| load.inflight).sum(),
            waiting: group.waiting(),
            queue_full: group.is_full(),
        }
    }
}

/// Some shared groups.
#[derive(Serialize)]
pub(super) struct GroupPage {
    groups: Vec<GroupRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A shared group with its members.
#[derive(Serialize)]
pub(super) struct GroupDetail {
    #[serde(flatten)]
    group: GroupRow,
    member_list: Vec<MemberRow>,
    /// Not all members are in the list.
    cut: bool,
}

pub(super) async fn list(
    State(api): State<Api>,
    parsed: Result<Query<GroupsQuery>, QueryRejection>,
) -> Result<Json<GroupPage>, ApiError> {
    let GroupsQuery { limit, cursor } = query(parsed)?;
    let limit = rows(limit)?;
    let [after] = cursor::numbers(cursor.as_deref()).ok_or_else(no_cursor)?;
    let mut all = api.broker().shared.routes.groups();
    all.retain(|group| group.members() > 0 && group.id() > after as u64);
    // Numbers are given out one after the other: a page begins behind one whatever comes and goes.
    all.sort_unstable_by_key(|group| group.id());
    let next = (all.len() > limit).then(|| cursor::of_numbers(&[all[limit - 1].id() as usize]));
    let groups = all.iter().take(limit).map(|group| GroupRow::new(group)).collect();
    Ok(Json(GroupPage { groups, next }))
}

pub(super) async fn group(
    State(api): State<Api>,
    parsed: Result<Query<GroupQuery>, QueryRejection>,
) -> Result<Json<GroupDetail>, ApiError> {
    let text = query(parsed)?.filter;
    let filter = Filter::parse(&text).map_err(|e| ApiError::about("filter", e.to_string()))?;
    let Filter::Shared(filter) = filter else {
        return Err(ApiError::about("filter", "write it with its group: $share/GROUP/FILTER"));
    };
    let found = api.broker().shared.routes.find_group(&filter);
    let found = found.filter(|group| group.members() > 0);
    let none = || ApiError::not_found(format!("there is no shared group '{text}'"));
    let group = found.ok_or_else(none)?;
    let mut member_list = Vec::new();
    for shard in 0..api.view().stats.len() {
        let left = MEMBERS_MAX.saturating_sub(member_list.len());
        if left == 0 {
            break;
        }
        let group = Arc::clone(&group);
        let rows = api.view().ask(shard, |reply| Ask::Members(group, left, reply)).await?;
        member_list.extend(rows);
    }
    let row = GroupRow::new(&group);
    let cut = member_list.len() < row.members && member_list.len() >= MEMBERS_MAX;
    Ok(Json(GroupDetail { group: row, member_list, cut }))
}
