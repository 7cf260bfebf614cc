//! The address of a remote broker.

use std::fmt;

use tacho_net::tls::TlsClientSettings;

/// The address of a remote broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Host name or address; a name is looked up again for each connection.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// TLS settings, if it is reached by TLS.
    pub tls: Option<TlsClientSettings>,
}

impl Remote {
    /// Parses `mqtt://host[:port]` or `mqtts://host[:port]`.
    pub(super) fn parse(text: &str) -> Result<(Self, bool), String> {
        let expected = "write mqtt://host:port, or mqtts://host:port for TLS";
        let (scheme, rest) = text.split_once("://").unwrap_or(("mqtt", text));
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "mqtt" | "tcp" => false,
            "mqtts" | "ssl" | "tls" => true,
            _ => return Err(format!("`{text}`: bridges do not support `{scheme}`; {expected}")),
        };
        if rest.contains('@') {
            return Err("it contains a user name: set `username` and `password_file`".to_owned());
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            // A bare IPv6 address has colons, but no brackets around it.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port != 0);
                let error = || format!("`{text}` has no port from 1 to 65535");
                (host, port.ok_or_else(error)?)
            }
            _ => (rest, if secure { 8883 } else { 1883 }),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        let usable = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(usable) {
            return Err(format!("`{text}` is not the address of a broker: {expected}"));
        }
        Ok((Self { host: host.to_owned(), port, tls: None }, secure))
    }
}

/// As in the configuration.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "mqtts" } else { "mqtt" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_and_port_have_defaults() {
        for (text, host, port, secure) in [
            ("mqtt://a", "a", 1883, false),
            ("a.example:1884", "a.example", 1884, false),
            ("tcp://a/", "a", 1883, false),
            ("mqtts://a", "a", 8883, true),
            ("TLS://[::1]:1", "::1", 1, true),
            ("mqtt://::1", "::1", 1883, false),
        ] {
            let (remote, tls) = Remote::parse(text).expect(text);
            assert_eq!((remote.host.as_str(), remote.port, tls), (host, port, secure), "{text}");
        }
        assert_eq!(Remote::parse("[::1]:7").unwrap().0.to_string(), "mqtt://[::1]:7");
    }

    #[test]
    fn invalid_addresses_are_refused_with_the_reason() {
        for (text, words) in [
            ("ws://a", "do not support `ws`"),
            ("mqtt://", "not the address"),
            ("mqtt://a:0", "no port"),
            ("mqtt://a:99999", "no port"),
            ("mqtt://a/b", "not the address"),
            ("mqtt://me:pw@a", "`username`"),
        ] {
            let error = Remote::parse(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains("pw"), "{error}");
        }
    }
}
