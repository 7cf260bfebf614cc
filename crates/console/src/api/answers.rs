//! Errors of the console as answers of its API.

use axum::http::StatusCode;
pub(crate) use tacho_http::{ApiError, body, json};

use crate::error::ConsoleError;
use crate::queue::QueueError;
use crate::runs::TrashError;
use crate::uploads::UploadError;

/// There is no such run.
pub(crate) fn no_run(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no run '{id}'"))
}

impl From<ConsoleError> for ApiError {
    fn from(error: ConsoleError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> Self {
        let status = match &error {
            QueueError::Full => StatusCode::TOO_MANY_REQUESTS,
            QueueError::NotWaiting | QueueError::NotRunning => StatusCode::CONFLICT,
            QueueError::Io(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<TrashError> for ApiError {
    fn from(error: TrashError) -> Self {
        let status = match &error {
            TrashError::Missing(_) => StatusCode::NOT_FOUND,
            TrashError::Taken(_) => StatusCode::CONFLICT,
            TrashError::Io(_) | TrashError::Stays { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        match &error {
            UploadError::Name(_) => Self::about("name", error.to_string()),
            UploadError::Missing(_) | UploadError::Data(_) => {
                Self::about("upload", error.to_string())
            }
            UploadError::Io(_) => Self::internal(error.to_string()),
        }
    }
}
