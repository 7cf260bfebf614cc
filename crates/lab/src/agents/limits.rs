//! What an agent lets a controller do: only what its operator has allowed.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use tacho_load::division::ShareFigures;

/// A broker, or several, that an agent may load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTarget {
    host: Host,
    /// Any if absent.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    /// Every loopback address.
    Loopback,
    Address(IpAddr),
    /// All addresses with this prefix of so many bits.
    Network(IpAddr, u8),
    /// The addresses that it has when a run begins.
    Name(String),
}

impl FromStr for AllowedTarget {
    type Err = String;

    /// Reads `HOST` or `HOST:PORT`, with an address, a network such as `10.0.0.0/24`, a name or
    /// `loopback` as the host; an IPv6 address with a port stands in brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let complain = || {
            format!(
                "'{text}' is no target: write an address, a network such as 10.0.0.0/24, a host \
                 name or 'loopback', each with :PORT for one port only"
            )
        };
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self { host: Host::Address(address), port: None });
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: Host::Address(address.ip()), port: Some(address.port()) });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => {
                (host, Some(port.parse().map_err(|_| complain())?))
            }
            _ => (text, None),
        };
        if let Some((address, bits)) = host.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| complain())?;
            let bits: u8 = bits.parse().map_err(|_| complain())?;
            let bits_max = if address.is_ipv4() { 32 } else { 128 };
            return match bits <= bits_max {
                true => Ok(Self { host: Host::Network(address, bits), port }),
                false => Err(complain()),
            };
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(Self { host: Host::Address(address), port });
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        match host {
            "loopback" => Ok(Self { host: Host::Loopback, port }),
            "" => Err(complain()),
            name if name.bytes().all(is_allowed) => {
                Ok(Self { host: Host::Name(name.to_owned()), port })
            }
            _ => Err(complain()),
        }
    }
}

impl AllowedTarget {
    fn allows(&self, address: SocketAddr) -> bool {
        if self.port.is_some_and(|port| port != address.port()) {
            return false;
        }
        let ip = address.ip().to_canonical();
        match &self.host {
            Host::Loopback => ip.is_loopback(),
            Host::Address(own) => own.to_canonical() == ip,
            Host::Network(network, bits) => is_in(ip, *network, *bits),
            Host::Name(name) => {
                let found = (name.as_str(), address.port()).to_socket_addrs();
                found.is_ok_and(|mut all| all.any(|found| found.ip().to_canonical() == ip))
            }
        }
    }
}

/// Whether the address begins with the first `bits` of the network.
fn is_in(ip: IpAddr, network: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            (u32::from(ip) ^ u32::from(network)) & mask == 0
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            (u128::from(ip) ^ u128::from(network)) & mask == 0
        }
        _ => false,
    }
}

/// What an agent lets a controller do.
#[derive(Clone, Debug, Default)]
pub struct AgentLimits {
    /// The brokers that it may load; none unless listed.
    pub targets: Vec<AllowedTarget>,
    /// Messages and logins that it sends per second at most.
    pub per_second_max: Option<f64>,
    /// Clients at most.
    pub clients_max: Option<usize>,
    /// How long a run may last; after it the agent stops.
    pub time_max: Duration,
    /// How long it keeps the load of a run whose controller is gone, at most.
    pub unattended_max: Duration,
}

/// A limit that an assignment exceeds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Excess {
    Target(SocketAddr),
    PerSecond { asked: f64, allowed: f64 },
    Clients { asked: usize, allowed: usize },
    Time { asked_s: u64, allowed_s: u64 },
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(address) => write!(
                f,
                "it may not load {address}; its operator allows brokers with --allow-target"
            ),
            Self::PerSecond { asked, .. } if asked.is_infinite() => {
                write!(f, "it has a limit of messages per second (--rate-max), and the load none")
            }
            Self::PerSecond { asked, allowed } => {
                write!(
                    f,
                    "{asked:.0} messages per second exceed its limit (--rate-max) of {allowed}"
                )
            }
            Self::Clients { asked, allowed } => {
                write!(f, "{asked} clients exceed its limit (--clients-max) of {allowed}")
            }
            Self::Time { asked_s, allowed_s } => write!(
                f,
                "the run may take {asked_s} s, which exceeds its limit (--time-max) of {allowed_s} s"
            ),
        }
    }
}

