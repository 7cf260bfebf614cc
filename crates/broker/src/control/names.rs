//! The names of other brokers, looked up here, where waiting for an answer delays nobody.

use std::time::Duration;

use tokio::net::lookup_host;

use crate::bridge::{Addresses, Bridges};

/// Between two looks at who wants to know.
const LOOK: Duration = Duration::from_millis(250);

/// Answers as long as the broker runs; ends at once if nobody will ever ask.
pub(super) async fn look_up(bridges: &Bridges) {
    let named = || bridges.iter().map(|bridge| &bridge.addresses).filter(|a| a.is_name());
    while named().next().is_some() {
        for addresses in named() {
            answer(addresses).await;
        }
        tokio::time::sleep(LOOK).await;
    }
    std::future::pending().await
}

async fn answer(addresses: &Addresses) {
    if let Some(wanted) = addresses.wanted() {
        addresses.answered(lookup_host(wanted).await.map(Iterator::collect));
    }
}
