//! Drains: begun, followed and ended by operators.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::{Extension, Json};
use serde::Deserialize;
use tacho_http::{ApiError, body, json};

use super::Api;
use super::gate::Caller;
use crate::access::AuditEvent;
use crate::control::drain::{DrainPlan, DrainStatus};

/// Seconds of any time of a drain.
const SECONDS_MAX: u64 = 86_400;
/// Clients per second.
const RATE_MAX: u32 = 100_000;
/// Bytes of a server reference.
const REFERENCE_BYTES_MAX: usize = 1_024;

/// How an operator wants the broker drained.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DrainRequest {
    wait_s: u64,
    rate_per_s: u32,
    deadline_s: u64,
    server_reference: Option<String>,
    keep: bool,
}

impl Default for DrainRequest {
    fn default() -> Self {
        let (wait_s, rate_per_s, deadline_s) = (10, 500, 300);
        Self { wait_s, rate_per_s, deadline_s, server_reference: None, keep: false }
    }
}

impl DrainRequest {
    fn plan(self) -> Result<DrainPlan, ApiError> {
        let Self { wait_s, rate_per_s, deadline_s, server_reference, keep } = self;
        if !(1..=RATE_MAX).contains(&rate_per_s) {
            let message = format!("write a number from 1 to {RATE_MAX}");
            return Err(ApiError::about("rate_per_s", message));
        }
        if !(1..=SECONDS_MAX).contains(&deadline_s) {
            let message = format!("write a number of seconds from 1 to {SECONDS_MAX}");
            return Err(ApiError::about("deadline_s", message));
        }
        if wait_s >= deadline_s {
            let message = format!("the wait must be shorter than `deadline_s`, {deadline_s}");
            return Err(ApiError::about("wait_s", message));
        }
        if let Some(reference) = &server_reference
            && !is_reference(reference)
        {
            let message = "write names of servers with spaces between them, such as \
                           'b.example:8883', at most 1024 bytes";
            return Err(ApiError::about("server_reference", message));
        }
        Ok(DrainPlan {
            wait: Duration::from_secs(wait_s),
            rate_per_s,
            deadline: Duration::from_secs(deadline_s),
            server_reference: server_reference.map(Arc::from),
            keep,
        })
    }
}

/// Names of servers with spaces between them (MQTT 5.0, 4.11).
fn is_reference(text: &str) -> bool {
    !text.trim().is_empty()
        && text.len() <= REFERENCE_BYTES_MAX
        && !text.chars().any(char::is_control)
}

pub(super) async fn status(State(api): State<Api>) -> Json<DrainStatus> {
    Json(api.view().drain_status())
}

pub(super) async fn begin(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Json<DrainStatus>, ApiError> {
    let request: DrainRequest = json(&body(bytes)?)?;
    let plan = request.plan()?;
    let why = format!(
        "wait {} s, {} per second, deadline {} s, server reference {}, {}",
        plan.wait.as_secs(),
        plan.rate_per_s,
        plan.deadline.as_secs(),
        plan.server_reference.as_deref().unwrap_or("none"),
        if plan.keep { "stays" } else { "ends" }
    );
    let events = Arc::clone(&api.broker().shared.events);
    if !api.0.view.begin_drain(plan, events).await? {
        return Err(ApiError::conflict("the broker is being drained already"));
    }
    api.note(&caller, "drain", AuditEvent { why: Some(why), ..AuditEvent::default() });
    Ok(Json(api.view().drain_status()))
}

pub(super) async fn end(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<DrainStatus>, ApiError> {
    if !api.view().end_drain(&api.broker().shared.events).await? {
        return Err(ApiError::conflict("the broker is not being drained"));
    }
    api.note(&caller, "undrain", AuditEvent::default());
    Ok(Json(api.view().drain_status()))
}
