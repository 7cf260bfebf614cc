//! Bridges: how they stand, and what operators want of them.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tacho_http::{ApiError, body, json};

use super::Api;
use super::gate::Caller;
use crate::access::{AuditEvent, Name};
use crate::bridge::BridgeMode;
use crate::control::bridges::BridgeList;
use crate::query::Query as Ask;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BridgeChange {
    mode: BridgeMode,
}

/// What is wanted of a bridge from now on.
#[derive(Serialize)]
pub(super) struct BridgeChanged {
    name: String,
    mode: BridgeMode,
    /// What was wanted before.
    before: BridgeMode,
}

pub(super) async fn list(State(api): State<Api>) -> Json<BridgeList> {
    Json(BridgeList::new(&api.view().bridges))
}

pub(super) async fn change(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Json<BridgeChanged>, ApiError> {
    let BridgeChange { mode } = json(&body(bytes)?)?;
    let view = api.view();
    let Some((place, bridge)) = view.bridges.find(&name) else {
        return Err(ApiError::not_found(format!("there is no bridge '{name}'")));
    };
    let before = bridge.mode();
    bridge.set_mode(mode);
    for shard in 0..view.stats.len() {
        view.ask(shard, |reply| Ask::BridgeMode(place, reply)).await?;
    }
    let action = match mode {
        BridgeMode::Running => "run_bridge",
        BridgeMode::Paused => "pause_bridge",
        BridgeMode::Draining => "drain_bridge",
        BridgeMode::Stopped => "stop_bridge",
    };
    let of = Some(Name::new(&name));
    api.note(&caller, action, AuditEvent { bridge: of, ..AuditEvent::default() });
    Ok(Json(BridgeChanged { name, mode, before }))
}