impl AgentLimits {
    /// The first limit that an assignment exceeds.
    pub(super) fn check(&self, figures: &ShareFigures) -> Result<(), Excess> {
        for address in &figures.addresses {
            if !self.targets.iter().any(|target| target.allows(*address)) {
                return Err(Excess::Target(*address));
            }
        }
        if let Some(allowed) = self.per_second_max.filter(|max| figures.per_second > *max) {
            return Err(Excess::PerSecond { asked: figures.per_second, allowed });
        }
        if let Some(allowed) = self.clients_max.filter(|max| figures.clients > *max) {
            return Err(Excess::Clients { asked: figures.clients, allowed });
        }
        let allowed_s = self.time_max.as_secs();
        match figures.seconds > allowed_s {
            true => Err(Excess::Time { asked_s: figures.seconds, allowed_s }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_addresses_networks_names_or_loopback() {
        let allows = |target: &str, address: &str| {
            let target: AllowedTarget = target.parse().expect(target);
            target.allows(address.parse().expect(address))
        };
        assert!(allows("loopback", "127.0.0.7:1883") && allows("loopback", "[::1]:1"));
        assert!(!allows("loopback", "10.0.0.1:1883"));
        assert!(allows("10.0.0.1", "10.0.0.1:9") && !allows("10.0.0.1", "10.0.0.2:9"));
        assert!(allows("10.0.0.1:1883", "10.0.0.1:1883"));
        assert!(!allows("10.0.0.1:1883", "10.0.0.1:1884"));
        assert!(allows("10.1.0.0/16", "10.1.255.1:1") && !allows("10.1.0.0/16", "10.2.0.1:1"));
        assert!(allows("0.0.0.0/0", "9.9.9.9:1") && allows("10.0.0.3/32:7", "10.0.0.3:7"));
        assert!(allows("fd00::/8", "[fd12::1]:1") && !allows("fd00::/8", "10.0.0.1:1"));
        assert!(allows("[::1]:5", "[::1]:5") && !allows("[::1]:5", "[::1]:6"));
        assert!(allows("10.0.0.1", "[::ffff:10.0.0.1]:9"));
        assert!(allows("localhost:1", "127.0.0.1:1"));
        for bad in ["", ":1883", "10.0.0.0/33", "a b", "host:port", "10.0.0.0/x", "mqtt://a"] {
            assert!(bad.parse::<AllowedTarget>().is_err(), "{bad}");
        }
    }

    #[test]
    fn each_limit_is_checked_and_named() {
        let figures = ShareFigures {
            clients: 10,
            per_second: 100.0,
            seconds: 60,
            addresses: vec!["127.0.0.1:1883".parse().expect("an address")],
        };
        let limits = AgentLimits {
            targets: vec!["loopback".parse().expect("a target")],
            time_max: Duration::from_secs(60),
            ..AgentLimits::default()
        };
        assert_eq!(limits.check(&figures), Ok(()));
        let refused =
            |limits: AgentLimits| limits.check(&figures).expect_err("exceeds a limit").to_string();
        let nothing_listed = AgentLimits { targets: Vec::new(), ..limits.clone() };
        assert!(refused(nothing_listed).contains("may not load 127.0.0.1:1883"));
        let slow = AgentLimits { per_second_max: Some(99.0), ..limits.clone() };
        assert!(refused(slow).contains("--rate-max"));
        let small = AgentLimits { clients_max: Some(9), ..limits.clone() };
        assert!(refused(small).contains("--clients-max"));
        let short = AgentLimits { time_max: Duration::from_secs(59), ..limits };
        assert!(refused(short).contains("--time-max"));
    }
}
