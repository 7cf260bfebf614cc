//! Where a calibration is kept.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{Calibration, Machine, VERSION};
use tacho_record::output::json;

/// A larger file is none of ours.
const BYTES_MAX: u64 = 1 << 20;

/// A calibration that could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct StoreError {
    path: PathBuf,
    source: io::Error,
}

/// The file: what `TACHO_CALIBRATION` names, else `tacho/calibration.json` in the user's cache. A
/// program that was compiled without optimisation has none unless it is named: its figures are of
/// no use to the others.
pub fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = set("TACHO_CALIBRATION") {
        return Some(path.into());
    }
    if cfg!(debug_assertions) {
        return None;
    }
    let cache = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
    Some(cache?.join("tacho").join("calibration.json"))
}

/// The calibration in the file `path`, if it is of this machine and this program.
pub fn load(path: &Path) -> Option<Calibration> {
    if fs::metadata(path).ok()?.len() > BYTES_MAX {
        return None;
    }
    let calibration: Calibration = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let known = calibration.schema_version == VERSION;
    (known && calibration.machine == Machine::this()).then_some(calibration)
}

/// Checks that a calibration can be kept in the file `path`; leaves no file behind.
///
/// # Errors
/// When it cannot be written.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let is_there = path.exists();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::options().append(true).create(true).open(path)?;
    if !is_there {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Keeps a calibration in the file `path`, whose folder is made if need be.
///
/// # Errors
/// When it cannot be written.
pub fn store(path: &Path, calibration: &Calibration) -> Result<(), StoreError> {
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, json(calibration))
    };
    write().map_err(|source| StoreError { path: path.to_owned(), source })
}
