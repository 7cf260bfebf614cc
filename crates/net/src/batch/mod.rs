//! Writes to many sockets with one system call.
//!
//! A fan-out writes a few bytes to each of many sockets. With io_uring the kernel takes a list of
//! such writes at once, instead of being entered for each of them: a broker's CPU time per delivery
//! falls by 4 to 6 % (bench/runs/2026-11-27-io-uring). It needs Linux 6.1, and many containers
//! forbid it; the loop writes to one socket after the other then.
//!
//! Reads are not batched: a turn has few of them, and no gain was measured.

#[cfg(target_os = "linux")]
mod ring;
#[cfg(not(target_os = "linux"))]
mod without;

use std::io;

use crate::conn::ConnId;
#[cfg(target_os = "linux")]
pub(crate) use ring::WriteBatch;
#[cfg(not(target_os = "linux"))]
pub(crate) use without::WriteBatch;

/// Writes in one batch at most: about 0.4 ms of work, so that a turn keeps its bound.
pub(crate) const BATCH_LEN_MAX: usize = 64;

/// The end of one write.
pub(crate) struct BatchWrite {
    pub(crate) id: ConnId,
    pub(crate) buffer: Vec<u8>,
    /// Bytes of the buffer that the kernel has accepted.
    pub(crate) result: io::Result<usize>,
    #[cfg(target_os = "linux")]
    is_complete: bool,
}

/// Whether loops can write in batches here ([`LoopConfig::batch_writes`]).
///
/// # Errors
/// The system has no io_uring, an old one, or forbids it.
///
/// [`LoopConfig::batch_writes`]: crate::LoopConfig::batch_writes
pub fn probe_batch_writes() -> io::Result<()> {
    WriteBatch::new().map(drop)
}
