//! A directory of the file system.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Storage, StorageFile};

/// Only the owner may read what clients sent.
pub(crate) const FILE_MODE: u32 = 0o600;
pub(crate) const DIRECTORY_MODE: u32 = 0o700;

/// The files of a directory.
pub struct Files {
    path: PathBuf,
    /// The directory itself, open: its names are synced through it.
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
        Ok(Self { path: path.to_owned(), directory: File::open(path)?, only_read: false })
    }

    /// The files of an existing directory, to be read only.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open_to_read(path: &Path) -> io::Result<Self> {
        Ok(Self { only_read: true, ..Self::open(path)? })
    }
}

impl Storage for Files {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.extend(entry.file_name().into_string());
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        Ok(Arc::new(OpenFile(options.open(self.path.join(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let file = File::options().read(true).write(!self.only_read).open(self.path.join(name))?;
        Ok(Arc::new(OpenFile(file)))
    }

    fn make_room_for(&self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        let Some(directory) = path.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

struct OpenFile(File);

impl StorageFile for OpenFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: the size goes along when it is needed to read the data.
        self.0.sync_data()
    }
}
