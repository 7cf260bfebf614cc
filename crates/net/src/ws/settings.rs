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
}
