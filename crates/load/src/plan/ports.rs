//! Local ports: how many connections one source address can have.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::Plan;

/// Linux's own default.
const DEFAULT: (u16, u16) = (32_768, 60_999);

/// First and last port that the system gives to outgoing connections
/// (`net.ipv4.ip_local_port_range`).
pub fn local_port_range() -> (u16, u16) {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    text.ok().and_then(|text| parse(&text)).unwrap_or(DEFAULT)
}

fn parse(text: &str) -> Option<(u16, u16)> {
    let mut ports = text.split_whitespace().map(str::parse);
    match (ports.next(), ports.next()) {
        (Some(Ok(first)), Some(Ok(last))) if first <= last => Some((first, last)),
        _ => None,
    }
}

impl Plan {
    /// Loopback addresses to connect from, so that the local ports are enough for all clients.
    /// None when one address is enough, or when some target is not on this machine: the system
    /// has no further addresses there unless somebody gives it some.
    pub fn loopback_sources(&self) -> Vec<IpAddr> {
        let (first, last) = local_port_range();
        self.loopback_sources_for(u64::from(last - first) + 1)
    }

    fn loopback_sources_for(&self, ports: u64) -> Vec<IpAddr> {
        let mut clients: HashMap<SocketAddr, u64> = HashMap::new();
        for (index, (group, _)) in (0..).zip(self.clients()) {
            if let Some(target) = self.target_of(group, index) {
                *clients.entry(target.addr).or_default() += 1;
            }
        }
        // Ports of connections closed lately stay in use for a while.
        let usable = (ports * 9 / 10).max(1);
        let local = clients.keys().all(|addr| addr.is_ipv4() && addr.ip().is_loopback());
        let most = clients.values().max().copied().unwrap_or(0);
        if !local || most <= usable {
            return Vec::new();
        }
        // A port of a given source address is good for one connection, whatever its target.
        let count = clients.values().sum::<u64>().div_ceil(usable).min(250) as u8;
        (1..=count).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).collect()
    }
}

#[cfg(test)]
mod tests {
    use tacho_codec::QoS;

    use super::*;
    use crate::plan::tests::{plan_of, publisher};

    #[test]
    fn as_many_addresses_as_the_ports_ask_for() {
        let mut plan = plan_of((0..100).map(|_| publisher("t", QoS::AtMostOnce)).collect());
        let count = |plan: &Plan, ports| plan.loopback_sources_for(ports).len();
        assert_eq!([112, 111, 56, 20].map(|ports| count(&plan, ports)), [0, 2, 2, 6]);
        assert_eq!(plan.loopback_sources_for(60)[1], IpAddr::from([127, 0, 0, 2]));
        // Two targets share the ports as long as no source address is asked for.
        plan.targets.push(SocketAddr::from(([127, 0, 0, 1], 1884)).into());
        assert_eq!([60, 50].map(|ports| count(&plan, ports)), [0, 3]);
        plan.targets.push(SocketAddr::from(([192, 0, 2, 1], 1883)).into());
        assert_eq!(count(&plan, 10), 0);
    }

    #[test]
    fn the_range_is_read() {
        assert_eq!(parse("40000\t40099\n"), Some((40_000, 40_099)));
        assert_eq!((parse(""), parse("5 4"), parse("1 70000")), (None, None, None));
        let (first, last) = local_port_range();
        assert!(first <= last);
    }
}
