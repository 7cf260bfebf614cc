//! The broker is killed, or stopped, and starts again on its data directory: what it has
//! acknowledged is still there.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod backups;
mod directory;
mod faults;
mod journal;
mod messages;
mod process;
mod retained;
mod sessions;
mod wills;
