//! The allocator of the program, and what it is told.
//!
//! mimalloc gives pages of its own (64 KiB and more) that are free as a whole back to the system
//! after a second (`purge_delay`), so that they are not given back and fetched again at once. But
//! it does so only in passing, when a thread takes or frees another large page. A broker from which
//! thousands of clients have just gone with their buffers may do neither for hours, and all of that
//! memory would stay resident. So a thread takes and frees one such page every second. It touches
//! none of its bytes, and the system calls that give memory back are made there and not by a shard.

use std::hint::black_box;
use std::io;
use std::thread;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// More than the largest block that shares a page with others (512 KiB).
const PAGE_BYTES: usize = 1 << 20;

/// As long as mimalloc waits before it gives memory back.
const INTERVAL: Duration = Duration::from_secs(1);

/// Lets this program, and those that it starts, have no transparent huge pages. The system clears
/// one, of 2 MiB, when a shard first writes to it, within its turn: 0.2 ms, or 5 ms where a virtual
/// machine first has to get the memory from its host. A small page takes 3 us.
pub(crate) fn refuse_huge_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::warn!("transparent huge pages stay on: {error}");
    }
}

/// Has free memory given back to the system in time, for as long as the program runs.
pub(crate) fn give_memory_back() -> io::Result<()> {
    let give = || {
        loop {
            thread::sleep(INTERVAL);
            drop(black_box(Vec::<u8>::with_capacity(PAGE_BYTES)));
        }
    };
    thread::Builder::new().name("memory".to_owned()).spawn(give).map(drop)
}
