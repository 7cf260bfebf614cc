//! The settings of both sides.

/// How a client opens its WebSockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsClient {
    /// The server as named in the URL, with the port unless it is the default one.
    pub host: String,
    /// The path of the URL, with its leading slash.
    pub path: String,
    /// The subprotocol to request.
    pub protocol: String,
}

/// Which WebSockets a server accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsServer {
    /// The path; requests for others are answered with 404. A query string is ignored.
    pub path: String,
    /// The supported subprotocols. A client must offer at least one of them; the first supported
    /// one in the client's order is chosen.
    pub protocols: Vec<String>,
    /// The web pages that may open WebSockets; others are answered with 403. Absent: all.
    pub origins: Option<WsOrigins>,
}

/// The web pages that may open WebSockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsOrigins {
    /// Their origins, written as browsers do in the header `Origin` (RFC 6454, 6.2).
    pub allowed: Vec<String>,
    /// A request without the header is refused, too: only browsers send it.
    pub is_required: bool,
}
