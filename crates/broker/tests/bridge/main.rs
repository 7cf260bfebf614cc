//! Bridges between brokers of this process, with a wire between them that tests can cut, and
//! towards a broker that says what a test wants.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod aliases;
mod egress;
mod ingress;
mod loops;
mod modes;
mod other;
mod resume;
mod wire;

use std::net::SocketAddr;

use tacho_broker::bridge::{State, Status};
use tacho_testkit::{TestBroker, wait_until};

/// A bridge called `b` to `address`, with these further keys and rules.
fn bridge(address: SocketAddr, rest: &str) -> String {
    format!(
        "[[bridges]]\nname = 'b'\naddress = 'mqtt://{address}'\nclient_id = 'b'\n\
         retry_longest_s = 1\n{rest}\n"
    )
}

/// Everything below `out/` goes to the other broker, below `from/`.
const OUT: &str = "[[bridges.egress]]\nfilter = 'out/#'\ntopic = 'from/${topic}'\n";

fn status(broker: &TestBroker) -> Status {
    broker.bridges().remove(0)
}

/// Waits until all connections of the bridge are up.
fn wait_up(broker: &TestBroker) {
    wait_until("the bridge is up", || status(broker).state == State::Up);
}

/// Waits until everything that was published has been acknowledged by the other broker.
fn wait_empty(broker: &TestBroker) {
    wait_until("the bridge has delivered everything", || {
        let figures = status(broker).figures;
        figures.buffered_messages == 0 && figures.inflight == 0
    });
}
