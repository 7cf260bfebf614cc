//! Names under which HTTP requests may reach a server of ours.

use std::net::IpAddr;

/// Whether a `Host` header names its server in a way that nobody else's DNS can: by a numeric
/// address, with `loopback` only one of loopback, or as `localhost`. A page from elsewhere that had
/// its own name pointed here does not get past this.
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
    fn names_that_dns_could_point_here_are_not_ours() {
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
