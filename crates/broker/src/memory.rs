//! How much memory messages and buffers hold in the whole broker, counted without contention.
//!
//! A message counts once, however many sessions wait for it: from its making until its last
//! reference goes, in a cell of the thread at hand. Once per turn each shard moves what has
//! gathered there, and what else it has come to hold, to the sums that all shards share.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use tacho_net::memory_bytes;

use crate::config::Limits;

/// What a message takes beside its topic, properties and payload.
pub(crate) const MESSAGE_BYTES: usize = 160;

thread_local! {
    /// Bytes of messages made on this thread less those of messages that ended on it.
    static UNSETTLED: Cell<i64> = const { Cell::new(0) };
    /// Whether a shard runs on this thread and will settle.
    static SETTLES: Cell<bool> = const { Cell::new(false) };
}

/// The bytes of one message, counted while it lives. What is made outside all shards is not.
#[derive(Debug)]
pub(crate) struct Charge(u32);

impl Charge {
    #[inline]
    pub(crate) fn new(bytes: usize) -> Self {
        if !SETTLES.get() {
            return Self(0);
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        UNSETTLED.set(UNSETTLED.get() + i64::from(bytes));
        Self(bytes)
    }
}

impl Drop for Charge {
    #[inline]
    fn drop(&mut self) {
        UNSETTLED.set(UNSETTLED.get() - i64::from(self.0));
    }
}

/// Makes messages before there are shards, which will own them and settle when they end.
pub(crate) fn counted<T>(memory: &Memory, make: impl FnOnce() -> T) -> T {
    let (settles, unsettled) = (SETTLES.replace(true), UNSETTLED.replace(0));
    let made = make();
    memory.queues.fetch_add(UNSETTLED.replace(unsettled), Ordering::Relaxed);
    SETTLES.set(settles);
    made
}

/// What all shards hold together. Aligned to cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Memory {
    /// Messages that are not retained, and the places they take in queues.
    queues: AtomicI64,
    /// Unsent output and incomplete input.
    buffers: AtomicI64,
    pub(crate) queues_max: u64,
    pub(crate) buffers_max: u64,
}

impl Memory {
    pub(crate) fn new(limits: &Limits) -> Self {
        let quarter = memory_bytes().map_or(QUARTER_UNKNOWN, |bytes| bytes / 4);
        let or_quarter = |wanted: u64| if wanted == 0 { quarter } else { wanted };
        Self {
            queues: AtomicI64::new(0),
            buffers: AtomicI64::new(0),
            queues_max: or_quarter(limits.queues_bytes_max),
            buffers_max: or_quarter(limits.buffers_bytes_max),
        }
    }

    /// Bytes that wait in queues, as far as the shards have told.
    #[inline]
    pub(crate) fn queues(&self) -> u64 {
        self.queues.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Bytes in buffers of connections.
    #[inline]
    pub(crate) fn buffers(&self) -> u64 {
        self.buffers.load(Ordering::Relaxed).max(0).unsigned_abs()
    }
}

/// Where the system does not say how much memory there is.
const QUARTER_UNKNOWN: u64 = 1 << 30;

/// One shard's part: what it holds beside messages, and what it has not told yet.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Bytes of places in its sessions' queues and windows.
    pub(crate) places_bytes: u64,
    /// Bytes of places and of retained messages as of the last settlement.
    places_told: i64,
    retained_told: i64,
    /// What was settled and is too little to be told.
    untold: i64,
    buffers_told: i64,
    /// Smaller changes than this wait, so that the shared sums are not written in every turn.
    chunk: i64,
}

impl Ledger {
    /// The calling thread is the shard's.
    pub(crate) fn new(memory: &Memory) -> Self {
        SETTLES.set(true);
        // In simulations another broker ran on this thread before.
        UNSETTLED.set(0);
        let least = memory.queues_max.min(memory.buffers_max) / 1024;
        let chunk = least.clamp(1, 16 * 1024).cast_signed();
        Self {
            places_bytes: 0,
            places_told: 0,
            retained_told: 0,
            untold: 0,
            buffers_told: 0,
            chunk,
        }
    }

