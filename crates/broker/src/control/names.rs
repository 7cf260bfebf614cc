//! Name lookups for bridges, made here because a lookup may block.

use std::time::Duration;

use tokio::net::lookup_host;

use crate::bridge::{Addresses, BridgeDirectory};

/// Interval of checks for lookup requests.
const INTERVAL: Duration = Duration::from_millis(250);

/// Answers lookup requests while the broker runs.
pub(super) async fn look_up(bridges: &BridgeDirectory) {
    loop {
        for bridge in bridges.now().present().filter(|bridge| bridge.addresses.is_name()) {
            resolve(&bridge.addresses).await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn resolve(addresses: &Addresses) {
    if let Some(wanted) = addresses.wanted() {
        addresses.answered(lookup_host(wanted).await.map(Iterator::collect));
    }
}
