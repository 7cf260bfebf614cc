//! From the head of a request to the end of its answer: a connection keeps its place.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request};
use axum::http::header::{self, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};

use crate::places::Place;
use crate::unread::Unread;

/// Notes that the connection has asked, and that its answer is complete. The connection ends with
/// it if the operation has left more of the request than is worth reading.
pub(crate) async fn note(
    ConnectInfo(place): ConnectInfo<Place>,
    mut request: Request,
    next: Next,
) -> Response {
    place.begin_answer();
    request.extensions_mut().insert(place.peer());
    let answer = Answer { place };
    let (request, unread) = Unread::of(request);
    let mut response = next.run(request).await;
    if let Some(unread) = unread
        && !unread.skip().await
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response.map(|body| Body::new(AnswerBody { body, _answer: answer }))
}

/// An answer in the making; dropped at its end, or when its connection ends.
struct Answer {
    place: Place,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.place.end_answer(Instant::now());
    }
}

/// The body of an answer: dropped once its last byte was taken.
struct AnswerBody {
    body: Body,
    _answer: Answer,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
