//! Bodies that an operation does not read, because it needs none or refuses the request. Left where
//! they are, they would be taken for the next request, so that the connection could not go on.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header;
use http_body::{Frame, SizeHint};

/// What is read of such a body at most; the connection of a longer one ends.
const UNREAD_BYTES_MAX: u64 = 64 << 10;
/// How long that may take.
const UNREAD_TIME: Duration = Duration::from_secs(1);

/// The body of a request that an operation has got.
pub(crate) struct Unread {
    body: Arc<Mutex<Body>>,
    /// The peer sends the body once it is asked for it.
    waits: bool,
}

/// The body of a request, which others have, too.
struct SharedBody(Arc<Mutex<Body>>);

impl Unread {
    /// Keeps the way to the body of a request that has one.
    pub(crate) fn of(request: Request) -> (Request, Option<Self>) {
        if request.body().is_end_stream() {
            return (request, None);
        }
        let waits = request.headers().contains_key(header::EXPECT);
        let (head, body) = request.into_parts();
        let body = Arc::new(Mutex::new(body));
        let shared = Body::new(SharedBody(Arc::clone(&body)));
        (Request::from_parts(head, shared), Some(Self { body, waits }))
    }

    /// Reads what is left, once the operation is done. Is the next thing on the connection a
    /// request?
    pub(crate) async fn skip(self) -> bool {
        let (is_read, least_bytes) = {
            let body = lock(&self.body);
            (body.is_end_stream(), body.size_hint().lower())
        };
        if is_read {
            return true;
        }
        if self.waits || least_bytes > UNREAD_BYTES_MAX {
            return false;
        }
        tokio::time::timeout(UNREAD_TIME, self.read()).await.unwrap_or(false)
    }

    async fn read(&self) -> bool {
        let mut left_bytes = UNREAD_BYTES_MAX;
        loop {
            let frame = std::future::poll_fn(|context| poll(&self.body, context)).await;
            let Some(frame) = frame else { return true };
            let Ok(frame) = frame else { return false };
            let read_bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            let Some(left) = left_bytes.checked_sub(read_bytes) else { return false };
            left_bytes = left;
        }
    }
}

fn lock(body: &Mutex<Body>) -> std::sync::MutexGuard<'_, Body> {
    body.lock().unwrap_or_else(PoisonError::into_inner)
}

type NextFrame = Option<Result<Frame<Bytes>, axum::Error>>;

fn poll(body: &Mutex<Body>, context: &mut Context<'_>) -> Poll<NextFrame> {
    Pin::new(&mut *lock(body)).poll_frame(context)
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NextFrame> {
        poll(&self.0, context)
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.0).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0).size_hint()
    }
}
