//! The counters of a loop.

/// Totals since a loop was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Turns taken.
    pub turns: u64,
    /// Turns that began with a sleep.
    pub sleeps: u64,
    /// Time in which the loop neither slept nor rested, without the current turn.
    pub busy_ns: u64,
    /// Time of the rests in which the loop polled the clock, without delays of its thread.
    pub polled_rest_ns: u64,
    /// Turns that took longer than a millisecond. Counted where [`LoopConfig::turn_ns_max`] is set.
    ///
    /// [`LoopConfig::turn_ns_max`]: crate::LoopConfig::turn_ns_max
    pub slow_turns: u64,
    /// The longest turn.
    pub turn_ns_max: u64,
    /// The most CPU time of a slow turn: without what other programs or the hypervisor took.
    pub turn_cpu_ns_max: u64,
    /// The most units of work in one turn.
    pub turn_units_max: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once because descriptors had run out.
    pub refused: u64,
    /// Reads of sockets.
    pub reads: u64,
    /// Bytes read from sockets.
    pub read_bytes: u64,
    /// Writes to sockets.
    pub writes: u64,
    /// System calls that made several of these writes.
    pub write_batches: u64,
    /// Bytes written to sockets.
    pub written_bytes: u64,
    /// Wake-ups sent to other shards.
    pub wakes: u64,
}
