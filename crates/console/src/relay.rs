//! The events of a run, from its own live page to the browsers that watch it through the console.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::watchers::WatcherPlace;

/// Pieces that may be on their way to a browser; then the run's page waits for it, and drops.
const QUEUE_MAX: usize = 16;
/// Bytes of a piece.
const PIECE_BYTES: usize = 32 << 10;
/// Bytes of the head of the run's answer.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long the run's page has to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks at a run that has no page yet.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Looks after which an empty comment says that the connection lives.
const LOOKS_PER_COMMENT: u32 = 40;

/// About a run whose page refuses the token.
const OTHER_TOKEN: &str =
    "{\"reason\":\"it was started by a console with another token (.console-token)\"}";

/// What a run has for browsers that watch it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watchable {
    /// It waits: what to say about that, as JSON.
    Waiting(String),
    /// It goes on and has no page yet.
    Starting,
    /// It goes on; its page is there, and wants this token where the console has started it.
    Page(SocketAddr, Option<String>),
    /// It has ended: its events, as they would be sent.
    Ended(String),
    /// It goes on without a page that could be reached.
    Without(String),
}

/// Where the page of a run is, if it is on this machine; another program may have written it.
pub(crate) fn page_address(url: &str) -> Option<SocketAddr> {
    let authority = url.strip_prefix("http://")?.split('/').next()?;
    let mut address: SocketAddr = authority.parse().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    address.ip().is_loopback().then_some(address)
}

/// An event as it is sent.
pub(crate) fn event(kind: &str, json: &str) -> String {
    format!("event: {kind}\ndata: {json}\n\n")
}

/// A stream of the events of a run, which `look` looks at; `place` is held until its end.
pub(crate) fn relay<F>(
    (place, displaced): (WatcherPlace, oneshot::Receiver<()>),
    look: impl Fn() -> F + Send + 'static,
) -> Response
where
    F: Future<Output = Watchable> + Send + 'static,
{
    let (out, input) = mpsc::channel(QUEUE_MAX);
    tokio::spawn(async move {
        let _place = place;
        tokio::select! {
            () = follow(look, &out) => {}
            () = out.closed() => {}
            Ok(()) = displaced => {
                let _ = out.send(Bytes::from(event("displaced", "{}"))).await;
            }
        }
    });
    sse(stream::unfold(input, async |mut input| Some((input.recv().await?, input))))
}

/// An answer of server-sent events.
pub(crate) fn sse(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (head, Body::from_stream(pieces.map(Ok::<_, Infallible>))).into_response()
}

/// Sends what there is to say about the run, until it has ended or no one listens.
async fn follow<F>(look: impl Fn() -> F, out: &mpsc::Sender<Bytes>)
where
    F: Future<Output = Watchable>,
{
    let mut said = Watchable::Starting;
    let mut looks = 0_u32;
    loop {
        let now = look().await;
        let text = match &now {
            Watchable::Page(address, token) => {
                match forward((*address, token.as_deref()), out).await {
                    // It has said everything, its end too.
                    Ok(()) => return,
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        match now == said {
                            true => String::new(),
                            false => event("without", OTHER_TOKEN),
                        }
                    }
                    Err(_) => String::new(),
                }
            }
            Watchable::Ended(events) => {
                let _ = out.send(Bytes::from(events.clone())).await;
                return;
            }
            Watchable::Waiting(json) if now != said => event("waiting", json),
            Watchable::Without(json) if now != said => event("without", json),
            _ => String::new(),
        };
        looks += 1;
        let text = match text.is_empty() && looks.is_multiple_of(LOOKS_PER_COMMENT) {
            true => ":\n\n".to_owned(),
            false => text,
        };
        if !text.is_empty() && out.send(Bytes::from(text)).await.is_err() {
            return;
        }
        said = now;
        sleep(LOOK_EVERY).await;
    }
}

/// Passes on what the page of a run sends, as it is. A browser that does not read is waited for:
/// the page of the run then drops events for it, and says how many.
async fn forward(page: (SocketAddr, Option<&str>), out: &mpsc::Sender<Bytes>) -> io::Result<()> {
    let stream = timeout(PATIENCE, connect(page)).await??;
    let mut rest = timeout(PATIENCE, skip_head(&stream)).await??;
    loop {
        if !rest.is_empty() && out.send(Bytes::from(std::mem::take(&mut rest))).await.is_err() {
            return Ok(());
        }
        rest = read(&stream).await?;
        if rest.is_empty() {
            return Ok(());
        }
    }
}

/// Asks for the events. HTTP/1.0: the answer comes as it is and ends with its connection.
async fn connect((address, token): (SocketAddr, Option<&str>)) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let request = format!("GET /events HTTP/1.0\r\nHost: {address}\r\n{token}\r\n");
    let mut left = request.as_bytes();
    while !left.is_empty() {
        stream.writable().await?;
        match stream.try_write(left) {
            Ok(count) => left = left.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(stream)
}

/// Reads to the end of the answer's head; what came behind it.
async fn skip_head(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    loop {
        let piece = read(stream).await?;
        if piece.is_empty() || head.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend(piece);
        let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = head.split_off(end + 4);
            return match head.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5)) {
                Some(b"200") => Ok(rest),
                Some(b"401") => Err(io::ErrorKind::PermissionDenied.into()),
                _ => Err(io::ErrorKind::InvalidData.into()),
            };
        }
    }
}

/// The next piece; empty at the end.
async fn read(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut piece) {
            Ok(count) => {
                piece.truncate(count);
                return Ok(piece);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_on_this_machine_are_followed() {
        let address = |url| page_address(url).map(|address| address.to_string());
        assert_eq!(address("http://127.0.0.1:9740/").as_deref(), Some("127.0.0.1:9740"));
        assert_eq!(address("http://0.0.0.0:80/").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(address("http://[::1]:80/").as_deref(), Some("[::1]:80"));
        for other in ["http://192.0.2.1:80/", "http://example.org/", "https://127.0.0.1:1/", "x"] {
            assert_eq!(address(other), None, "{other}");
        }
    }
}
