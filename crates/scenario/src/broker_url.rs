//! How a broker is named: `mqtt://host:port` and the like.

use std::net::IpAddr;

use serde::{Serialize, Serializer};

/// Address of a broker, such as `mqtts://broker.example:8883` or `ws://broker.example/mqtt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerUrl {
    /// The transport.
    pub scheme: Scheme,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path of a WebSocket, with its slash; [`BrokerUrl::PATH`] when absent.
    pub path: Option<String>,
}

/// The transport of MQTT packets to a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// TCP.
    #[default]
    Mqtt,
    /// TLS.
    Mqtts,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

impl Scheme {
    /// The text before the `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mqtt => "mqtt",
            Self::Mqtts => "mqtts",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }

    /// The scheme of a listener for it: `tls`, `ws` or `wss`; absent for plain TCP.
    pub const fn listener(self) -> Option<&'static str> {
        match self {
            Self::Mqtt => None,
            Self::Mqtts => Some("tls"),
            Self::Ws => Some("ws"),
            Self::Wss => Some("wss"),
        }
    }

    /// The port when an address has none: the registered ones.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Mqtt => 1883,
            Self::Mqtts => 8883,
            Self::Ws => 80,
            Self::Wss => 443,
        }
    }

    /// Is the connection encrypted?
    pub const fn uses_tls(self) -> bool {
        matches!(self, Self::Mqtts | Self::Wss)
    }

    /// Is there a WebSocket?
    pub const fn is_web_socket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }

    /// The scheme called `name`, aliases included.
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "mqtt" | "tcp" => Some(Self::Mqtt),
            "mqtts" | "ssl" | "tls" => Some(Self::Mqtts),
            "ws" => Some(Self::Ws),
            "wss" => Some(Self::Wss),
            _ => None,
        }
    }
}

impl BrokerUrl {
    /// Where brokers have their WebSocket by custom.
    pub const PATH: &str = "/mqtt";

    /// A broker reached by `scheme`, its WebSocket at the usual path.
    pub fn new(scheme: Scheme, host: impl Into<String>, port: u16) -> Self {
        Self { scheme, host: host.into(), port, path: None }
    }

    /// Is it certainly this machine? A name other than `localhost` is not looked up.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The path of the WebSocket.
    pub fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(Self::PATH)
    }

    /// Parses `scheme://host[:port][/path]`. The scheme may be left out and is then `mqtt`; `tcp`
    /// is the same, and `ssl` and `tls` are `mqtts`. Only `ws` and `wss` have a path.
    ///
    /// # Errors
    /// A sentence, when it is something else.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = match text.split_once("://") {
            None => (Scheme::Mqtt, text),
            Some((name, rest)) => match Scheme::from_name(&name.to_ascii_lowercase()) {
                Some(scheme) => (scheme, rest),
                None => {
                    return Err(format!(
                        "'{text}': the scheme '{name}' is not supported, write mqtt://host:port, \
                         mqtts://, ws:// or wss://"
                    ));
                }
            },
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], Some(&rest[at..])),
            None => (rest, None),
        };
        let path = match path {
            None => None,
            Some("/") if !scheme.is_web_socket() => None,
            Some(path) if !scheme.is_web_socket() => {
                return Err(format!("'{text}': only ws:// and wss:// have a path, not '{path}'"));
            }
            Some(path) if path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') => {
                Some(path.to_owned())
            }
            Some(path) => return Err(format!("'{text}': '{path}' is not a path of a URL")),
        };
        let (host, port) = host_and_port(text, authority, scheme)?;
        Ok(Self { scheme, host, port, path })
    }
}

fn host_and_port(text: &str, authority: &str, scheme: Scheme) -> Result<(String, u16), String> {
    let (host, port) = match authority.rsplit_once(':') {
        // A bare IPv6 address has colons, but no brackets around it.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (
            host,
            port.parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| format!("'{text}': '{port}' is not a port between 1 and 65535"))?,
        ),
        _ => (authority, scheme.default_port()),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let usable = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    if host.is_empty() || !host.chars().all(usable) {
        return Err(format!("'{text}' is not a broker address: write mqtt://host:port"));
    }
    Ok((host.to_owned(), port))
}

impl std::fmt::Display for BrokerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (scheme, host, port) = (self.scheme.name(), &self.host, self.port);
        let path = self.path.as_deref().unwrap_or_default();
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]:{port}{path}"),
            false => write!(f, "{scheme}://{host}:{port}{path}"),
        }
    }
}

impl Serialize for BrokerUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_ports_and_paths() {
        for (text, shown) in [
            ("mqtt://a", "mqtt://a:1883"),
            ("a:1884", "mqtt://a:1884"),
            ("tcp://a/", "mqtt://a:1883"),
            ("mqtts://a", "mqtts://a:8883"),
            ("ssl://a", "mqtts://a:8883"),
            ("TLS://[::1]:1", "mqtts://[::1]:1"),
            ("ws://a", "ws://a:80"),
            ("wss://a:8084/mqtt?x=1", "wss://a:8084/mqtt?x=1"),
            ("ws://::1/x", "ws://[::1]:80/x"),
        ] {
            let url = BrokerUrl::parse(text).expect(text);
            assert_eq!(url.to_string(), shown);
            assert_eq!(BrokerUrl::parse(shown), Ok(url));
        }
        assert_eq!(BrokerUrl::parse("ws://a").map(|url| url.path().to_owned()), Ok("/mqtt".into()));
        assert_eq!(BrokerUrl::parse("ws://a/").map(|url| url.path().to_owned()), Ok("/".into()));
    }

    #[test]
    fn invalid_urls_are_refused_with_the_reason() {
        for (text, words) in [
            ("http://x", "'http' is not supported"),
            ("mqtt://x/y", "only ws:// and wss://"),
            ("mqtts://x:0", "not a port"),
            ("ws://x/a b", "not a path"),
            ("ws:///mqtt", "not a broker address"),
            ("mqtt://", "not a broker address"),
        ] {
            let error = BrokerUrl::parse(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
