//! The files of a disk, and which of their names would survive a power cut.

use std::collections::BTreeMap;
use std::io;

use fastrand::Rng;

use super::inode::Inode;
use super::{Counts, Faults};

/// Names of files, and the files.
type Names = BTreeMap<String, usize>;

pub(super) struct DiskState {
    pub(super) faults: Faults,
    pub(super) capacity: Option<u64>,
    pub(super) counts: Counts,
    /// Grows with each power cut and kill.
    pub(super) life: u64,
    rng: Rng,
    /// Files, those without a name too.
    inodes: Vec<Inode>,
    seen: Names,
    durable: Names,
    /// What was done to names since they were last synced, in order.
    unsynced: Vec<NameChange>,
}

enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl DiskState {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            faults: Faults::default(),
            capacity: None,
            counts: Counts::default(),
            life: 0,
            rng: Rng::with_seed(seed),
            inodes: Vec::new(),
            seen: Names::new(),
            durable: Names::new(),
            unsynced: Vec::new(),
        }
    }

    pub(super) fn copy(&self, seed: u64) -> Self {
        let mut copy = Self::new(seed);
        for (name, inode) in &self.seen {
            copy.put(name, self.inodes[*inode].seen.clone());
        }
        copy
    }

    pub(super) fn power_cut(&mut self) {
        self.life += 1;
        let changes = std::mem::take(&mut self.unsynced);
        let reached = self.rng.usize(..=changes.len());
        let ordered = self.rng.bool();
        for (index, change) in changes.into_iter().enumerate() {
            if if ordered { index < reached } else { self.rng.bool() } {
                change.apply(&mut self.durable);
            }
        }
        self.seen = self.durable.clone();
        for inode in &mut self.inodes {
            inode.power_cut(&mut self.rng);
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.seen.keys().cloned().collect()
    }

    pub(super) fn find(&self, name: &str) -> io::Result<usize> {
        self.seen.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, name: &str) -> io::Result<usize> {
        self.fail(self.faults.name_error)?;
        if self.seen.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.capacity.is_some_and(|capacity| self.used() >= capacity) {
            return Err(self.full());
        }
        let inode = self.inodes.len();
        self.inodes.push(Inode::default());
        self.change(NameChange::Create(name.to_owned(), inode));
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.fail(self.faults.name_error)?;
        self.find(from)?;
        self.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.fail(self.faults.name_error)?;
        self.find(name)?;
        self.change(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    pub(super) fn sync_names(&mut self) -> io::Result<()> {
        // A file system that cannot write its metadata stops permanently, so after an error the
        // next success syncs all names.
        self.fail(self.faults.name_error)?;
        for change in std::mem::take(&mut self.unsynced) {
            change.apply(&mut self.durable);
        }
        Ok(())
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.seen);
        self.unsynced.push(change);
    }

    pub(super) fn size(&self, inode: usize) -> u64 {
        self.inodes[inode].seen.len() as u64
    }

    pub(super) fn set_size(&mut self, inode: usize, bytes: u64) -> io::Result<()> {
        self.fail(self.faults.write_error)?;
        self.inodes[inode].set_size(bytes as usize);
        Ok(())
    }

    pub(super) fn read(&mut self, inode: usize, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.fail(self.faults.read_error)?;
        let wanted = self.shorten(into.len());
        let from = self.inodes[inode].seen.get(at as usize..).unwrap_or_default();
        let read = wanted.min(from.len());
        into[..read].copy_from_slice(&from[..read]);
        Ok(read)
    }

    pub(super) fn write(&mut self, inode: usize, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.counts.writes += 1;
        if self.rng.f64() < self.faults.write_error {
            let part = self.rng.usize(..=bytes.len());
            let part = self.room(inode, at as usize, part);
            self.inodes[inode].write(at as usize, &bytes[..part]);
            self.counts.faults += 1;
            return Err(io::Error::other("a simulated error"));
        }
        let wanted = self.shorten(bytes.len());
        let len = self.room(inode, at as usize, wanted);
        if len == 0 && !bytes.is_empty() {
            return Err(self.full());
        }
        self.inodes[inode].write(at as usize, &bytes[..len]);
        self.counts.written_bytes += len as u64;
        Ok(len)
    }

    pub(super) fn sync(&mut self, inode: usize) -> io::Result<()> {
        self.counts.syncs += 1;
        let result = self.fail(self.faults.sync_error);
        match result {
            Ok(()) => self.inodes[inode].sync(),
            Err(_) => self.inodes[inode].fail_sync(&mut self.rng),
        }
        result
    }

    pub(super) fn used(&self) -> u64 {
        self.seen.values().map(|inode| self.size(*inode)).sum()
    }

    pub(super) fn damage(&mut self, name: &str, offset: usize, bytes: usize) {
        let inode = self.find(name).expect("the file to damage exists");
        self.inodes[inode].damage(offset, bytes, &mut self.rng);
    }

    pub(super) fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.find(name).ok().map(|inode| self.inodes[inode].seen.clone())
    }

    pub(super) fn put(&mut self, name: &str, content: Vec<u8>) {
        let inode = self.inodes.len();
        self.inodes.push(Inode::durable(content));
        for names in [&mut self.seen, &mut self.durable] {
            names.insert(name.to_owned(), inode);
        }
    }

    /// How much of a write at `at` fits on the disk: blocks that the file has are its own.
    fn room(&self, inode: usize, at: usize, len: usize) -> usize {
        let Some(capacity) = self.capacity else { return len };
        let size = self.size(inode);
        let free = capacity.saturating_sub(self.used());
        let end = (at + len) as u64;
        len.saturating_sub(end.saturating_sub(size + free) as usize)
    }

    fn shorten(&mut self, len: usize) -> usize {
        if len > 1 && self.rng.f64() < self.faults.short { self.rng.usize(1..len) } else { len }
    }

    fn fail(&mut self, probability: f64) -> io::Result<()> {
        if self.rng.f64() >= probability {
            return Ok(());
        }
        self.counts.faults += 1;
        Err(io::Error::other("a simulated error"))
    }

    fn full(&mut self) -> io::Error {
        self.counts.full += 1;
        io::ErrorKind::StorageFull.into()
    }
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Rename(from, to) => {
                // Without the change that made it, there is nothing to rename.
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}
