//! WebSocket (RFC 6455) as a byte filter: whatever the handler writes travels in binary frames, and
//! their payload, in order, is what it reads. Frames have no meaning beyond that, so none is
//! collected: payload is handed up as it arrives.

mod close;
mod filter;
mod frame;
mod handshake;

pub use filter::WsFilter;

use filter::Opening;

/// How a client opens its WebSockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsClient {
    /// The server as it is called in the address, with the port unless it is the usual one.
    pub host: String,
    /// The path in the address, with its slash.
    pub path: String,
    /// The subprotocol to ask for.
    pub protocol: String,
}

/// Which WebSockets a server accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsServer {
    /// The path; requests for others are answered with 404. What follows a `?` is not looked at.
    pub path: String,
    /// The subprotocols, of which the client must offer one; the client's order decides.
    pub protocols: Vec<String>,
}

impl WsClient {
    /// The filter of a new connection. It begins the handshake.
    pub fn filter(&self) -> WsFilter {
        let key = tungstenite::handshake::client::generate_key();
        let request = handshake::request(self, &key);
        let protocol = self.protocol.clone();
        WsFilter::new(Opening::Client { key, protocol }, request)
    }
}

impl WsServer {
    /// The filter of a new connection. It waits for the client's handshake.
    pub fn filter(&self) -> WsFilter {
        WsFilter::new(Opening::Server(self.clone()), Vec::new())
    }
}
