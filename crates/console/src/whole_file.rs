//! Files that are written in one step: a reader sees the old content or the new one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file beside its place, and moves it there.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    replace(path, text, File::sync_all)
}

/// The same for a file that is of no use after a crash.
pub(crate) fn write_whole_unsynced(path: &Path, text: &[u8]) -> io::Result<()> {
    replace(path, text, |_| Ok(()))
}

fn replace(path: &Path, text: &[u8], sync: fn(&File) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let mut file = File::create(&beside)?;
    file.write_all(text)?;
    sync(&file)?;
    fs::rename(&beside, path)
}
