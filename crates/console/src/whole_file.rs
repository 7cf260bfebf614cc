//! Files that are written in one step: a reader sees the old content or the new one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file beside its place, and moves it there.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let mut file = File::create(&beside)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}
