//! Keys of the API.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tacho_http::{ApiError, Role, body, json};
use tacho_net::clock;

use super::Api;
use super::gate::Caller;
use super::store::ApiKey;
use crate::access::{AuditEvent, Name};

const SECOND_NS: u64 = 1_000_000_000;

/// A key, without what would open anything.
#[derive(Serialize)]
struct KeyRow {
    name: String,
    role: Role,
    /// When it was made, in seconds since 1970.
    made_s: i64,
}

/// All keys.
#[derive(Serialize)]
pub(super) struct KeyList {
    keys: Vec<KeyRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRequest {
    name: String,
    role: Role,
}

/// A key that was made.
#[derive(Serialize)]
pub(super) struct MadeKey {
    name: String,
    role: Role,
    /// Told this once: only its hash is stored.
    key: String,
}

/// The caller of a request.
#[derive(Serialize)]
pub(super) struct CallerAnswer {
    name: String,
    role: Role,
}

pub(super) async fn list(State(api): State<Api>) -> Json<KeyList> {
    let row = |key: ApiKey| {
        let ApiKey { name, role, made_s, .. } = key;
        KeyRow { name: name.to_string(), role, made_s }
    };
    Json(KeyList { keys: api.broker().store.keys().into_iter().map(row).collect() })
}

pub(super) async fn add(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<MadeKey>), ApiError> {
    let KeyRequest { name, role } = json(&body(bytes)?)?;
    let now_s = (clock::unix_ns() / SECOND_NS) as i64;
    let key = api.broker().store.add_key(&name, role, now_s)?;
    let user = Some(Name::new(&name));
    let why = Some(role.to_string());
    api.note(&caller, "add_key", AuditEvent { user, why, ..AuditEvent::default() });
    Ok((StatusCode::CREATED, Json(MadeKey { name, role, key })))
}

pub(super) async fn remove(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    if !api.broker().store.remove_key(&name)? {
        return Err(ApiError::not_found(format!("there is no key '{name}'")));
    }
    api.gate().forget(&name);
    let user = Some(Name::new(&name));
    api.note(&caller, "remove_key", AuditEvent { user, ..AuditEvent::default() });
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn caller(Extension(caller): Extension<Caller>) -> Json<CallerAnswer> {
    Json(CallerAnswer { name: caller.name().to_owned(), role: caller.role() })
}
