//! Files in run directories, which other programs may have put there: opening and reading them
//! never waits, as it would for a FIFO or some devices.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file to read; its size is that at this time.
///
/// # Errors
/// When `path` is anything else, or the system refuses.
pub(crate) fn open(path: &Path) -> io::Result<(File, u64)> {
    // Opening a device can have effects; what was replaced since is seen below.
    require_regular(&fs::metadata(path)?)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let about = file.metadata()?;
    require_regular(&about)?;
    Ok((file, about.len()))
}

/// The first `bytes_max` bytes of a regular file.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.0.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn require_regular(about: &fs::Metadata) -> io::Result<()> {
    match about.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn fifos_devices_and_folders_are_refused_without_waiting() {
        let place = tempfile::tempdir().expect("temporary directory");
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "12345").expect("writes");
        mknodat(CWD, path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("makes");
        symlink(path("fifo"), path("link")).expect("links");
        symlink("/dev/zero", path("zero")).expect("links");
        for odd in ["fifo", "link", "zero", "", "missing"] {
            assert!(open(&path(odd)).is_err(), "{odd}");
            assert!(read(&path(odd), 10).is_err(), "{odd}");
        }
        assert_eq!(open(&path("file")).expect("opens").1, 5);
        assert_eq!(read(&path("file"), 3).expect("reads"), b"123");
    }
}
