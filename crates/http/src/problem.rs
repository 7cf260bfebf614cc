//! Answers of an API that say what is wrong with a request.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The field of the request, if it is one.
    pub field: Option<String>,
    /// A sentence.
    pub message: String,
}

impl Problem {
    /// A problem of a field.
    pub fn new(field: &str, message: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), message: message.into() }
    }
}

/// Why a request is not answered as it wants.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    status: StatusCode,
    error: Problem,
    /// All that is wrong, of which `error` is the first.
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a Problem,
    #[serde(skip_serializing_if = "<[Problem]>::is_empty")]
    problems: &'a [Problem],
}

impl ApiError {
    /// An error of no field.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let error = Problem { field: None, message: message.into() };
        Self { status, error, problems: Vec::new() }
    }

    /// A field cannot be used.
    pub fn about(field: &str, message: impl Into<String>) -> Self {
        let error = Problem::new(field, message);
        Self { status: StatusCode::BAD_REQUEST, error, problems: Vec::new() }
    }

    /// Of a request with several things wrong, at least one.
    pub fn of(problems: Vec<Problem>) -> Self {
        let first = problems.first().cloned();
        let error = first.unwrap_or_else(|| Problem {
            field: None,
            message: "the request makes no sense".to_owned(),
        });
        Self { status: StatusCode::BAD_REQUEST, error, problems }
    }

    /// Of another server that has said what is wrong, and perhaps all of it.
    pub const fn with(status: StatusCode, error: Problem, problems: Vec<Problem>) -> Self {
        Self { status, error, problems }
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// It cannot be done as things are.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// It cannot be done as things are, for several reasons.
    pub fn conflicts(problems: Vec<Problem>) -> Self {
        Self { status: StatusCode::CONFLICT, ..Self::of(problems) }
    }

    /// The status of the answer.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// What is wrong, or the first of it.
    pub const fn error(&self) -> &Problem {
        &self.error
    }

    /// All that is wrong, where that is told.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The fault is the server's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody { error: &self.error, problems: &self.problems };
        let mut response = (self.status, Json(body)).into_response();
        // A server may say more about it than this crate knows.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<(&'static str, String)> for ApiError {
    fn from((field, message): (&'static str, String)) -> Self {
        Self::about(field, message)
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self::of(vec![problem])
    }
}

impl From<std::io::Error> for ApiError {
    fn from(error: std::io::Error) -> Self {
        Self::internal(error.to_string())
    }
}

/// The body of a request, if it is not too large.
///
/// # Errors
/// It is too large, or its connection broke.
pub fn body(bytes: Result<Bytes, BytesRejection>) -> Result<Bytes, ApiError> {
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
///
/// # Errors
/// It is not JSON, or not what is wanted; the field is named where it is known.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = error.to_string();
        // A key that is not known stands in the message between such quotes.
        let unknown =
            message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        match unknown {
            Some(field) => ApiError::about(field, format!("there is no field '{field}'")),
            None => ApiError::of(vec![Problem { field: None, message }]),
        }
    })
}
