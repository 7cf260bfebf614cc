//! Listeners: listed, stopped and started.

use std::net::SocketAddr;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Serialize;
use tacho_http::ApiError;

use super::Api;
use super::gate::Caller;
use crate::access::AuditEvent;
use crate::control::listening::{CannotListen, ListenerPhase};

/// A listener.
#[derive(Serialize)]
pub(super) struct ListenerRow {
    address: String,
    transport: &'static str,
    state: ListenerPhase,
    /// Those that are open, also of clients that are not connected yet.
    connections: usize,
    /// How many it may have; absent: as many as the broker.
    connections_max: Option<u32>,
    /// Clients log in with passwords of this file.
    password_file: Option<String>,
    allow_anonymous: bool,
    /// Of its WebSockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The web pages that may open them; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    origins: Option<Vec<String>>,
}

/// All listeners.
#[derive(Serialize)]
pub(super) struct ListenerList {
    listeners: Vec<ListenerRow>,
}

impl From<CannotListen> for ApiError {
    fn from(why: CannotListen) -> Self {
        match why {
            CannotListen::NoAnswer(why) => why.into(),
            CannotListen::Unknown(_) => Self::not_found(why.to_string()),
            CannotListen::System { .. } | CannotListen::Shard(_) | CannotListen::Drained => {
                Self::conflict(why.to_string())
            }
        }
    }
}

fn rows(api: &Api) -> Vec<ListenerRow> {
    let parts = &api.broker().shared.listeners;
    let row = |(number, address, state): (usize, SocketAddr, ListenerPhase)| {
        let part = parts.get(number)?;
        let listener = &part.listener;
        Some(ListenerRow {
            address: address.to_string(),
            transport: listener.transport.name(),
            state,
            connections: part.gate.connections(),
            connections_max: listener.connections.max,
            password_file: listener.password_file.as_ref().map(|path| path.display().to_string()),
            allow_anonymous: listener.allow_anonymous,
            path: listener.path.clone(),
            origins: listener.origins.as_ref().map(|origins| origins.allowed.clone()),
        })
    };
    api.view().listener_phases().into_iter().filter_map(row).collect()
}

pub(super) async fn list(State(api): State<Api>) -> Json<ListenerList> {
    Json(ListenerList { listeners: rows(&api) })
}

pub(super) async fn stop(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(address): Path<String>,
) -> Result<Json<ListenerRow>, ApiError> {
    let address = parsed(&address)?;
    api.view().stop_listener(address).await?;
    changed(&api, &caller, "stop_listener", address)
}

pub(super) async fn start(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(address): Path<String>,
) -> Result<Json<ListenerRow>, ApiError> {
    let address = parsed(&address)?;
    api.view().start_listener(address).await?;
    changed(&api, &caller, "start_listener", address)
}

fn parsed(address: &str) -> Result<SocketAddr, ApiError> {
    let message = "write the address of a listener as the list has it, such as 127.0.0.1:1883";
    address.parse().map_err(|_| ApiError::about("address", message))
}

/// Tells what was done; the answer is the listener as it is now.
fn changed(
    api: &Api,
    caller: &Caller,
    action: &'static str,
    address: SocketAddr,
) -> Result<Json<ListenerRow>, ApiError> {
    let name = address.to_string();
    tracing::info!("{action} {name} by {}", caller.name());
    let why = Some(name.clone());
    api.note(caller, action, AuditEvent { why, ..AuditEvent::default() });
    let row = rows(api).into_iter().find(|row| row.address == name);
    // Invariant: it was found a moment ago, and none is ever taken out of the list.
    row.map(Json).ok_or_else(|| ApiError::not_found("there is no such listener"))
}
