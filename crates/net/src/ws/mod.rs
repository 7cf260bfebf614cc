//! WebSocket (RFC 6455) as a byte filter: the handler's output is sent in binary frames, and it
//! reads the concatenated payload of the peer's. Frame boundaries have no meaning beyond that, so
//! payload is passed on as it arrives and no frame is assembled.

mod close;
mod filter;
mod frame;
mod handshake;
mod settings;

pub use filter::WsFilter;
pub use handshake::OriginError;
pub use settings::{WsClient, WsOrigins, WsServer};
