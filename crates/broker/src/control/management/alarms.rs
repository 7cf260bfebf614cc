//! Alarms, current and past.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::Api;
use crate::control::alarms::AlarmRow;

/// All alarms that are remembered, the newest first.
#[derive(Serialize)]
pub(super) struct AlarmList {
    active: Vec<AlarmRow>,
    past: Vec<AlarmRow>,
}

pub(super) async fn list(State(api): State<Api>) -> Json<AlarmList> {
    let alarms = &api.view().alarms;
    Json(AlarmList { active: alarms.active(), past: alarms.past() })
}
