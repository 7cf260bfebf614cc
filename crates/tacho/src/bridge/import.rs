//! `tacho bridge import`: bridges of an `emqx.conf` as ours.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use tacho_broker::{ImportKind, ImportedBridges, import_emqx_bridges};

use super::ImportArguments;
use crate::exit::{self, Failure};

/// Bytes of a file that is read: far more than any has.
const FILE_BYTES_MAX: u64 = 4 << 20;

pub(super) fn import(arguments: &ImportArguments) -> Result<u8, Failure> {
    let ImportArguments { file, out } = arguments;
    let shown = file.display();
    let invalid = |why: String| Failure::new(exit::INVALID_CONFIG, format!("{shown}: {why}"));
    let text = read(file).map_err(|error| invalid(error.to_string()))?;
    let imported = import_emqx_bridges(&text).map_err(invalid)?;
    for note in &imported.notes {
        eprintln!("{shown}: {note}");
    }
    let ImportedBridges { toml, count, notes } = imported;
    if count == 0 {
        return Err(invalid("none of its bridges can be translated".to_owned()));
    }
    match out {
        None => print!("{}", toml.trim_start()),
        Some(path) => write(path, toml.trim_start())?,
    }
    let is_whole = notes.iter().all(|note| note.kind == ImportKind::Differs);
    eprintln!(
        "{count} {} translated{}",
        if count == 1 { "bridge" } else { "bridges" },
        if is_whole { "" } else { "; read what has no counterpart or is malformed" }
    );
    Ok(if is_whole { exit::OK } else { exit::THRESHOLD })
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn write(path: &Path, toml: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(toml.as_bytes())).map_err(|error| {
        let sentence = format!("{} cannot be written: {error}", path.display());
        Failure::new(exit::INVALID_CONFIG, sentence)
    })
}
