//! The configuration in force, and what is read again while the broker runs.

use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use tacho_http::ApiError;

use super::Api;
use super::gate::Caller;
use crate::access::AuditEvent;
use crate::config::EffectiveValue;
use crate::reload::ConfigChange;

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
    /// Changes of the configuration that are in force.
    applied: Vec<ConfigChange>,
    /// What changes at the next start.
    waiting: Vec<ConfigChange>,
    /// What could not be done.
    problems: Vec<String>,
}

pub(super) async fn effective(State(api): State<Api>) -> Json<Configuration> {
    Json(Configuration { values: api.broker().reloads.values() })
}

/// Does what SIGHUP does.
pub(super) async fn reload(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ReloadAnswer>, ApiError> {
    let reloads = api.broker().reloads.clone();
    // It reads files.
    let done = tokio::task::spawn_blocking(move || reloads.reload());
    let done = done.await.map_err(|error| ApiError::internal(error.to_string()))?;
    let report = match done {
        Ok(report) => report,
        Err(error) => {
            tracing::error!("reload by the management API: nothing has changed: {error}");
            return Err(ApiError::conflict(format!("nothing has changed: {error}")));
        }
    };
    tracing::info!("reload by the management API: {report}");
    let why = Some(report.to_string());
    api.note(&caller, "reload", AuditEvent { why, ..AuditEvent::default() });
    let (certificates, access) = (report.certificates.to_string(), report.access.to_string());
    let (applied, waiting, problems) = (report.applied, report.waiting, report.problems);
    Ok(Json(ReloadAnswer { certificates, access, applied, waiting, problems }))
}
