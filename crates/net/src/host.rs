//! The check of `Host` headers against DNS rebinding.

use std::net::IpAddr;

/// Whether a `Host` header names its server in a way that no foreign DNS entry can: by a numeric
/// address, with `loopback` only a loopback address, or as `localhost`. This refuses requests of
/// pages whose own host name was pointed at this server (DNS rebinding).
#[must_use]
pub fn is_own_name(host: &str, loopback: bool) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok_and(|address| !loopback || address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_own_name;

    #[test]
    fn names_that_dns_can_point_here_are_refused() {
        for host in ["127.0.0.1:9740", "localhost:9740", "LOCALHOST", "[::1]:9740", "127.0.0.1"] {
            assert!(is_own_name(host, true), "{host}");
        }
        for host in ["evil.example:9740", "", "127.0.0.1.evil.example", "10.0.0.1:9740", "[::]x:1"]
        {
            assert!(!is_own_name(host, true), "{host}");
        }
        assert!(is_own_name("10.0.0.1:9740", false));
        assert!(!is_own_name("evil.example:9740", false));
    }
}
