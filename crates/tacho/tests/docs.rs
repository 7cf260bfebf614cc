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
fn every_test_of_a_published_vulnerability_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = document("security-tests.md");
    let cited: Vec<(&str, &str)> =
        page.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::")).collect();
    assert!(cited.len() > 20, "{cited:?}");
    for (file, name) in cited {
        let text = std::fs::read_to_string(root.join(file));
        let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
        let (before, _) = text
            .split_once(&format!("fn {name}("))
            .unwrap_or_else(|| panic!("{file} has no {name}"));
        // Of that function, not of one before it.
        let attributes = before.rsplit('}').next().unwrap_or_default();
        assert!(attributes.contains("#[test]"), "{name} of {file} is no test");
    }
    let listed = page.lines().filter(|line| line.starts_with("| ")).count() - 1;
    let with_tests = page.lines().filter(|line| line.starts_with("| ") && line.contains("::"));
    assert_eq!(with_tests.count(), listed, "a row has no test");
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
fn every_key_of_scenarios_is_documented() {
    let text = document("scenarios.md");
    let schema: serde_json::Value =
        serde_json::from_str(&output(&["scenario", "schema"])).expect("is JSON");
    let mut keys = Vec::new();
    collect(&schema, &mut keys);
    assert!(keys.len() > 90, "{keys:?}");
    for key in keys {
        // By itself, or with the name of its table in front.
        let documented = text.contains(&format!("`{key}`")) || text.contains(&format!(".{key}`"));
        assert!(documented, "{key} is not in docs/scenarios.md");
    }
}

#[test]
fn the_scenario_reference_is_up_to_date() {
    let (written, now) = (document("scenario-reference.md"), output(&["scenario", "reference"]));
    let differs = written.lines().zip(now.lines()).find(|(old, new)| old != new);
    assert!(
        written == now,
        "run `tacho scenario reference > docs/scenario-reference.md`: {differs:?}"
    );
}

#[test]
fn the_help_of_run_groups_its_options() {
    let help = output(&["run", "--help"]);
    let section = |title: &str| {
        let (_, rest) =
            help.split_once(&format!("\n{title}:\n")).unwrap_or_else(|| panic!("{title}"));
        let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
        let options = lines.map(str::trim_start).filter(|line| line.starts_with('-'));
        options.map(|line| line.split(' ').find(|word| word.starts_with("--"))).collect::<Vec<_>>()
    };
    let own = ["--resume", "--only", "--as-published", "--repeat", "--help"].map(Some);
    assert_eq!(section("Options"), own);
    for (title, option) in [
        ("Broker", "--broker"),
        ("Transport", "--ca"),
        ("Load", "--var"),
        ("JMeter plans", "--ignore-unknown"),
        ("Generator", "--timing"),
        ("Output", "--json"),
        ("Live page", "--ui"),
    ] {
        assert!(section(title).contains(&Some(option)), "{title} has no {option}: {help}");
    }
}

/// Every key of a schema but those of tables, which their own keys document.
fn collect(schema: &serde_json::Value, keys: &mut Vec<String>) {
    let is_table = |schema: &serde_json::Value| schema["properties"].is_object();
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let tables = [inner, &inner["items"], &inner["additionalProperties"]];
        if !tables.iter().any(|schema| is_table(schema)) {
            keys.push(key.clone());
        }
        tables.iter().for_each(|schema| collect(schema, keys));
    }
}

#[test]
fn every_figure_of_a_host_is_documented() {
    let text = document("monitoring.md");
    for metric in tacho_monitor::METRICS {
        assert!(text.contains(&format!("`{metric}`")), "{metric} is not in docs/monitoring.md");
    }
}
