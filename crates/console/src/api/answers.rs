//! Answers of the API: JSON, and errors that name their field.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ConsoleError;
use crate::queue::QueueError;
use crate::request::RequestProblem;
use crate::runs::TrashError;
use crate::uploads::UploadError;

/// Why a request is not answered as it wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: RequestProblem,
    /// All that is wrong, of which `error` is the first.
    problems: Vec<RequestProblem>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a RequestProblem,
    #[serde(skip_serializing_if = "<[RequestProblem]>::is_empty")]
    problems: &'a [RequestProblem],
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let error = RequestProblem { field: None, message: message.into() };
        Self { status, error, problems: Vec::new() }
    }

    pub(crate) fn about(field: &str, message: impl Into<String>) -> Self {
        let error = RequestProblem::new(field, message);
        Self { status: StatusCode::BAD_REQUEST, error, problems: Vec::new() }
    }

    /// Of a request with several things wrong, at least one.
    pub(crate) fn of(problems: Vec<RequestProblem>) -> Self {
        let first = problems.first().cloned();
        let error = first.unwrap_or_else(|| RequestProblem {
            field: None,
            message: "the request makes no sense".to_owned(),
        });
        Self { status: StatusCode::BAD_REQUEST, error, problems }
    }

    pub(crate) fn no_run(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no run '{id}'"))
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody { error: &self.error, problems: &self.problems };
        (self.status, Json(body)).into_response()
    }
}

impl From<(&'static str, String)> for ApiError {
    fn from((field, message): (&'static str, String)) -> Self {
        Self::about(field, message)
    }
}

impl From<RequestProblem> for ApiError {
    fn from(problem: RequestProblem) -> Self {
        Self::of(vec![problem])
    }
}

impl From<ConsoleError> for ApiError {
    fn from(error: ConsoleError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<std::io::Error> for ApiError {
    fn from(error: std::io::Error) -> Self {
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

/// The body of a request, if it is not too large.
pub(crate) fn body(bytes: Result<Bytes, BytesRejection>) -> Result<Bytes, ApiError> {
    bytes.map_err(|rejection| {
        let status = rejection.status();
        let message = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "the request is too large".to_owned(),
            _ => rejection.body_text(),
        };
        ApiError::new(status, message)
    })
}

/// The JSON of a request.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = error.to_string();
        // A key that is not known stands in the message between such quotes.
        let unknown =
            message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        match unknown {
            Some(field) => ApiError::about(field, format!("there is no field '{field}'")),
            None => ApiError::of(vec![RequestProblem { field: None, message }]),
        }
    })
}
