//! What the wall clock shows when the loops' clock shows something: for bans that end at a date.

use std::sync::atomic::{AtomicU64, Ordering};

use tacho_net::clock;

/// How far the wall clock is ahead of the loops' clock, in nanoseconds, modulo 2^64. It is read
/// with the files of access control, since the wall clock may be set meanwhile: machines without a
/// battery start in 1970.
#[derive(Debug)]
pub(crate) struct UnixOffset(AtomicU64);

impl UnixOffset {
    pub(super) fn read() -> Self {
        let offset = Self(AtomicU64::new(0));
        offset.read_again();
        offset
    }

    pub(super) fn read_again(&self) {
        self.0.store(clock::unix_ns().wrapping_sub(clock::now_ns()), Ordering::Relaxed);
    }

    /// Seconds since 1970.
    pub(crate) fn unix_s(&self, now_ns: u64) -> i64 {
        self.unix_ms(now_ns) / 1_000
    }

    /// Milliseconds since 1970.
    pub(crate) fn unix_ms(&self, now_ns: u64) -> i64 {
        self.unix_us(now_ns) / 1_000
    }

    /// Microseconds since 1970.
    pub(crate) fn unix_us(&self, now_ns: u64) -> i64 {
        (now_ns.wrapping_add(self.0.load(Ordering::Relaxed)) / 1_000) as i64
    }
}
