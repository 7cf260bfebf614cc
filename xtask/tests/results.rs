//! `cargo xtask results`, as the README has it, with short holds and one broker.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of this build. A test of this package alone does not have it built.
fn tacho() -> PathBuf {
    let xtask = Path::new(env!("CARGO_BIN_EXE_xtask"));
    let path = xtask.with_file_name("tacho");
    if !path.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        let status = cargo.args(["build", "--package", "tacho", "--bin", "tacho"]).status();
        assert!(status.expect("cargo starts").success(), "tacho is built");
    }
    path
}

#[test]
fn a_report_is_measured_again_and_written() {
    let place = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["results", "guide", "--quick", "--only", "qos0", "--brokers", "tacho"]);
    // A measurement under way in the folder of this build stays as it is.
    command.arg("--tacho").arg(tacho()).env("CARGO_TARGET_DIR", place.path());
    let output = command.output().expect("starts");
    let [said, printed] = [&output.stderr, &output.stdout].map(|b| String::from_utf8_lossy(b));
    assert!(output.status.success(), "{said}\n{printed}");
    let folder = place.path().join("results/guide");
    let rows = std::fs::read_to_string(folder.join("rows.jsonl")).expect("is there");
    assert_eq!(rows.lines().count(), 2, "{rows}");
    for line in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("is JSON");
        assert_eq!((&row["broker"], &row["series"]), (&"tacho".into(), &"qos0".into()), "{row}");
    }
    let document = std::fs::read_to_string(folder.join("document/README.md")).expect("is there");
    assert!(document.contains("QoS 0") && document.contains("Tacho"), "{document}");
}
