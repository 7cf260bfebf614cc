//! Accounts for the memory of messages and buffers in the whole broker without contention.
//!
//! A message counts once, however many sessions queue it: from its creation to the drop of its last
//! reference, in a thread-local counter. Once per turn each shard adds this counter, and the
//! changes of its queues and buffers, to the sums that all shards share.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use tacho_net::memory_bytes;

use crate::config::Limits;

/// Overhead of a message beside topic, properties and payload.
pub(crate) const MESSAGE_BYTES: usize = 160;

thread_local! {
    /// Bytes of messages created on this thread minus bytes of messages dropped on it.
    static UNSETTLED: Cell<i64> = const { Cell::new(0) };
    /// Whether a shard on this thread settles the counter.
    static SETTLES: Cell<bool> = const { Cell::new(false) };
}

/// Accounts for the bytes of one message until it is dropped. Messages created outside shards do
/// not count.
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

/// Counts messages that are created before the shards run and owned by shards afterwards.
pub(crate) fn counted<T>(memory: &Memory, make: impl FnOnce() -> T) -> T {
    let (settles, unsettled) = (SETTLES.replace(true), UNSETTLED.replace(0));
    let made = make();
    memory.queues.fetch_add(UNSETTLED.replace(unsettled), Ordering::Relaxed);
    SETTLES.set(settles);
    made
}

/// The totals of all shards. Aligned to its own cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Memory {
    /// Messages that are not retained, and their queue entries.
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

    /// Queued bytes, as of the last settlements of the shards.
    #[inline]
    pub(crate) fn queues(&self) -> u64 {
        self.queues.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Bytes in the buffers of connections.
    #[inline]
    pub(crate) fn buffers(&self) -> u64 {
        self.buffers.load(Ordering::Relaxed).max(0).unsigned_abs()
    }
}

/// Used where the system does not report its memory.
const QUARTER_UNKNOWN: u64 = 1 << 30;

/// What a shard holds beside messages, as its owners count it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldBytes {
    /// Entries in the queues and windows of its sessions.
    pub(crate) places: u64,
    /// Retained messages: they are not queued, so they do not count.
    pub(crate) retained: u64,
}

/// The account of one shard: what it has not settled yet.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Bytes of entries in the queues and windows of its sessions and of retained messages, as of
    /// the last settlement.
    places_told: i64,
    retained_told: i64,
    /// Change that is too small to be added to the totals yet.
    untold: i64,
    buffers_told: i64,
    /// Changes below this are held back, so that the totals are not written in every turn.
    chunk: i64,
}

impl Ledger {
    /// To be called on the thread of the shard.
    pub(crate) fn new(memory: &Memory) -> Self {
        SETTLES.set(true);
        // In simulations an earlier broker ran on this thread.
        UNSETTLED.set(0);
        let least = memory.queues_max.min(memory.buffers_max) / 1024;
        let chunk = least.clamp(1, 16 * 1024).cast_signed();
        Self { places_told: 0, retained_told: 0, untold: 0, buffers_told: 0, chunk }
    }

    /// Adds what has changed to the totals. True if the budget of queued messages was used up and
    /// has room now.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        memory: &Memory,
        held: HeldBytes,
        buffers_bytes: usize,
    ) -> bool {
        let (places, retained) = (held.places.cast_signed(), held.retained.cast_signed());
        self.untold += UNSETTLED.replace(0) + places - self.places_told;
        self.untold -= retained - self.retained_told;
        (self.places_told, self.retained_told) = (places, retained);
        let mut makes_room = false;
        if self.untold.abs() >= self.chunk {
            let told = std::mem::take(&mut self.untold);
            let before = memory.queues.fetch_add(told, Ordering::SeqCst);
            let is_full = |queues: i64| queues.max(0).unsigned_abs() >= memory.queues_max;
            makes_room = is_full(before) && !is_full(before + told);
        }
        self.settle_buffers(memory, buffers_bytes);
        makes_room
    }

    /// Adds what has changed of the buffers.
    #[inline]
    pub(crate) fn settle_buffers(&mut self, memory: &Memory, buffers_bytes: usize) {
        let buffers = buffers_bytes as i64;
        if (buffers - self.buffers_told).abs() >= self.chunk {
            memory.buffers.fetch_add(buffers - self.buffers_told, Ordering::Relaxed);
            self.buffers_told = buffers;
        }
    }

    /// Queued bytes, including what this shard has not settled yet.
    #[inline]
    pub(crate) fn queues_bytes(&self, memory: &Memory, places_bytes: u64) -> u64 {
        let places = places_bytes.cast_signed() - self.places_told;
        let untold = self.untold + UNSETTLED.get() + places;
        (memory.queues.load(Ordering::Relaxed) + untold).max(0).unsigned_abs()
    }
}

