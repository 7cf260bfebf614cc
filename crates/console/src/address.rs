//! Where pages are served.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use crate::error::ConsoleError;

/// The port that is used where it is free and no other was asked for.
const PORT: u16 = 9740;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On 127.0.0.1:9740, or on a free port where that one is taken.
    Default,
    /// Exactly there.
    At(SocketAddr),
}

impl Listen {
    /// Takes the address.
    pub(crate) fn bind(self) -> Result<TcpListener, ConsoleError> {
        let bound = match self {
            Self::At(address) => TcpListener::bind(address).map_err(|error| (address, error)),
            Self::Default => {
                let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
                TcpListener::bind(at(PORT))
                    .or_else(|_| TcpListener::bind(at(0)))
                    .map_err(|error| (at(0), error))
            }
        };
        bound.map_err(|(address, error)| ConsoleError::Bind { address, error })
    }
}

/// Reads `9740`, `:9740`, `127.0.0.1:9740`, `localhost:9740` or `[::1]:9740`.
///
/// # Errors
/// A sentence that describes the expected form.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let port = match text.rsplit_once(':') {
        None => text,
        Some(("" | "localhost", port)) => port,
        Some(_) => "",
    };
    let port = port.parse::<u16>();
    port.map(|port| SocketAddr::new(loopback, port)).map_err(|_| {
        "write a port, or a numeric address with a port, such as 9740 or 127.0.0.1:9740".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_loopback_unless_they_say_otherwise() {
        for (text, expected) in [
            ("9740", "127.0.0.1:9740"),
            (":0", "127.0.0.1:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0:80", "0.0.0.0:80"),
        ] {
            assert_eq!(
                parse_address(text).map(|address| address.to_string()).as_deref(),
                Ok(expected)
            );
        }
        for text in ["", "x", "example.org:80", "127.0.0.1", "127.0.0.1:x", "70000", "1:2:3"] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }
}
