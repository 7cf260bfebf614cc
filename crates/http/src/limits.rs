//! Bounds of a server, and how often they were reached.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bounds of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; when there are more, one that waits for its peer gives way.
    pub places_max: usize,
    /// From the acceptance of a connection, or from the first byte of a later request, to the end
    /// of the request's head.
    pub request_time: Duration,
    /// From an answer to the next request: Prometheus keeps connections for its next scrape.
    pub idle_time: Duration,
    /// How long a peer may leave its answer unread.
    pub unread_time: Duration,
    /// Bytes of a request. Browsers send the cookies of all local programs along.
    pub request_bytes_max: usize,
    /// How long connections may take to end once the server ends.
    pub farewell: Duration,
}

impl Limits {
    /// The usual bounds for so many connections.
    pub const fn with_places(places_max: usize) -> Self {
        Self {
            places_max,
            request_time: Duration::from_secs(15),
            idle_time: Duration::from_secs(75),
            unread_time: Duration::from_secs(30),
            request_bytes_max: 64 << 10,
            farewell: Duration::from_secs(2),
        }
    }
}

/// How often a server's bounds were reached.
#[derive(Debug, Default)]
pub struct Counters {
    gave_way: AtomicU64,
    timed_out: AtomicU64,
}

impl Counters {
    /// Connections that gave way to new ones.
    pub fn gave_way(&self) -> u64 {
        self.gave_way.load(Ordering::Relaxed)
    }

    /// Connections that were closed at a deadline.
    pub fn timed_out(&self) -> u64 {
        self.timed_out.load(Ordering::Relaxed)
    }

    pub(crate) fn count_gave_way(&self) {
        self.gave_way.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_timed_out(&self) {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
    }
}
