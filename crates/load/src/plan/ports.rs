//! Local ports, which limit the connections per source address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tacho_net::local_port_range;

use super::{ClientIndex, Plan};

/// How long the port of a connection that the client closes stays in use, on Linux.
const TIME_WAIT_S: f64 = 60.0;

impl Plan {
    /// Loopback source addresses that provide enough local ports for all clients. Empty when one
    /// address is sufficient, or when some target is not on this machine: other interfaces have no
    /// further addresses unless an administrator adds them.
    pub fn loopback_sources(&self) -> Vec<IpAddr> {
        let (first, last) = local_port_range();
        self.loopback_sources_for(u64::from(last - first) + 1)
    }

    fn loopback_sources_for(&self, ports: u64) -> Vec<IpAddr> {
        let mut clients: HashMap<SocketAddr, u64> = HashMap::new();
        let mut closed: HashMap<SocketAddr, f64> = HashMap::new();
        for (index, (group, _)) in ClientIndex::all().zip(self.clients()) {
            if let Some(target) = self.target_of(group, index) {
                *clients.entry(target.addr).or_default() += 1;
                let closed_per_s = group.login.map_or(0.0, |login| login.per_s);
                *closed.entry(target.addr).or_default() +=
                    closed_per_s * TIME_WAIT_S / group.clients.len() as f64;
            }
        }
        for (addr, count) in closed {
            *clients.entry(addr).or_default() += count.ceil() as u64;
        }
        // Ports of recently closed connections stay in use for a while (TIME_WAIT).
        let usable = (ports * 9 / 10).max(1);
        let local = clients.keys().all(|addr| addr.is_ipv4() && addr.ip().is_loopback());
        let most = clients.values().max().copied().unwrap_or(0);
        if !local || most <= usable {
            return Vec::new();
        }
        // With an explicit source address, a port serves one connection, whatever its target.
        let count = clients.values().sum::<u64>().div_ceil(usable).min(250) as u8;
        (1..=count).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).collect()
    }
}

#[cfg(test)]
mod tests {
    use tacho_codec::QoS;

    use super::*;
    use crate::plan::Login;
    use crate::plan::tests::{plan_of, publisher};

    #[test]
    fn there_are_enough_addresses_for_the_ports() {
        let mut plan = plan_of((0..100).map(|_| publisher("t", QoS::AtMostOnce)).collect());
        let count = |plan: &Plan, ports| plan.loopback_sources_for(ports).len();
        assert_eq!([112, 111, 56, 20].map(|ports| count(&plan, ports)), [0, 2, 2, 6]);
        assert_eq!(plan.loopback_sources_for(60)[1], IpAddr::from([127, 0, 0, 2]));
        // Connections to two targets share ports as long as no source address is explicit.
        plan.targets.push(SocketAddr::from(([127, 0, 0, 1], 1884)).into());
        assert_eq!([60, 50].map(|ports| count(&plan, ports)), [0, 3]);
        plan.groups[0].login =
            Some(Login { per_s: 10.0, stay_ns: 0, wrong_share: 0.0, unknown_share: 0.0 });
        assert_eq!(count(&plan, 500), 2, "600 ports of logins");
        plan.targets.push(SocketAddr::from(([192, 0, 2, 1], 1883)).into());
        assert_eq!(count(&plan, 10), 0);
    }
}
