//! Bridges: how they stand, and what operators want of them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tacho_http::{ApiError, body, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Api;
use super::answers::query;
use super::bridge_store::parse;
use super::gate::Caller;
use crate::access::{AuditEvent, Name};
use crate::bridge::{Bridge, BridgeMode, Bridges};
use crate::bridge_trial::BridgeTrial;
use crate::config::BridgeConfig;
use crate::control::bridges::BridgeList;
use crate::query::Query as Ask;

/// Connections of all bridges since the start: links are numbered, and numbers never used again.
const CONNECTIONS_EVER_MAX: usize = 60_000;
/// How long an answer may take: longer than a trial of all addresses.
const TRIAL_TIME: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BridgeChange {
    mode: BridgeMode,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ReplaceQuery {
    /// One of the same name is replaced.
    replace: bool,
    /// What waits for that one is dropped.
    discard: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RemoveQuery {
    discard: bool,
}

/// What is wanted of a bridge from now on.
#[derive(Serialize)]
pub(super) struct BridgeChanged {
    name: String,
    mode: BridgeMode,
    /// What was wanted before.
    before: BridgeMode,
}

/// A bridge was made.
#[derive(Serialize)]
pub(super) struct BridgeMade {
    name: String,
    /// It outlives the broker.
    lasting: bool,
    /// Messages that may come back.
    warnings: Vec<String>,
}

impl Api {
    fn note_bridge(&self, caller: &Caller, action: &'static str, name: &str) {
        let bridge = Some(Name::new(name));
        self.note(caller, action, AuditEvent { bridge, ..AuditEvent::default() });
    }

    /// Tests a bridge in a thread of its own: it blocks, and ends by itself.
    async fn try_bridge(
        &self,
        caller: &Caller,
        config: BridgeConfig,
    ) -> Result<Json<BridgeTrial>, ApiError> {
        let busy = |_| ApiError::conflict("another bridge is being tested: try again later");
        let place = Arc::clone(&self.0.trying).try_acquire_owned().map_err(busy)?;
        self.note_bridge(caller, "test_bridge", &config.name);
        let (reply, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("bridge-test".to_owned());
        let started = thread.spawn(move || {
            let trial = BridgeTrial::run(&config);
            drop(place);
            // The caller may have gone.
            let _ = reply.send(trial);
        });
        started.map_err(|error| ApiError::internal(error.to_string()))?;
        match timeout(TRIAL_TIME, answer).await {
            Ok(Ok(trial)) => Ok(Json(trial)),
            Ok(Err(_)) => Err(ApiError::internal("the test has ended without a result")),
            Err(_) => {
                let message = "the test takes too long: is the name server of the host slow?";
                Err(ApiError::conflict(message))
            }
        }
    }

    /// Has all shards know these bridges.
    async fn set_bridges(&self, bridges: Arc<Bridges>) -> Result<(), ApiError> {
        self.view().bridges.set(Arc::clone(&bridges));
        for shard in 0..self.view().stats.len() {
            let bridges = Arc::clone(&bridges);
            self.view().ask(shard, |reply| Ask::SetBridges(bridges, reply)).await?;
        }
        Ok(())
    }
}

/// Tests a bridge that there is.
pub(super) async fn test(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<BridgeTrial>, ApiError> {
    let bridges = api.view().bridges.now();
    let (_, bridge) = bridges.find(&name).ok_or_else(|| no_bridge(&name))?;
    api.try_bridge(&caller, bridge.config().clone()).await
}

/// Tests one that there may be later.
pub(super) async fn test_new(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Json<BridgeTrial>, ApiError> {
    let keys: Map<String, Value> = json(&body(bytes)?)?;
    let config = parse(&keys).map_err(|why| ApiError::about("bridge", why))?;
    api.try_bridge(&caller, config).await
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
    let _one_at_a_time = api.0.bridging.lock().await;
    let (view, bridges) = (api.view(), api.view().bridges.now());
    let (place, bridge) = bridges.find(&name).ok_or_else(|| no_bridge(&name))?;
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
    api.note_bridge(&caller, action, &name);
    Ok(Json(BridgeChanged { name, mode, before }))
}

fn no_bridge(name: &str) -> ApiError {
    ApiError::not_found(format!("there is no bridge '{name}'"))
}

/// Whether an operator may remove a bridge.
fn may_remove(bridge: &Bridge, discard: bool) -> Result<(), ApiError> {
    let name = &bridge.config().name;
    if !bridge.config().is_stored {
        let message = format!("bridge '{name}' is in the configuration: change it there");
        return Err(ApiError::conflict(message));
    }
    let figures = bridge.status().figures;
    let waiting = figures.buffered_messages + figures.inflight;
    match discard || waiting == 0 {
        true => Ok(()),
        false => Err(ApiError::conflict(format!(
            "{waiting} messages wait for bridge '{name}': drain it first, or discard them"
        ))),
    }
}

pub(super) async fn add(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    asked: Result<Query<ReplaceQuery>, QueryRejection>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<BridgeMade>), ApiError> {
    let ReplaceQuery { replace, discard } = query(asked)?;
    let keys: Map<String, Value> = json(&body(bytes)?)?;
    let config = parse(&keys).map_err(|why| ApiError::about("bridge", why))?;
    let name = config.name.clone();
    let _one_at_a_time = api.0.bridging.lock().await;
    let bridges = api.view().bridges.now();
    let former = bridges.find(&name).map(|(_, bridge)| bridge);
    if let Some(former) = former {
        if !replace {
            let message = format!("there is a bridge '{name}' already");
            return Err(ApiError::conflict(message));
        }
        may_remove(former, discard)?;
    }
    check_beside(&config, &bridges)?;
    let all =
        bridges.with(&config).map_err(|error| ApiError::about("bridge", error.to_string()))?;
    api.broker().bridges.put(&name, keys)?;
    if let Some(former) = former {
        former.remove();
    }
    api.set_bridges(Arc::new(all)).await?;
    api.note_bridge(&caller, "add_bridge", &name);
    let (lasting, warnings) = (api.broker().bridges.is_lasting(), config.warnings());
    Ok((StatusCode::CREATED, Json(BridgeMade { name, lasting, warnings })))
}

/// Whether a bridge fits to the others that there are.
fn check_beside(config: &BridgeConfig, bridges: &Bridges) -> Result<(), ApiError> {
    let mut others = bridges.present().map(|other| other.config());
    let conflict = others.find_map(|other| {
        (other.name != config.name).then(|| config.conflict_with(other)).flatten()
    });
    if let Some(why) = conflict {
        return Err(ApiError::conflict(why));
    }
    let ever = bridges.connections_ever() + usize::from(config.connections);
    match ever <= CONNECTIONS_EVER_MAX {
        true => Ok(()),
        false => Err(ApiError::conflict(format!(
            "bridges have had {CONNECTIONS_EVER_MAX} connections since the broker started: restart \
             it first"
        ))),
    }
}

pub(super) async fn remove(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    asked: Result<Query<RemoveQuery>, QueryRejection>,
) -> Result<StatusCode, ApiError> {
    let RemoveQuery { discard } = query(asked)?;
    let _one_at_a_time = api.0.bridging.lock().await;
    let bridges = api.view().bridges.now();
    let (_, bridge) = bridges.find(&name).ok_or_else(|| no_bridge(&name))?;
    may_remove(bridge, discard)?;
    api.broker().bridges.remove(&name)?;
    bridge.remove();
    api.set_bridges(Arc::clone(&bridges)).await?;
    api.note_bridge(&caller, "remove_bridge", &name);
    Ok(StatusCode::NO_CONTENT)
}
