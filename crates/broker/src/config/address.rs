//! Addresses as texts and in the file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The address of `host:port`, or of a port alone, which is on 127.0.0.1. Of the addresses of a
/// name the first IPv4 address counts.
///
/// # Errors
/// A sentence, for other texts and names that are not found.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let wrong = || format!("'{text}' is no address: write host:port, such as 127.0.0.1:1883");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    if host.is_empty() {
        return Err(format!(
            "'{text}' names no host: write {port} or 127.0.0.1:{port} for this machine only, \
             0.0.0.0:{port} for all interfaces"
        ));
    }
    let found = (host, port).to_socket_addrs();
    let mut found: Vec<SocketAddr> =
        found.map_err(|error| format!("cannot find the host '{host}': {error}"))?.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| format!("the host '{host}' has no address"))
}

/// Addresses in a file.
pub(super) fn addresses<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<SocketAddr>>, D::Error> {
    let given = Option::<Vec<Given>>::deserialize(from)?;
    Ok(given.map(|given| given.into_iter().map(|Given(address)| address).collect()))
}

/// An address in a file that need not be there.
pub(super) fn maybe_address<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SocketAddr>, D::Error> {
    Ok(Option::<Given>::deserialize(from)?.map(|Given(address)| address))
}

#[derive(Deserialize)]
struct Given(#[serde(deserialize_with = "address")] SocketAddr);

/// An address in a file.
pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Address {
        Port(u16),
        Text(String),
    }
    match Address::deserialize(from)? {
        Address::Port(port) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        Address::Text(text) => parse_address(&text).map_err(D::Error::custom),
    }
}
