//! A directory of the file system.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, linkat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{Storage, StorageFile};
use crate::blocks::BLOCK;

/// Only the owner may read the messages of clients.
pub(crate) const FILE_MODE: u32 = 0o600;
pub(crate) const DIRECTORY_MODE: u32 = 0o700;

/// The files of a directory.
///
/// Their names are looked up in the directory that was opened, wherever its path leads by now: if
/// it was moved away and another one put in its place, no file of that one is touched.
pub struct Files {
    directory: File,
    /// Files are opened to be read only.
    only_read: bool,
}

impl Files {
    /// The files of an existing directory.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { directory: File::open(path)?, only_read: false })
    }

    /// The files of an existing directory, to be read only.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open_to_read(path: &Path) -> io::Result<Self> {
        Ok(Self { only_read: true, ..Self::open(path)? })
    }

    /// The files of a directory that is open already, perhaps to be read only.
    pub(crate) fn within(directory: &File, only_read: bool) -> io::Result<Self> {
        Ok(Self { directory: directory.try_clone()?, only_read })
    }

    /// Opens a file for this kind of access.
    fn open_at(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let mode = Mode::from_raw_mode(FILE_MODE);
        Ok(openat(&self.directory, name, flags | OFlags::CLOEXEC, mode)?.into())
    }

    /// Opens a file for direct writes, where the file system supports them.
    #[cfg(target_os = "linux")]
    fn open_direct(&self, name: &str) -> Option<File> {
        self.open_at(name, OFlags::WRONLY | OFlags::DIRECT).ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn open_direct(&self, _name: &str) -> Option<File> {
        None
    }
}

