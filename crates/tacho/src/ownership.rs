//! Files that root makes for a broker of another user.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Gid, Mode, OFlags, Uid, chownat, fchown, open};
use rustix::io::Errno;

/// Gives a data directory that root has made, and the files in it, to the user of the directory
/// that it is in: the broker of that user could not open it otherwise.
///
/// # Errors
/// When an owner cannot be read or changed.
pub(crate) fn give_to_user_of_place(made: &Path) -> io::Result<()> {
    let own = fs::metadata(made)?;
    if !rustix::process::geteuid().is_root() || own.uid() != 0 {
        return Ok(());
    }
    // `parent` of a plain name is the empty path.
    let place = fs::canonicalize(made)?;
    let place = fs::metadata(place.parent().unwrap_or(&place))?;
    if place.uid() == 0 {
        return Ok(());
    }
    let owner = Some(Uid::from_raw(place.uid()));
    let group = Some(Gid::from_raw(place.gid()));
    // That user may rename what is in the place: by descriptor it is what was made.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(made, flags, Mode::empty())?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        chownat(&directory, name, owner, group, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    fchown(&directory, owner, group).map_err(|error: Errno| error.into())
}
