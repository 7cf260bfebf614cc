//! Room in queues, as all shards share it: whether any queue is so full that publishers keep their
//! messages, and how shards that hold publishers back learn that there is room again.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// What all shards know of room in queues.
///
/// A shard that holds publishers back says so first and looks afterwards whether room was made; a
/// shard that makes room notes that first and looks afterwards which shards hold publishers back.
/// All of this is in one total order (`SeqCst`), so at least one of the two sees the other.
#[derive(Debug)]
pub(crate) struct Room {
    /// Queues of sessions and shared subscriptions that are full, and refuse messages for that.
    full: AtomicUsize,
    /// How often room was made.
    made: AtomicU64,
    shards: Box<[HoldsPublishers]>,
}

/// Whether a shard holds publishers back until there is room. On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct HoldsPublishers(AtomicBool);

impl Room {
    pub(crate) fn new(shards: usize) -> Self {
        let shards = (0..shards).map(|_| HoldsPublishers::default()).collect();
        Self { full: AtomicUsize::new(0), made: AtomicU64::new(0), shards }
    }

    /// Whether any queue is full.
    #[inline]
    pub(crate) fn is_any_full(&self) -> bool {
        self.full.load(SeqCst) > 0
    }

    /// A queue is full from now on.
    pub(crate) fn queue_filled(&self) {
        self.full.fetch_add(1, SeqCst);
    }

    /// A queue that was full has room, or is gone.
    pub(crate) fn queue_has_room(&self) {
        self.full.fetch_sub(1, SeqCst);
    }

    /// A number that changes whenever room is made.
    #[inline]
    pub(crate) fn made(&self) -> u64 {
        self.made.load(SeqCst)
    }

    /// Notes that room was made. Returns the shards that hold publishers back.
    pub(crate) fn make(&self) -> impl Iterator<Item = usize> {
        self.made.fetch_add(1, SeqCst);
        let all = self.shards.iter().enumerate();
        all.filter(|(_, holds)| holds.0.load(SeqCst)).map(|(shard, _)| shard)
    }

    /// The shard holds publishers back, or no longer.
    pub(crate) fn hold(&self, shard: usize, holds: bool) {
        self.shards[shard].0.store(holds, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn shards_that_hold_publishers_back_are_told_of_room() {
        let room = Room::new(3);
        let before = room.made();
        room.hold(0, true);
        room.hold(2, true);
        assert_eq!(room.make().collect::<Vec<_>>(), [0, 2]);
        assert_ne!(room.made(), before);
        room.hold(0, false);
        assert_eq!(room.make().collect::<Vec<_>>(), [2]);
        room.queue_filled();
        assert!(room.is_any_full());
        room.queue_has_room();
        assert!(!room.is_any_full());
    }
}