    /// Tells the others what has changed. `retained_bytes` do not wait for anybody.
    #[inline]
    pub(crate) fn settle(&mut self, memory: &Memory, retained_bytes: u64, buffers_bytes: usize) {
        let (places, retained) = (self.places_bytes.cast_signed(), retained_bytes.cast_signed());
        self.untold += UNSETTLED.replace(0) + places - self.places_told;
        self.untold -= retained - self.retained_told;
        (self.places_told, self.retained_told) = (places, retained);
        if self.untold.abs() >= self.chunk {
            memory.queues.fetch_add(std::mem::take(&mut self.untold), Ordering::Relaxed);
        }
        let buffers = buffers_bytes as i64;
        if (buffers - self.buffers_told).abs() >= self.chunk {
            memory.buffers.fetch_add(buffers - self.buffers_told, Ordering::Relaxed);
            self.buffers_told = buffers;
        }
    }

    /// Bytes that wait in queues, with what this shard has not told yet.
    #[inline]
    pub(crate) fn queues_bytes(&self, memory: &Memory) -> u64 {
        let places = self.places_bytes.cast_signed() - self.places_told;
        let untold = self.untold + UNSETTLED.get() + places;
        (memory.queues.load(Ordering::Relaxed) + untold).max(0).unsigned_abs()
    }
}

/// The same to the byte, for simulations in which one thread runs all shards.
#[cfg(feature = "sim")]
pub(crate) mod exactly {
    use super::{Ledger, Memory, Ordering, UNSETTLED};

    /// What the shards have told, and messages made or ended since.
    pub(crate) fn told(memory: &Memory) -> i64 {
        memory.queues.load(Ordering::Relaxed) + UNSETTLED.get()
    }

    /// What a shard has not told, with `retained_bytes` as [`Ledger::settle`] takes them.
    pub(crate) fn untold(ledger: &Ledger, retained_bytes: u64) -> i64 {
        let places = ledger.places_bytes.cast_signed() - ledger.places_told;
        ledger.untold + places - (retained_bytes.cast_signed() - ledger.retained_told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let limits =
            Limits { queues_bytes_max: 2048, buffers_bytes_max: 2048, ..Limits::default() };
        Memory::new(&limits)
    }

    #[test]
    fn a_message_counts_once_from_its_making_to_its_end_wherever_that_is() {
        let memory = memory();
        let mut ledger = Ledger::new(&memory);
        UNSETTLED.set(0);
        let charge = Charge::new(100);
        ledger.settle(&memory, 0, 0);
        assert_eq!(memory.queues(), 100);
        // It ends on another shard's thread.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut other = Ledger::new(&memory);
                drop(charge);
                other.settle(&memory, 0, 0);
            });
        });
        assert_eq!(memory.queues(), 0);
    }

    #[test]
    fn what_is_made_outside_all_shards_is_not_counted_at_either_end() {
        let memory = memory();
        let charge = std::thread::spawn(|| Charge::new(100)).join().expect("does not panic");
        let mut ledger = Ledger::new(&memory);
        UNSETTLED.set(0);
        drop(charge);
        ledger.settle(&memory, 0, 0);
        assert_eq!((memory.queues(), ledger.queues_bytes(&memory)), (0, 0));
    }

    #[test]
    fn what_is_made_for_the_shards_is_counted_at_both_ends() {
        let memory = memory();
        let charge = counted(&memory, || Charge::new(100));
        assert_eq!(memory.queues(), 100);
        let mut ledger = Ledger::new(&memory);
        drop(charge);
        ledger.settle(&memory, 0, 0);
        assert_eq!(memory.queues(), 0);
    }

    #[test]
    fn places_count_and_retained_messages_do_not() {
        let memory = memory();
        let mut ledger = Ledger::new(&memory);
        UNSETTLED.set(0);
        let _charge = Charge::new(100);
        ledger.places_bytes = 50;
        assert_eq!(ledger.queues_bytes(&memory), 150);
        ledger.settle(&memory, 100, 7);
        assert_eq!((memory.queues(), memory.buffers()), (50, 7));
        ledger.places_bytes = 0;
        ledger.settle(&memory, 0, 0);
        assert_eq!((memory.queues(), memory.buffers()), (100, 0));
    }
}
