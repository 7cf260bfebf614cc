//! The data directory itself.

use std::os::unix::fs::PermissionsExt as _;

use crate::process::Process;

/// Exit code for a configuration that cannot be used.
const INVALID_CONFIG: i32 = 104;

#[test]
fn the_broker_says_where_sessions_live() {
    let broker = Process::with(&[]);
    assert!(broker.line.contains("sessions live in memory only"), "{}", broker.line);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("made/by/it");
    let broker = Process::on(&data, &["--durability", "written"]);
    let (line, name) = (&broker.line, data.display().to_string());
    assert!(line.contains(&name) && line.contains("persistent sessions written"), "{line}");
    let mode = std::fs::metadata(&data).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "accessible to other users: {mode:o}");
}

#[test]
fn a_second_broker_on_a_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let first = Process::on(directory.path(), &[]);
    let data = directory.path().to_str().unwrap();
    let (status, said) = Process::refused(&["--data-dir", data]);
    assert_eq!(status.code(), Some(INVALID_CONFIG), "{said}");
    assert!(said.contains(data) && said.contains("in use"), "{said}");
    first.kill();
    Process::on(directory.path(), &[]).stop();
}

#[test]
fn levels_need_a_data_directory() {
    let (status, said) = Process::refused(&["--durability", "fsynced"]);
    assert_eq!(status.code(), Some(INVALID_CONFIG), "{said}");
    assert!(said.contains("--data-dir"), "{said}");
    let (status, said) = Process::refused(&["--data-dir", "/proc/none"]);
    assert_eq!(status.code(), Some(INVALID_CONFIG), "{said}");
    assert!(said.contains("/proc/none"), "{said}");
    // This key without a data directory would suggest that sessions are kept.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broker.toml");
    std::fs::write(&file, "[durability]\npersistent_level = 'fsynced'\n").unwrap();
    let file = file.to_str().unwrap();
    let (status, said) = Process::refused(&["--config", file, "--check-config"]);
    assert!(status.success() && said.contains("[durability] has no effect"), "{said}");
    let data = folder.path().join("data");
    let arguments = ["--config", file, "--data-dir", data.to_str().unwrap(), "--check-config"];
    let (status, said) = Process::refused(&arguments);
    assert!(status.success() && said.is_empty(), "{said}");
}