/// Exact totals, for simulations in which one thread runs all shards.
#[cfg(feature = "sim")]
pub(crate) mod exactly {
    use super::{HeldBytes, Ledger, Memory, Ordering, UNSETTLED};

    /// The settled total, and messages created or dropped since.
    pub(crate) fn told(memory: &Memory) -> i64 {
        memory.queues.load(Ordering::Relaxed) + UNSETTLED.get()
    }

    /// What a shard that holds this has not settled.
    pub(crate) fn untold(ledger: &Ledger, held: HeldBytes) -> i64 {
        let places = held.places.cast_signed() - ledger.places_told;
        ledger.untold + places - (held.retained.cast_signed() - ledger.retained_told)
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
    fn message_counts_once_until_its_last_reference_is_dropped_on_any_thread() {
        let memory = memory();
        let mut ledger = Ledger::new(&memory);
        UNSETTLED.set(0);
        let charge = Charge::new(100);
        assert!(!ledger.settle(&memory, HeldBytes::default(), 0));
        assert_eq!(memory.queues(), 100);
        // It is dropped on the thread of another shard.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut other = Ledger::new(&memory);
                drop(charge);
                other.settle(&memory, HeldBytes::default(), 0);
            });
        });
        assert_eq!(memory.queues(), 0);
    }

    #[test]
    fn the_settlement_that_brings_the_total_below_the_budget_makes_room() {
        let memory = memory();
        let mut ledger = Ledger::new(&memory);
        UNSETTLED.set(0);
        let mut settle = |places| {
            let held = HeldBytes { places, retained: 0 };
            ledger.settle(&memory, held, 0)
        };
        let rooms = [2_000, 3_000, 2_048, 2_000, 100, 2_100, 0].map(&mut settle);
        assert_eq!(rooms, [false, false, false, true, false, false, true]);
    }

    #[test]
    fn messages_created_outside_shards_never_count() {
        let memory = memory();
        let charge = std::thread::spawn(|| Charge::new(100)).join().expect("does not panic");
        let mut ledger = Ledger::new(&memory);
        UNSETTLED.set(0);
        drop(charge);
        ledger.settle(&memory, HeldBytes::default(), 0);
        assert_eq!((memory.queues(), ledger.queues_bytes(&memory, 0)), (0, 0));
    }

    #[test]
    fn messages_created_for_the_shards_count_until_dropped() {
        let memory = memory();
        let charge = counted(&memory, || Charge::new(100));
        assert_eq!(memory.queues(), 100);
        let mut ledger = Ledger::new(&memory);
        drop(charge);
        ledger.settle(&memory, HeldBytes::default(), 0);
        assert_eq!(memory.queues(), 0);
    }

    #[test]
    fn queue_entries_count_and_retained_messages_do_not() {
        let memory = memory();
        let mut ledger = Ledger::new(&memory);
        UNSETTLED.set(0);
        let _charge = Charge::new(100);
        assert_eq!(ledger.queues_bytes(&memory, 50), 150);
        ledger.settle(&memory, HeldBytes { places: 50, retained: 100 }, 7);
        assert_eq!((memory.queues(), memory.buffers()), (50, 7));
        ledger.settle(&memory, HeldBytes::default(), 0);
        assert_eq!((memory.queues(), memory.buffers()), (100, 0));
    }
}
