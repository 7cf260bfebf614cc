//! A file: its visible content, and the part that would survive a power cut.

use fastrand::Rng;

/// Disks write this much as a whole, or not.
const SECTOR: usize = 512;

/// A file.
#[derive(Default)]
pub(super) struct Inode {
    /// What reads show.
    pub(super) seen: Vec<u8>,
    /// What is on the disk for certain.
    durable: Vec<u8>,
    /// What was done since the last sync, in order.
    unsynced: Vec<ContentChange>,
}

enum ContentChange {
    Write { offset: usize, bytes: Vec<u8> },
    Size(usize),
}

impl Inode {
    /// A file with this content, on the disk.
    pub(super) fn durable(content: Vec<u8>) -> Self {
        Self { seen: content.clone(), durable: content, unsynced: Vec::new() }
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        put(&mut self.seen, offset, bytes);
        self.unsynced.push(ContentChange::Write { offset, bytes: bytes.to_vec() });
    }

    pub(super) fn set_size(&mut self, bytes: usize) {
        self.seen.resize(bytes, 0);
        self.unsynced.push(ContentChange::Size(bytes));
    }

    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                ContentChange::Write { offset, bytes } => put(&mut self.durable, offset, &bytes),
                ContentChange::Size(bytes) => self.durable.resize(bytes, 0),
            }
        }
    }

    /// Some of what was not synced reaches the disk; the rest is forgotten, but still seen.
    pub(super) fn fail_sync(&mut self, rng: &mut Rng) {
        let changes = std::mem::take(&mut self.unsynced);
        self.apply_some(changes, rng);
    }

    /// Some of what was not synced is on the disk; all the rest is gone.
    pub(super) fn power_cut(&mut self, rng: &mut Rng) {
        let changes = std::mem::take(&mut self.unsynced);
        self.apply_some(changes, rng);
        self.seen.clone_from(&self.durable);
    }

    /// The disk writes in any order, so any of the changes may be the last to arrive.
    fn apply_some(&mut self, changes: Vec<ContentChange>, rng: &mut Rng) {
        let mood = rng.u8(..4);
        let count = changes.len();
        let reached = rng.usize(..=count);
        for (index, change) in changes.into_iter().enumerate() {
            let whole = match mood {
                // Nothing arrives, or everything before some instant.
                0 => index < reached,
                1 => false,
                // Any of them.
                _ => rng.bool(),
            };
            match change {
                ContentChange::Size(bytes) if whole => self.durable.resize(bytes, 0),
                ContentChange::Size(_) => {}
                ContentChange::Write { offset, bytes } if whole => {
                    put(&mut self.durable, offset, &bytes)
                }
                // Torn: the one at that instant, or any of them.
                ContentChange::Write { offset, bytes } if index == reached || mood == 3 => {
                    self.tear(offset, &bytes, rng);
                }
                ContentChange::Write { .. } => {}
            }
        }
    }

    /// Writes a beginning of `bytes`, or any sectors of them.
    fn tear(&mut self, offset: usize, bytes: &[u8], rng: &mut Rng) {
        let any = rng.bool();
        let sectors = bytes.len().div_ceil(SECTOR);
        let whole = rng.usize(..=sectors);
        let mut at = 0;
        for sector in 0..sectors {
            // Sectors lie at multiples of their size in the file.
            let end = (at + SECTOR - (offset + at) % SECTOR).min(bytes.len());
            if if any { rng.bool() } else { sector < whole } {
                put(&mut self.durable, offset + at, &bytes[at..end]);
            }
            at = end;
        }
    }

    /// Changes bytes, on the disk too.
    pub(super) fn damage(&mut self, offset: usize, bytes: usize, rng: &mut Rng) {
        for at in offset..offset + bytes {
            let change = rng.u8(1..);
            for content in [&mut self.seen, &mut self.durable] {
                if let Some(byte) = content.get_mut(at) {
                    *byte ^= change;
                }
            }
        }
    }
}

/// Writes, beyond the end too.
fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}
