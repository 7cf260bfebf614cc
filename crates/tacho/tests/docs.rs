//! The documents name what the program has.

use std::path::Path;
use std::process::Command;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn output(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tacho")).args(arguments).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_broker_setting_is_documented() {
    let table = document("broker-configuration.md");
    let config = output(&["broker", "--check-config"]);
    let keys: Vec<&str> =
        config.lines().filter_map(|line| Some(line.split_once(" = ")?.0.trim())).collect();
    assert!(keys.len() > 20, "{config}");
    for key in keys {
        assert!(table.contains(&format!("| `{key}` |")), "{key} is not in the table");
    }
}

#[test]
fn every_exit_code_is_documented() {
    let table = document("exit-codes.md");
    let help = output(&["run", "--help"]);
    let (_, codes) = help.split_once("Exit codes:").expect("the help has the codes");
    let codes: Vec<u8> =
        codes.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert!(codes.len() >= 8, "{help}");
    for code in codes {
        assert!(table.contains(&format!("| {code} |")), "{code} is not in the table");
    }
}

#[test]
fn every_key_of_the_built_in_scenario_is_documented() {
    let text = document("scenarios.md");
    let resolved = output(&["scenario", "check", "symmetric"]);
    let mut section = "";
    for line in resolved.lines() {
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, _)) = line.split_once(" = ")
            // Variables are the scenario's own.
            && section != "[vars]"
        {
            assert!(text.contains(key.trim()), "{section} {key} is not in docs/scenarios.md");
        }
    }
}

#[test]
fn every_figure_of_a_host_is_documented() {
    let text = document("monitoring.md");
    for metric in tacho_monitor::METRICS {
        assert!(text.contains(&format!("`{metric}`")), "{metric} is not in docs/monitoring.md");
    }
}
