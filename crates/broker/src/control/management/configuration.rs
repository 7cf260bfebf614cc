//! The configuration in force, and what is read again while the broker runs.

use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use tacho_http::ApiError;

use super::Api;
use super::gate::Caller;
use crate::access::AuditEvent;
use crate::config::EffectiveValue;

/// The effective configuration.
#[derive(Serialize)]
pub(super) struct Configuration {
    values: Vec<EffectiveValue>,
}

/// What was read again.
#[derive(Serialize)]
pub(super) struct ReloadAnswer {
    certificates: String,
    access: String,
    /// What changes at the next start.
    others: &'static str,
}

pub(super) async fn effective(State(api): State<Api>) -> Json<Configuration> {
    Json(Configuration { values: api.broker().config.effective() })
}

/// Does what SIGHUP does.
pub(super) async fn reload(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ReloadAnswer>, ApiError> {
    let reloading = api.clone();
    // It reads files.
    let done = tokio::task::spawn_blocking(move || {
        let certificates = reloading.broker().certificates.reload().to_string();
        let access = reloading.broker().access.reload().to_string();
        tracing::info!("reload by the management API: {certificates}; {access}");
        (certificates, access)
    });
    let (certificates, access) =
        done.await.map_err(|error| ApiError::internal(error.to_string()))?;
    let why = Some(format!("{certificates}; {access}"));
    api.note(&caller, "reload", AuditEvent { why, ..AuditEvent::default() });
    let others = "other settings change at the next start";
    Ok(Json(ReloadAnswer { certificates, access, others }))
}
