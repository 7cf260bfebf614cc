//! A disk that counts its operations, and stops or fails at a chosen one.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tacho_journal::sim::{Disk, Faults};
use tacho_journal::storage::{Storage, StorageFile};

/// What happens to an operation that changes the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    /// This operation and all later ones never happen: the machine is off.
    Dies,
    /// This operation and the given number of later ones fail; then the disk recovers.
    Fails(u64),
    /// The disk is full from this operation on, for the given number of operations.
    Full(u64),
}

#[derive(Debug)]
struct Traps {
    done: AtomicU64,
    trap: Mutex<Option<(u64, Trap)>>,
}

/// Outcome of the next operation.
enum Now {
    Works,
    Dies,
    Fails,
    Full,
}

/// The disk; clones share its state.
#[derive(Clone)]
pub(crate) struct Trapped {
    pub(crate) disk: Disk,
    traps: Arc<Traps>,
}

impl Trapped {
    pub(crate) fn new(disk: Disk, trap: Option<(u64, Trap)>) -> Self {
        let traps = Traps { done: AtomicU64::new(0), trap: Mutex::new(trap) };
        Self { disk, traps: Arc::new(traps) }
    }

    /// Operations so far, failed ones included.
    pub(crate) fn done(&self) -> u64 {
        self.traps.done.load(Ordering::Relaxed)
    }

    /// The machine is off.
    pub(crate) fn is_dead(&self) -> bool {
        let trap = *self.traps.trap.lock().unwrap();
        matches!(trap, Some((at, Trap::Dies)) if self.done() > at)
    }

    fn next(&self) -> Now {
        let number = self.traps.done.fetch_add(1, Ordering::Relaxed);
        let trap = *self.traps.trap.lock().unwrap();
        match trap {
            Some((at, Trap::Dies)) if number >= at => Now::Dies,
            Some((at, Trap::Fails(more))) if (at..=at + more).contains(&number) => Now::Fails,
            Some((at, Trap::Full(more))) if (at..=at + more).contains(&number) => Now::Full,
            _ => Now::Works,
        }
    }

    fn run<T>(&self, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.next() {
            Now::Works => operation(),
            Now::Dies => Err(io::Error::other("the machine is off")),
            Now::Fails => {
                self.disk.set_faults(Faults {
                    write_error: 1.0,
                    sync_error: 1.0,
                    name_error: 1.0,
                    ..Faults::default()
                });
                let result = operation();
                self.disk.set_faults(Faults::default());
                result
            }
            Now::Full => {
                self.disk.set_capacity(Some(self.disk.used_bytes()));
                let result = operation();
                self.disk.set_capacity(None);
                result
            }
        }
    }

    fn wrap(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(TrappedFile { all: self.clone(), file })
    }
}

impl Storage for Trapped {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.run(|| self.disk.create(name)).map(|file| self.wrap(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.disk.open(name).map(|file| self.wrap(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.run(|| self.disk.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.run(|| self.disk.remove(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.run(|| self.disk.sync_names())
    }
}

struct TrappedFile {
    all: Trapped,
    file: Arc<dyn StorageFile>,
}

impl StorageFile for TrappedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.all.run(|| self.file.set_size(bytes))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.all.run(|| self.file.write_at(offset, bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.all.run(|| self.file.sync())
    }
}
