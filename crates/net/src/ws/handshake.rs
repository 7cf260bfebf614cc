//! The HTTP exchange that opens a WebSocket.

use std::io;

use tungstenite::handshake::derive_accept_key;
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{self, Request};
use tungstenite::{Error, error::ProtocolError, handshake::client::Response};

use super::settings::{WsClient, WsOrigins, WsServer};

/// The largest size of a request or response.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Ends the head.
const END: &[u8] = b"\r\n\r\n";
const PROTOCOL: &str = "Sec-WebSocket-Protocol";

/// Of an origin in a message.
const SHOWN_BYTES_MAX: usize = 128;

/// A web page may not open WebSockets here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("WebSocket: {0}")]
pub struct OriginError(String);

/// The response to a refused request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    status: &'static str,
    why: String,
    /// The web page is the fault; in the words of an error.
    origin: Option<OriginError>,
}

impl Refusal {
    fn bad(why: impl Into<String>) -> Self {
        Self { status: "400 Bad Request", why: why.into(), origin: None }
    }

    pub(super) fn too_long() -> Self {
        let why = format!("the request has more than {HEAD_BYTES_MAX} bytes");
        Self { status: "431 Request Header Fields Too Large", why, origin: None }
    }

    /// The complete HTTP response.
    pub(super) fn answer(&self) -> Vec<u8> {
        let Self { status, why, .. } = self;
        // A client with another version of the protocol needs the supported one (RFC 6455, 4.4).
        format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n\
             {why}\n",
            why.len() + 1
        )
        .into_bytes()
    }

    pub(super) fn error(self) -> io::Error {
        match self.origin {
            Some(origin) => io::Error::new(io::ErrorKind::InvalidData, origin),
            None => error(self.why),
        }
    }
}

pub(super) fn error(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("WebSocket: {why}"))
}

/// Length of the head at the beginning of `bytes`, of which the last `new` are new; `None` while it
/// is incomplete.
pub(super) fn head_len(bytes: &[u8], new: usize) -> Option<usize> {
    let from = bytes.len().saturating_sub(new + END.len() - 1);
    let at = bytes[from..].windows(END.len()).position(|window| window == END)?;
    Some(from + at + END.len())
}

/// Whether this is the beginning of a head that starts with `word`.
pub(super) fn may_begin(bytes: &[u8], word: &[u8]) -> bool {
    bytes.iter().zip(word).all(|(byte, expected)| byte == expected)
}

/// The request of a client.
pub(super) fn request(client: &WsClient, key: &str) -> Vec<u8> {
    let WsClient { host, path, protocol } = client;
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{PROTOCOL}: {protocol}\r\n\r\n"
    )
    .into_bytes()
}

/// The response to a client's request.
pub(super) fn accept(server: &WsServer, head: &[u8]) -> Result<Vec<u8>, Refusal> {
    let bad = |error: &Error| Refusal::bad(format!("not a WebSocket request: {error}"));
    let request = match Request::try_parse(head) {
        Ok(Some((_, request))) => request,
        Ok(None) => return Err(Refusal::bad("the request is not complete")),
        Err(error) => return Err(bad(&error)),
    };
    if request.uri().path() != server.path {
        let why = format!("there is no {} here, only {}", request.uri().path(), server.path);
        return Err(Refusal { status: "404 Not Found", why, origin: None });
    }
    if let Some(origins) = &server.origins {
        check_origin(origins, &request)?;
    }
    let mut response = server::create_response(&request).map_err(|error| match error {
        Error::Protocol(
            ProtocolError::MissingConnectionUpgradeHeader
            | ProtocolError::MissingUpgradeWebSocketHeader
            | ProtocolError::MissingSecWebSocketVersionHeader,
        ) => Refusal {
            status: "426 Upgrade Required",
            why: format!("this is a WebSocket server: {error}"),
            origin: None,
        },
        error => bad(&error),
    })?;
    let offered = request.headers().get_all(PROTOCOL);
    let offered = offered.iter().filter_map(|value| value.to_str().ok());
    let chosen = offered.flat_map(|value| value.split(',')).map(str::trim).find_map(|name| {
        server.protocols.iter().find(|known| known.eq_ignore_ascii_case(name)).map(|_| name)
    });
    let chosen = chosen.and_then(|name| name.parse().ok()).ok_or_else(|| {
        Refusal::bad(format!("offer the subprotocol {}", server.protocols.join(" or ")))
    })?;
    response.headers_mut().insert(PROTOCOL, chosen);
    let mut answer = Vec::with_capacity(256);
    server::write_response(&mut answer, &response).map_err(|error| bad(&error))?;
    Ok(answer)
}

/// Checks that the web page that sends a request may do so.
fn check_origin(origins: &WsOrigins, request: &Request) -> Result<(), Refusal> {
    let mut sent = request.headers().get_all("Origin").iter();
    let why = match (sent.next(), sent.next()) {
        (None, _) if !origins.is_required => return Ok(()),
        (None, _) => "the request has no Origin".to_owned(),
        (Some(origin), None) => {
            let origin = origin.as_bytes();
            if origins.allowed.iter().any(|allowed| allowed.as_bytes() == origin) {
                return Ok(());
            }
            let shown = &origin[..origin.len().min(SHOWN_BYTES_MAX)];
            format!("the origin `{}` is not allowed", shown.escape_ascii())
        }
        (Some(_), Some(_)) => "the request has several Origins".to_owned(),
    };
    Err(Refusal {
        status: "403 Forbidden",
        why: "this web page may not open a WebSocket here".to_owned(),
        origin: Some(OriginError(why)),
    })
}

/// Checks the server's response.
pub(super) fn verify(key: &str, protocol: &str, head: &[u8]) -> io::Result<()> {
    let response = match Response::try_parse(head) {
        Ok(Some((_, response))) => response,
        Ok(None) => return Err(error("the server's answer is not complete")),
        Err(why) => return Err(error(format!("the server's answer is not HTTP: {why}"))),
    };
    let status = response.status();
    if status.as_u16() != 101 {
        return Err(error(format!(
            "the server answered {status} instead of opening a WebSocket: check the path"
        )));
    }
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let names = |name: &str, token: &str| {
        header(name).is_some_and(|value| {
            value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token))
        })
    };
    if !names("Upgrade", "websocket") || !names("Connection", "upgrade") {
        return Err(error("the server's answer does not upgrade the connection"));
    }
    if header("Sec-WebSocket-Accept") != Some(derive_accept_key(key.as_bytes()).as_str()) {
        return Err(error("the server's answer does not belong to our request"));
    }
    if response.headers().contains_key("Sec-WebSocket-Extensions") {
        return Err(error("the server uses an extension that was not requested"));
    }
    match header(PROTOCOL) {
        // A server may omit the subprotocol; then only one is possible.
        None => Ok(()),
        Some(name) if name.eq_ignore_ascii_case(protocol) => Ok(()),
        Some(name) => Err(error(format!("the server chose the subprotocol {name}"))),
    }
}
