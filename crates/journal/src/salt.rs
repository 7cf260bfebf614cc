//! The salt in all frames of a data directory, kept beside the log.
//!
//! Clients choose the bodies of messages, and a body may contain a whole block: with the salt
//! known, a client could send a body that would be accepted as a frame where the log is damaged. So
//! the salt is random, and recovery must not take it from any block that looks like a frame. The
//! first block of a segment is never inside a body, so its salt is trusted. If it cannot be read,
//! the salt in the file `salt` is used.
//!
//! ```text
//! 0  u32 magic   4  u32 crc of what follows   8  u64 salt   16  u64 the first segment that has it
//! ```

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

use crate::frame::Header;
use crate::id::SegmentId;
use crate::storage::{Storage, read_patiently, write_all_at};

/// The name of its file.
pub(crate) const NAME: &str = "salt";
const NEW_NAME: &str = "salt.new";
const BYTES: usize = 24;
const MAGIC: [u8; 4] = *b"tslt";

/// The salt, and the first segment that uses it: earlier segments have one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt {
    value: u64,
    since: SegmentId,
}

impl Salt {
    /// A salt for the frames from this segment on.
    fn new(since: SegmentId) -> Self {
        Self { value: random(), since }
    }

    /// Reads the salt of the data directory; `None` if there is none or it cannot be read.
    pub(crate) fn read(storage: &dyn Storage) -> Option<Self> {
        let file = storage.open(NAME).ok()?;
        let mut bytes = [0; BYTES];
        let read = read_patiently(&*file, 0, &mut bytes).ok()?;
        if read == BYTES { Self::decode(&bytes) } else { None }
    }

    /// Creates a salt and syncs it before any frame uses it. Without one the log works, but is not
    /// protected against bodies that look like frames.
    pub(crate) fn make(storage: &dyn Storage, since: SegmentId) -> Option<Self> {
        let salt = Self::new(since);
        match salt.write(storage) {
            Ok(()) => Some(salt),
            Err(error) => {
                tracing::warn!(%error, file = NAME, "cannot write the journal's salt");
                None
            }
        }
    }

    fn write(self, storage: &dyn Storage) -> io::Result<()> {
        // Left by an interrupted attempt.
        let _ = storage.remove(NEW_NAME);
        let file = storage.create(NEW_NAME)?;
        write_all_at(&*file, 0, &self.encode())?;
        file.sync()?;
        storage.rename(NEW_NAME, NAME)?;
        storage.sync_names()
    }

    /// The salt of new frames.
    pub(crate) fn for_new_frames(salt: Option<Self>) -> u64 {
        salt.map_or_else(random, |salt| salt.value)
    }

    /// The salt of a segment's frames, if it is known from its first frame or the salt file.
    pub(crate) fn for_segment(
        salt: Option<Self>,
        segment: SegmentId,
        first: Option<Header>,
    ) -> Option<u64> {
        match first.filter(|first| first.segment == segment) {
            Some(first) => Some(first.salt),
            None => salt.filter(|salt| salt.since <= segment).map(|salt| salt.value),
        }
    }

    fn encode(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.value.to_le_bytes());
        bytes[16..].copy_from_slice(&self.since.get().to_le_bytes());
        let crc = crc32fast::hash(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let [m0, m1, m2, m3, crc @ ..] = *bytes.first_chunk::<8>()?;
        let (value, since) = bytes[8..].split_first_chunk::<8>()?;
        if [m0, m1, m2, m3] != MAGIC || u32::from_le_bytes(crc) != crc32fast::hash(&bytes[8..]) {
            return None;
        }
        let since = u64::from_le_bytes(since.try_into().ok()?);
        Some(Self { value: u64::from_le_bytes(*value), since: SegmentId::new(since) })
    }
}

/// A number for the frames of a process, different from those of the processes before it with all
/// likelihood. 0 is that of versions without such numbers.
pub(crate) fn new_owner() -> u16 {
    (random() as u16).max(1)
}

/// The keys of such hashers come from the system's random number generator.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Disk;

    #[test]
    fn it_is_read_as_it_was_made_and_not_when_it_is_damaged() {
        let disk = Disk::new(1);
        assert_eq!(Salt::read(&disk), None);
        let salt = Salt::make(&disk, SegmentId::new(7)).expect("made");
        assert_eq!(Salt::read(&disk), Some(salt));
        let disk = disk.power_cut();
        assert_eq!(Salt::read(&disk), Some(salt), "it is on the disk");
        for bit in 0..8 * BYTES {
            let mut bytes = salt.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Salt::decode(&bytes), None, "bit {bit}");
        }
        let other = Salt::make(&disk, SegmentId::new(8)).expect("made in its place");
        assert_ne!(other.value, salt.value);
        assert_eq!(Salt::read(&disk), Some(other));
    }

    #[test]
    fn a_directory_that_cannot_be_written_has_none() {
        let disk = Disk::new(1);
        disk.set_capacity(Some(0));
        assert_eq!(Salt::make(&disk, SegmentId::new(1)), None);
        disk.set_capacity(None);
        assert!(
            Salt::make(&disk, SegmentId::new(1)).is_some(),
            "the interrupted attempt has no effect"
        );
    }
}
