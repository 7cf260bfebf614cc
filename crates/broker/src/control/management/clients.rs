//! Clients: found, looked at, disconnected.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tacho_access::AddressRange;
use tacho_http::ApiError;

use super::Api;
use super::answers::{no_client, no_cursor, query, rows};
use super::cursor;
use super::gate::Caller;
use crate::access::{AuditEvent, Name};
use crate::control::pages::{ClientPage, PageStart};
use crate::keys::{ClientKey, TenantId};
use crate::query::{
    ClientDetail, ClientFilter, KickedSession, Query as Ask, SUBSCRIPTIONS_MAX, SubscriptionRow,
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClientSearch {
    client_id: Option<String>,
    prefix: Option<String>,
    user: Option<String>,
    address: Option<String>,
    state: Option<ClientState>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClientState {
    Connected,
    /// Its session waits for it.
    Away,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CursorQuery {
    cursor: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct KickQuery {
    session: KickedSessionName,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KickedSessionName {
    #[default]
    Keep,
    End,
}

/// Some subscriptions of a client.
#[derive(Serialize)]
pub(super) struct SubscriptionPage {
    subscriptions: Vec<SubscriptionRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// What became of a client.
#[derive(Serialize)]
pub(super) struct KickAnswer {
    client_id: String,
    was_connected: bool,
    session_ended: bool,
}

impl Api {
    /// The shard that has the session of a client.
    pub(super) fn owner_of(&self, client_id: &str) -> (usize, Arc<str>) {
        let client_id: Arc<str> = client_id.into();
        let key = ClientKey { tenant: TenantId::DEFAULT, client_id: Arc::clone(&client_id) };
        (key.owner(self.view().stats.len()), client_id)
    }

    async fn client(&self, client_id: &str) -> Result<Option<Box<ClientDetail>>, ApiError> {
        let (shard, id) = self.owner_of(client_id);
        Ok(self.view().ask(shard, |reply| Ask::Client(id, reply)).await?)
    }
}

pub(super) async fn list(
    State(api): State<Api>,
    parsed: Result<Query<ClientSearch>, QueryRejection>,
) -> Result<Json<ClientPage>, ApiError> {
    let ClientSearch { client_id, prefix, user, address, state, limit, cursor } = query(parsed)?;
    let limit = rows(limit)?;
    let addresses = address.as_deref().map(AddressRange::parse).transpose();
    let addresses = addresses.map_err(|why| ApiError::about("address", why))?;
    let is_connected = state.map(|state| state == ClientState::Connected);
    let filter = ClientFilter { prefix, user, addresses, is_connected };
    let start = match cursor.as_deref() {
        None => PageStart::default(),
        Some(cursor) => PageStart::parse(cursor).ok_or_else(no_cursor)?,
    };
    if let Some(client_id) = client_id {
        // Found without a search.
        if filter != ClientFilter::default() {
            let message = "with `client_id` there are no other filters";
            return Err(ApiError::about("client_id", message));
        }
        let found = api.client(&client_id).await?;
        let clients = found.map(|detail| detail.row).into_iter().collect();
        return Ok(Json(ClientPage { clients, next: None }));
    }
    let searches = filter != ClientFilter::default();
    let _one_at_a_time = if searches { Some(api.search().await?) } else { None };
    Ok(Json(api.view().page(start, limit, Some(&Arc::new(filter))).await?))
}

pub(super) async fn client(
    State(api): State<Api>,
    Path(client_id): Path<String>,
) -> Result<Json<ClientDetail>, ApiError> {
    let found = api.client(&client_id).await?;
    found.map(|detail| Json(*detail)).ok_or_else(|| no_client(&client_id))
}

pub(super) async fn subscriptions(
    State(api): State<Api>,
    Path(client_id): Path<String>,
    parsed: Result<Query<CursorQuery>, QueryRejection>,
) -> Result<Json<SubscriptionPage>, ApiError> {
    let [from] = cursor::numbers(query(parsed)?.cursor.as_deref()).ok_or_else(no_cursor)?;
    let (shard, id) = api.owner_of(&client_id);
    let found = api.view().ask(shard, |reply| Ask::SubscriptionsOf(id, from, reply)).await?;
    let (subscriptions, has_more) = found.ok_or_else(|| no_client(&client_id))?;
    let next = has_more.then(|| cursor::of_numbers(&[from + SUBSCRIPTIONS_MAX]));
    Ok(Json(SubscriptionPage { subscriptions, next }))
}

pub(super) async fn kick(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(client_id): Path<String>,
    parsed: Result<Query<KickQuery>, QueryRejection>,
) -> Result<Json<KickAnswer>, ApiError> {
    let (session, action) = match query(parsed)?.session {
        KickedSessionName::Keep => (KickedSession::Stays, "kick"),
        KickedSessionName::End => (KickedSession::Ends, "kick_and_end_session"),
    };
    let (shard, id) = api.owner_of(&client_id);
    let kicked = api.view().ask(shard, |reply| Ask::Kick(id, session, reply)).await?;
    let kicked = kicked.ok_or_else(|| no_client(&client_id))?;
    let of = Some(Name::new(&client_id));
    api.note(&caller, action, AuditEvent { client_id: of, ..AuditEvent::default() });
    let (was_connected, session_ended) = (kicked.was_connected, kicked.session_ended);
    Ok(Json(KickAnswer { client_id, was_connected, session_ended }))
}
