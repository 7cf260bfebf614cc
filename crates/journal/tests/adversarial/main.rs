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
