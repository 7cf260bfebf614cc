//! Name lookups for bridges, made here because a lookup may block.

use std::time::Duration;

use tokio::net::lookup_host;

use crate::bridge::{Addresses, Bridges};

/// Interval of checks for lookup requests.
const INTERVAL: Duration = Duration::from_millis(250);

/// Answers lookup requests while the broker runs; does nothing without bridges to host names.
pub(super) async fn look_up(bridges: &Bridges) {
    let named = || bridges.iter().map(|bridge| &bridge.addresses).filter(|a| a.is_name());
    while named().next().is_some() {
        for addresses in named() {
            resolve(addresses).await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    std::future::pending().await
}

async fn resolve(addresses: &Addresses) {
    if let Some(wanted) = addresses.wanted() {
        addresses.answered(lookup_host(wanted).await.map(Iterator::collect));
    }
}
