//! Where the live page is served.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;

/// The port that is used where it is free and no other was asked for.
pub(super) const PORT: u16 = 9740;

/// The live page.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct UiArguments {
    /// Serve a page that shows the run while it runs and can stop it; its address is printed
    ///
    /// ADDR is a port, or an address with a port; port 0 takes a free one. By default it is
    /// 127.0.0.1:9740, or a free port where that one is taken. Whoever can open the page can stop
    /// the run: leave it on loopback, or mind who reaches it.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, value_parser = parse_ui_address)]
    ui: Option<Option<SocketAddr>>,

    /// After the run keep serving the page and the report, until Ctrl-C or the page's button
    #[arg(long, requires = "ui")]
    pub(super) ui_wait: bool,
}

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listen {
    /// The default port, or a free one where that one is taken.
    Default,
    /// Exactly there.
    At(SocketAddr),
}

impl UiArguments {
    /// Where the page is wanted; `None` when it is not.
    pub(super) fn listen(&self) -> Option<Listen> {
        match self.ui {
            None => None,
            Some(None) => Some(Listen::Default),
            Some(Some(address)) => Some(Listen::At(address)),
        }
    }
}

/// The same for `--ui`, which may have taken the scenario for its address.
fn parse_ui_address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text).map_err(|error| format!("{error}; without an address, put --ui last"))
}

/// Reads `9740`, `:9740`, `127.0.0.1:9740`, `localhost:9740` or `[::1]:9740`.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
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
