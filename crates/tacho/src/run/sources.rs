//! Source addresses of the clients, checked before anything starts.

use std::net::{IpAddr, TcpListener};

use tacho_scenario::{Limits, Scenario};

use crate::exit::{self, Failure};

/// Checks that this machine has the source addresses of `scenario`, that the addresses of `brokers`
/// can be reached from them, and that they have enough local ports.
pub(super) fn check(scenario: &Scenario, brokers: &[IpAddr]) -> Result<(), Failure> {
    let addresses = &scenario.load.source_addresses;
    if addresses.is_empty() {
        return Ok(());
    }
    let invalid = |sentence: String| Err(Failure::new(exit::INVALID_CONFIG, sentence));
    for address in addresses.iter() {
        if let Err(error) = TcpListener::bind((address, 0)) {
            return invalid(format!(
                "this machine cannot use the source address {address}: {error}; 'ip address' lists \
                 its addresses, and 'ip address add {address} dev DEVICE' adds one"
            ));
        }
        let other = |broker: &&IpAddr| broker.is_ipv4() != address.is_ipv4();
        if let Some(broker) = brokers.iter().find(other) {
            return invalid(format!(
                "the broker at {broker} cannot be reached from the source address {address}: one is \
                 IPv4, the other IPv6"
            ));
        }
    }
    let ports = Limits::of_this_process().ports_per_address;
    let (count, clients) = (addresses.iter().count() as u64, scenario.clients());
    if clients > ports.saturating_mul(count) {
        return invalid(format!(
            "{clients} clients need {} source addresses with {ports} local ports each \
             (net.ipv4.ip_local_port_range), --source-address has {count}",
            clients.div_ceil(ports.max(1))
        ));
    }
    Ok(())
}