impl Storage for Files {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let flags = AtFlags::SYMLINK_NOFOLLOW;
                    FileType::from_raw_mode(statat(&self.directory, name, flags)?.st_mode)
                }
                known => known,
            };
            if kind.is_file() {
                names.extend(name.to_str().ok().map(str::to_owned));
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let file = self.open_at(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        Ok(Arc::new(OpenFile { file, direct: self.open_direct(name) }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let flags = if self.only_read { OFlags::RDONLY } else { OFlags::RDWR };
        let file = self.open_at(name, flags)?;
        let direct = if self.only_read { None } else { self.open_direct(name) };
        Ok(Arc::new(OpenFile { file, direct }))
    }

    fn make_room_for(&self, name: &str) -> io::Result<()> {
        let Some(directory) = Path::new(name).parent() else { return Ok(()) };
        let mut above = PathBuf::new();
        for part in directory.components().filter(|part| matches!(part, Component::Normal(_))) {
            above.push(part);
            match mkdirat(&self.directory, &above, Mode::from_raw_mode(DIRECTORY_MODE)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.directory, from, &self.directory, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.directory, name, AtFlags::empty())?)
    }

    fn link(&self, name: &str, directory: &Path) -> io::Result<()> {
        let to = directory.join(name);
        Ok(linkat(&self.directory, name, CWD, to, AtFlags::empty())?)
    }

    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    fn is_linked(&self, name: &str) -> bool {
        // What cannot be known is not used again.
        statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_or_else(|error| error != Errno::NOENT, |stat| stat.st_nlink as u64 > 1)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// Writes of this size bypass the page cache: the copy would cost time, and such data is not read
/// soon.
const DIRECT_BYTES: usize = 64 << 10;

struct OpenFile {
    file: File,
    /// The same file, for large writes.
    direct: Option<File>,
}

impl OpenFile {
    /// The file for a direct write: a large one, of whole blocks in memory and file.
    fn direct(&self, offset: u64, bytes: &[u8]) -> Option<&File> {
        let whole = bytes.len().is_multiple_of(BLOCK) && offset.is_multiple_of(BLOCK as u64);
        let suits = bytes.len() >= DIRECT_BYTES && whole && bytes.as_ptr().align_offset(BLOCK) == 0;
        if suits { self.direct.as_ref() } else { None }
    }
}

impl StorageFile for OpenFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        if let Some(direct) = self.direct(offset, bytes) {
            match direct.write_at(bytes, offset) {
                // This file system has other requirements for direct writes.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                result => return result,
            }
        }
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync also writes the size if it is needed to read the data.
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Blocks;
    use crate::storage::{read_full_at, write_all_at};

    /// Large and small writes, on boundaries and off them, in memory as well: what was written is
    /// read, whichever way each of them went.
    #[test]
    fn the_last_write_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = Files::open(directory.path()).expect("opened");
        let made = files.create("a").expect("made");
        let opened = files.open("a").expect("opened");
        let mut random = fastrand::Rng::with_seed(1);
        let mut expected = vec![0; 1 << 20];
        write_all_at(&*made, 0, &Blocks::zeroed(expected.len())).expect("written");
        for step in 1..200 {
            let blocks = random.usize(1..40);
            let mut bytes = Blocks::zeroed(blocks * BLOCK);
            bytes.fill(step);
            let in_memory = random.usize(..2) * random.usize(..100);
            let bytes = &bytes[in_memory..];
            let shift = if random.bool() { 0 } else { random.usize(..100) };
            let offset = random.usize(..200) * BLOCK + shift;
            let file = if random.bool() { &made } else { &opened };
            write_all_at(&**file, offset as u64, bytes).expect("written");
            expected[offset..offset + bytes.len()].copy_from_slice(bytes);
            if random.u8(..4) == 0 {
                file.sync().expect("synced");
            }
            let mut read = vec![0; 64 << 10];
            let at = random.usize(..expected.len() - read.len());
            let filled = read_full_at(&*opened, at as u64, &mut read).expect("read");
            assert_eq!(filled, read.len());
            assert!(read == expected[at..at + read.len()], "step {step}");
        }
    }

    #[test]
    fn a_directory_put_in_its_place_is_not_touched() {
        let outer = tempfile::tempdir().expect("a directory");
        let (path, away) = (outer.path().join("data"), outer.path().join("away"));
        let make = || std::fs::create_dir(&path).expect("made");
        make();
        let files = Files::open(&path).expect("opened");
        files.create("a").expect("made");
        std::fs::rename(&path, &away).expect("moved");
        make();
        std::fs::write(path.join("a"), "of another").expect("written");
        files.create("b").expect("made");
        files.rename("b", "c").expect("renamed");
        files.make_room_for("below/and/d").expect("made");
        files.create("below/and/d").expect("made");
        assert_eq!(files.open("a").expect("opened").size().expect("a size"), 0);
        files.remove("a").expect("removed");
        assert_eq!(files.list().expect("listed"), ["c"], "a folder is no file");
        let mut names =
            std::fs::read_dir(&path).expect("read").map(|entry| entry.expect("an entry"));
        assert_eq!(names.next().map(|entry| entry.file_name()), Some("a".into()));
        assert!(names.next().is_none());
        assert!(away.join("below/and/d").exists());
    }

    #[test]
    fn only_large_writes_of_whole_blocks_are_not_copied() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a");
        let file = File::create(&path).expect("made");
        let open = OpenFile { direct: Some(file.try_clone().expect("a second one")), file };
        let blocks = Blocks::zeroed(2 * DIRECT_BYTES);
        let is_direct = |offset: usize, bytes: &[u8]| open.direct(offset as u64, bytes).is_some();
        assert!(is_direct(BLOCK, &blocks));
        assert!(is_direct(0, &blocks[BLOCK..]));
        assert!(!is_direct(1, &blocks), "in the middle of a block");
        assert!(!is_direct(0, &blocks[8..]), "in the middle of a block of memory");
        assert!(!is_direct(0, &blocks[..DIRECT_BYTES + 8]), "a part of a block");
        assert!(!is_direct(0, &blocks[..DIRECT_BYTES - BLOCK]), "a small one");
    }
}
