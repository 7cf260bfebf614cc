//! `tacho calibrate` as a user meets it, and what its result is used for.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn tacho(arguments: &[&str], calibration: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).env("TACHO_CALIBRATION", calibration).stdin(Stdio::null());
    command.output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_quick_calibration_is_kept_and_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.json");
    let runs = folder.path().join("runs");
    let before = text(&tacho(&["scenario", "check", "symmetric"], &kept).stderr);
    assert!(before.contains("'tacho calibrate' measures this machine"), "{before}");
    let dir = runs.to_str().expect("a name");
    let named = ["--name", "Kernel 6.12", "--note", "idle"];
    let arguments = [&["calibrate", "--quick", "--json", "--dir", dir][..], &named].concat();
    let output = tacho(&arguments, &kept);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    let rates = record["rates"].as_array().expect("rates");
    let kinds: Vec<_> = rates
        .iter()
        .map(|cell| (cell["qos"].as_u64().expect("QoS"), cell["payload_bytes"].as_u64()))
        .collect();
    assert_eq!(kinds, [(0, Some(32)), (1, Some(32)), (1, Some(1024)), (2, Some(32))]);
    let scheduled = record["scheduled"].as_array().expect("rates");
    let kinds: Vec<_> = scheduled.iter().map(|cell| cell["qos"].as_u64()).collect();
    assert_eq!(kinds, [Some(0), Some(1), Some(2)]);
    for cell in rates.iter().chain(scheduled) {
        let figure = |name: &str| cell[name].as_f64().expect("a number");
        assert!(figure("messages_per_s") > 0.0 && figure("per_core") > 0.0, "{cell}");
    }
    assert!(record["lateness"][0]["count"].as_u64() > Some(0), "{record:#}");
    assert!(record["connections"]["clients"].as_u64() > Some(0), "{record:#}");
    assert!(record["connections"]["connects_per_s"].as_f64() > Some(0.0), "{record:#}");
    for path in [&kept, &runs.join("calibration.json")] {
        let text = fs::read_to_string(path).expect("is kept");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("is JSON"), record);
    }
    let run = fs::read_to_string(runs.join("steps/01/summary.json")).expect("a record");
    let run: Value = serde_json::from_str(&run).expect("is JSON");
    for named in [&record["given"], &run["given"]] {
        assert_eq!((&named["name"], &named["note"]), (&"Kernel 6.12".into(), &"idle".into()));
    }
    let after = text(&tacho(&["scenario", "check", "symmetric"], &kept).stderr);
    assert!(after.contains("rate per core: calibrated here on"), "{after}");
    // That of another machine is not used.
    let mut other = record;
    other["machine"]["cpu_model"] = "another one".into();
    fs::write(&kept, other.to_string()).expect("writes");
    assert_eq!(text(&tacho(&["scenario", "check", "symmetric"], &kept).stderr), before);
}

/// It replaced the earlier one without a word.
#[test]
fn an_earlier_calibration_is_not_replaced_without_force() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("runs");
    for earlier in ["calibration.json", "steps/01/summary.json", "summary.json"] {
        let file = dir.join(earlier);
        fs::create_dir_all(file.parent().expect("a parent")).expect("creates");
        fs::write(&file, "earlier").expect("writes");
        let arguments =
            ["calibrate", "--quick", "--no-store", "--dir", dir.to_str().expect("UTF-8")];
        let output = tacho(&arguments, &folder.path().join("kept.json"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(104), "{earlier}: {said}");
        assert!(
            said.contains("holds an earlier calibration") && said.contains("--force"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(&file).expect("is there"), "earlier");
        fs::remove_dir_all(&dir).expect("removes");
    }
}

#[test]
fn a_result_that_cannot_be_kept_is_said_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("writes");
    let output = tacho(&["calibrate"], &file.join("kept.json"));
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("cannot be kept") && said.contains("--no-store"), "{said}");
    assert!(output.stdout.is_empty() && !said.contains("measure ("), "{said}");
}

#[test]
fn a_disk_is_measured_instead() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.json");
    let place = folder.path().join("data");
    fs::create_dir(&place).expect("a folder");
    let dir = place.to_str().expect("a name");
    let output = tacho(&["calibrate", "--disk", dir, "--quick", "--json", "--name", "SSD"], &kept);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    let cells = record["synced_writes"].as_array().expect("cells");
    assert_eq!(cells.len(), 3, "{record:#}");
    assert!(cells.iter().all(|cell| cell["count"].as_u64() > Some(0)), "{record:#}");
    assert_eq!(record["given"]["name"], "SSD");
    assert!(!kept.exists(), "it is no calibration of the generator");
    assert_eq!(fs::read_dir(&place).expect("lists").count(), 0, "nothing is left");
    let nowhere = folder.path().join("nowhere");
    let arguments = ["calibrate", "--disk", nowhere.to_str().expect("a name")];
    let output = tacho(&arguments, &kept);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(104) && said.contains("nowhere"), "{said}");
}
