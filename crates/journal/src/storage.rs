//! The storage of a journal: a flat directory of files that are written at offsets.
//!
//! [`Files`] is a directory of the file system, `sim::Disk` an in-memory disk with faults.

mod files;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use files::Files;
pub(crate) use files::{DIRECTORY_MODE, FILE_MODE};

/// Attempts for a read that fails.
const READ_TRIES: u32 = 5;

/// A flat directory.
///
/// Created, renamed and removed names are durable only after [`Storage::sync_names`].
pub trait Storage: Send + Sync {
    /// The names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates an empty file; an error if the name exists.
    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;

    /// An existing file, to read and write.
    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;

    /// Creates the directory of a name that has one, as in `directory/name`.
    fn make_room_for(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    /// Renames a file; replaces a file with the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; open handles stay valid.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file a second name in another directory.
    fn link(&self, _name: &str, _directory: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether a file has a second name, and what is written to it would appear there as well.
    fn is_linked(&self, _name: &str) -> bool {
        false
    }

    /// Returns once all current names are on the disk.
    fn sync_names(&self) -> io::Result<()>;
}

/// A file. Reads and writes may be short, as the system's are.
pub trait StorageFile: Send + Sync {
    /// Its size in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Makes it shorter, or longer with zeros.
    fn set_size(&self, bytes: u64) -> io::Result<()>;

    /// Reads at `offset`; 0 at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes at `offset`, which may be beyond the end.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Returns once all written bytes are on the disk. After an error it is unknown which are.
    fn sync(&self) -> io::Result<()>;
}

/// Writes all of `bytes`.
pub(crate) fn write_all_at(
    file: &dyn StorageFile,
    mut offset: u64,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(offset, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                bytes = bytes.get(written..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills `into`, up to the end of the file; returns the number of bytes read.
pub(crate) fn read_full_at(
    file: &dyn StorageFile,
    offset: u64,
    into: &mut [u8],
) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(offset + filled as u64, rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The same; reads may fail temporarily.
pub(crate) fn read_patiently(
    file: &dyn StorageFile,
    offset: u64,
    into: &mut [u8],
) -> io::Result<usize> {
    let mut tries = 1;
    loop {
        match read_full_at(file, offset, into) {
            Err(_) if tries < READ_TRIES => tries += 1,
            result => return result,
        }
    }
}

/// True for the errors of a full disk or quota.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
