//! Every point at which a journal can be cut off or its disk can fail, one after the other.
//!
//! A run of a few dozen commits (small segments, so that files are recycled and live records
//! moved) is repeated once for each disk operation, with that operation as the last one that
//! succeeds or as one that fails. The state of the reopened journal is compared with a model: it is
//! exactly the state after some commit, and no commit that had to survive is missing.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod cases;
mod disk;
mod model;
mod points;

use tacho_journal::MessageId;

/// The body of a message.
fn body(id: MessageId) -> Vec<u8> {
    let len = [20, 300, 1_500, 6_000][(id.get() % 4) as usize];
    (0..len).map(|at| (id.get() as usize * 31 + at) as u8).collect()
}
