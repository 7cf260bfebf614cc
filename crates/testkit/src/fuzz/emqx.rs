//! An `emqx.conf` with any content: its bridges are translated to what the broker reads, with notes
//! about lines of the file, or refused with a message.

use tacho_broker::{RawConfig, import_emqx_bridges};

/// The input is the text of the file.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let imported = match import_emqx_bridges(text) {
        Ok(imported) => imported,
        Err(message) => return assert!(!message.trim().is_empty()),
    };
    let raw: RawConfig = toml::from_str(&imported.toml).expect(&imported.toml);
    let config = raw.resolve().expect(&imported.toml);
    assert_eq!(config.bridges.len(), imported.count);
    let lines = text.lines().count();
    for note in &imported.notes {
        assert!((1..=lines).contains(&note.line) && !note.text.trim().is_empty(), "{note}");
    }
}
