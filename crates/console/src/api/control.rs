//! Requests that change runs that are there.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::again::{draft as draft_of, submit_again};
use super::answers::{ApiError, body, json as parsed};
use super::state::{Api, blocking};
use crate::runs::{NotesChange, RunNotes, RunRow};

pub(crate) async fn change(
    State(api): State<Api>,
    Path(id): Path<String>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let change: NotesChange = parsed(&body(bytes)?)?;
    let row = blocking(move || {
        let directory = api.directory(&id)?;
        let is_baseline = change.makes_baseline();
        RunNotes::read(&directory).changed(change)?.write(&directory)?;
        if is_baseline {
            unset_others(&api, &id)?;
        }
        api.changed_row(&id)
    });
    Ok(Json(row.await?).into_response())
}

/// A scenario has one baseline.
fn unset_others(api: &Api, id: &str) -> Result<(), ApiError> {
    let scenario = api.row(id)?.scenario;
    let is_other = |row: &&RunRow| row.baseline && row.scenario == scenario && row.id != id;
    let others: Vec<String> =
        api.with_rows(|rows| Ok(rows.filter(is_other).map(|row| row.id.clone()).collect()))?;
    for other in others {
        let directory = api.directory(&other)?;
        let notes = RunNotes { baseline: false, ..RunNotes::read(&directory) };
        notes.write(&directory)?;
    }
    Ok(())
}

pub(crate) async fn stop(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    blocking(move || {
        api.directory(&id)?;
        Ok(api.queue()?.stop(&id)?)
    })
    .await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"state": "running"}))).into_response())
}

pub(crate) async fn cancel(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let row = blocking(move || {
        api.directory(&id)?;
        api.queue()?.cancel(&id)?;
        api.changed_row(&id)
    });
    Ok(Json(row.await?).into_response())
}

pub(crate) async fn repeat(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let taken = blocking(move || submit_again(&api, &id)).await?;
    Ok((StatusCode::CREATED, Json(taken)).into_response())
}

pub(crate) async fn draft(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let draft = blocking(move || draft_of(&api, &id)).await?;
    Ok(Json(draft).into_response())
}
