//! Answers that go on: server-sent events (HTML, 9.2).

use std::convert::Infallible;
use std::future::Future;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;

/// What is told piece by piece. Once it is dropped no piece is wanted any more.
pub(super) trait Pieces: Send + 'static {
    /// The next piece of the answer; `None` ends it.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;
}

/// An answer of all pieces, with `first` before them.
pub(super) fn answer(pieces: impl Pieces, first: Option<String>) -> Response {
    let bodies = stream::unfold((pieces, first), async |(mut pieces, first)| {
        let text = match first {
            Some(first) => first,
            None => pieces.next().await?,
        };
        Some((Ok::<Bytes, Infallible>(Bytes::from(text)), (pieces, None)))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(bodies)).into_response()
}
