//! Every point at which a journal can be cut off or let down by its disk, one after the other.
//!
//! A run of a few dozen commits (small segments, so that files are recycled and live records
//! moved) is repeated with one operation of the disk after the other as the last one that works,
//! or as one that fails. What the journal says when it is opened again is compared with a model: it
//! is exactly what was told up to some commit, and to none before what was complete and had to be.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod disk;
mod model;
mod points;
mod stories;

use tacho_journal::MessageId;

/// The body of a message.
fn body(id: MessageId) -> Vec<u8> {
    let len = [20, 300, 1_500, 6_000][(id.get() % 4) as usize];
    (0..len).map(|at| (id.get() as usize * 31 + at) as u8).collect()
}
