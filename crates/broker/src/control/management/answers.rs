//! Requests that cannot be answered, and parts that many answers have.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use tacho_http::ApiError;
use tacho_topic::TopicFilter;

use super::store::StoreError;
use crate::control::ask::NoAnswer;
use crate::query::NotPublished;

/// Rows per answer by default.
const ROWS: usize = 100;
/// Rows per answer at most.
const ROWS_MAX: usize = 1_000;

impl From<NoAnswer> for ApiError {
    fn from(why: NoAnswer) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string())
    }
}

impl From<NotPublished> for ApiError {
    fn from(why: NotPublished) -> Self {
        match why {
            NotPublished::OwnTopic => Self::about("topic", why.to_string()),
            NotPublished::NoRoom => Self::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Name => Self::about("name", message),
            StoreError::Ban(_) => Self::new(StatusCode::BAD_REQUEST, message),
            StoreError::NoFolder | StoreError::NameTaken(_) | StoreError::Full(_) => {
                Self::conflict(message)
            }
            StoreError::Io(_) | StoreError::NoRandomness => Self::internal(message),
        }
    }
}

/// The parameters behind the `?`.
pub(super) fn query<T>(parsed: Result<Query<T>, QueryRejection>) -> Result<T, ApiError> {
    let Query(query) = parsed.map_err(|error| ApiError::about("query", error.body_text()))?;
    Ok(query)
}

/// How many rows are wanted.
pub(super) fn rows(limit: Option<usize>) -> Result<usize, ApiError> {
    match limit.unwrap_or(ROWS) {
        rows @ 1..=ROWS_MAX => Ok(rows),
        _ => Err(ApiError::about("limit", format!("write a number from 1 to {ROWS_MAX}"))),
    }
}

/// A topic filter of a request.
pub(super) fn topic_filter(text: &str) -> Result<TopicFilter, ApiError> {
    TopicFilter::parse(text).map_err(|error| ApiError::about("filter", error.to_string()))
}

/// A topic of a request.
pub(super) fn topic(text: &str) -> Result<(), ApiError> {
    match tacho_codec::is_valid_topic_name(text) {
        true => Ok(()),
        false => Err(ApiError::about("topic", "a topic is text without + and #")),
    }
}

/// What operators do not delete: figures of the broker, which it publishes when they change.
pub(super) fn not_own(field: &str, topic: &str) -> Result<(), ApiError> {
    match topic.split('/').next() {
        Some("$SYS") => {
            let message = "topics that begin with $SYS are the broker's own";
            Err(ApiError::about(field, message))
        }
        _ => Ok(()),
    }
}

/// There is no such client.
pub(super) fn no_client(client_id: &str) -> ApiError {
    ApiError::not_found(format!("there is no session of the client '{client_id}'"))
}

/// A cursor that is none.
pub(super) fn no_cursor() -> ApiError {
    ApiError::about("cursor", "this must be the `next` of the page before")
}
