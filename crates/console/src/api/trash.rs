//! Deleting runs, and what becomes of those that were deleted.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::answers::ApiError;
use super::state::{Api, blocking};
use crate::run_state::RunState;
use crate::runs::{list_trash, purge as remove, restore as move_back, to_trash};

pub(crate) async fn delete(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    blocking(move || {
        api.directory(&id)?;
        match api.row(&id)?.state {
            RunState::Running => {
                return Err(ApiError::conflict("the run is running: stop it first"));
            }
            RunState::Queued => api.queue()?.cancel(&id)?,
            _ => {}
        }
        let trash = api.trash();
        to_trash(api.folder(), &id)?;
        drop(trash);
        api.refreshed()
    })
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn restore(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let row = blocking(move || {
        let trash = api.trash();
        move_back(api.folder(), &id)?;
        drop(trash);
        api.changed_row(&id)
    });
    Ok(Json(row.await?).into_response())
}

pub(crate) async fn list(State(api): State<Api>) -> Result<Response, ApiError> {
    let list = blocking(move || {
        let _trash = api.trash();
        Ok(list_trash(api.folder())?)
    });
    Ok(Json(list.await?).into_response())
}

pub(crate) async fn empty(State(api): State<Api>) -> Result<Response, ApiError> {
    purged(api, None).await
}

pub(crate) async fn purge(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    purged(api, Some(id)).await
}

/// Removes one run of the trash, or all.
async fn purged(api: Api, id: Option<String>) -> Result<Response, ApiError> {
    let removed = blocking(move || {
        let _trash = api.trash();
        Ok(remove(api.folder(), id.as_deref())?)
    });
    Ok(Json(removed.await?).into_response())
}
