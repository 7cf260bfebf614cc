//! An in-memory disk for tests, with weaker guarantees than file systems give.
//!
//! Unsynced data may survive a power cut, or not, or in part: writes are torn at multiples of 512
//! bytes and reach the disk in any order; created, renamed or removed names may be as before.
//! Faults of every kind occur with the probabilities of [`Faults`]. A seed determines everything.

mod disk;
mod inode;

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;

use crate::storage::{Storage, StorageFile};
use disk::DiskState;

/// Probabilities, 0 to 1, of the faults of each operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// A write fails, perhaps after a part of it.
    pub write_error: f64,
    /// A write or a read is shorter than asked.
    pub short: f64,
    /// A sync fails; the disk forgets some of what was not synced, and later syncs do not say so.
    pub sync_error: f64,
    /// A read fails.
    pub read_error: f64,
    /// Making, renaming or removing a file fails, or syncing the names.
    pub name_error: f64,
}

impl Faults {
    /// Of each kind but reads that fail either none, or with a probability of up to `most`.
    #[must_use]
    pub fn drawn(rng: &mut Rng, most: f64) -> Self {
        let mut probability = || if rng.bool() { 0.0 } else { rng.f64() * most };
        Self {
            write_error: probability(),
            short: probability(),
            sync_error: probability(),
            name_error: probability(),
            read_error: 0.0,
        }
    }
}

/// The seeds of a test of random runs: `count` of them, or as many as `TACHO_JOURNAL_SEEDS` says,
/// or the one that `TACHO_JOURNAL_SEED` says.
///
/// # Panics
///
/// If one of these is no number.
#[must_use]
pub fn seeds(count: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    match number("TACHO_JOURNAL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TACHO_JOURNAL_SEEDS").unwrap_or(count),
    }
}

/// What was done to a disk, and what went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Writes.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Operations that failed because of [`Faults`].
    pub faults: u64,
    /// Operations that failed because the disk was full.
    pub full: u64,
}

/// The disk. Clones are the same disk: a test keeps one to inject faults while a journal uses the
/// other.
#[derive(Clone)]
pub struct Disk {
    state: Arc<Mutex<DiskState>>,
    /// Handles from before the last power cut or kill are invalid.
    life: u64,
}

impl Disk {
    /// An empty disk. The same seed and the same operations give the same faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(DiskState::new(seed))), life: 0 }
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Limits the total size of all files; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    /// The total size of all files.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock().used()
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// The power goes, and comes back: what was not synced may be lost in part. The disk as it is
    /// then; what was opened on `self` fails from now on.
    #[must_use]
    pub fn power_cut(&self) -> Self {
        let mut state = self.lock();
        state.power_cut();
        Self { state: Arc::clone(&self.state), life: state.life }
    }

    /// The process dies: everything that was written is there. What was opened on `self` fails.
    #[must_use]
    pub fn kill(&self) -> Self {
        let mut state = self.lock();
        state.life += 1;
        Self { state: Arc::clone(&self.state), life: state.life }
    }

    /// A disk with the same content, and nothing that is not synced.
    #[must_use]
    pub fn copy(&self, seed: u64) -> Self {
        let state = self.lock().copy(seed);
        Self { state: Arc::new(Mutex::new(state)), life: 0 }
    }

    /// Changes bytes of a file, on the disk too, as a bad sector does.
    ///
    /// # Panics
    ///
    /// If there is no such file.
    pub fn damage(&self, name: &str, offset: usize, bytes: usize) {
        self.lock().damage(name, offset, bytes);
    }

    /// The content of a file.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.lock().content(name)
    }

    /// Replaces or makes a file, on the disk too.
    pub fn put(&self, name: &str, content: Vec<u8>) {
        self.lock().put(name, content);
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if this is still the life in which it was opened.
    fn alive(&self) -> io::Result<MutexGuard<'_, DiskState>> {
        let state = self.lock();
        if state.life == self.life { Ok(state) } else { Err(io::Error::other("a former life")) }
    }

    fn file(&self, inode: usize) -> Arc<dyn StorageFile> {
        Arc::new(SimFile { disk: self.clone(), inode })
    }
}

impl Storage for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.alive()?.names())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let inode = self.alive()?.create(name)?;
        Ok(self.file(inode))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let inode = self.alive()?.find(name)?;
        Ok(self.file(inode))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.alive()?.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.alive()?.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.alive()?.sync_names()
    }
}

struct SimFile {
    disk: Disk,
    inode: usize,
}

impl StorageFile for SimFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.alive()?.size(self.inode))
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.disk.alive()?.set_size(self.inode, bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.disk.alive()?.read(self.inode, offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.disk.alive()?.write(self.inode, offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.alive()?.sync(self.inode)
    }
}

#[cfg(test)]
mod tests;
