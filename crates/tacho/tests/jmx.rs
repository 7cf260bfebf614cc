//! JMeter plans from the command line: run, converted, refused.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tacho_testkit::runs::assert_code;

fn plan(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/fixtures").join(name);
    path.display().to_string()
}

fn tacho(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a scenario shortly against the built-in broker; its record.
fn run(directory: &Path, scenario: &str, further: &[&str]) -> serde_json::Value {
    let directory = directory.display().to_string();
    let common = ["--broker", "builtin", "--hold", "2s", "--warmup", "300ms", "--quiet"];
    let arguments = [&["run", scenario, "--dir", &directory], &common[..], further].concat();
    let output = tacho(&arguments);
    let path = PathBuf::from(directory).join("summary.json");
    let summary = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let record = serde_json::from_str(&summary).expect("is JSON");
    // A busy machine may keep both sides from their schedule; deliveries are right all the same.
    assert_code(output.status.code(), &record, &[]);
    record
}

/// Every message of the first step arrived once per receiver that had to get it.
fn assert_complete(record: &serde_json::Value, deliveries_per_message: u64) {
    let step = &record["steps"][0];
    let count = |name: &str| step[name].as_u64().unwrap_or_else(|| panic!("{name} in {step}"));
    assert!(count("sent") > 0, "{step}");
    assert_eq!(count("received"), count("sent") * deliveries_per_message, "{step}");
    assert_eq!((count("lost"), count("duplicates"), count("unexpected")), (0, 0, 0), "{step}");
}

/// The files for other tools say what the record says.
fn assert_files_agree(directory: &Path, record: &serde_json::Value) {
    let read = |name: &str| {
        let path = directory.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let received = record["steps"][0]["latency_us"]["count"].as_u64().expect("a count");
    let percentiles = read("e2e.hgrm");
    assert!(percentiles.contains(&format!("Total count    = {received:12}]")), "{percentiles}");
    for name in ["service.hgrm", "send_delay.hgrm", "ack.hgrm"] {
        assert!(read(name).contains("#[Mean"), "{name}");
    }
    let steps = read("steps.csv");
    assert_eq!(steps.lines().count(), 2, "{steps}");
    assert!(steps.starts_with("step,label,"), "{steps}");
    let samples = read("results.jtl");
    assert_eq!(samples.matches("MQTT Sub Sampler").count() as u64, received, "a row each");
    let samples = read("results-aggregated.jtl");
    let mut lines = samples.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let column = |name: &str| head.iter().position(|known| *known == name).expect("a column");
    let (label, count) = (column("label"), column("SampleCount"));
    let mut totals = std::collections::BTreeMap::new();
    for line in lines {
        let samples: u64 = line[count].parse().expect("a number");
        *totals.entry(line[label].to_owned()).or_insert(0) += samples;
    }
    assert_eq!(totals["MQTT Connect"], 20, "{samples}");
    assert!(totals["MQTT Sub Sampler"] >= received, "{totals:?}");
    assert!(totals["MQTT Pub Sampler"] >= received, "{totals:?}");
}

#[test]
fn a_plan_is_run_and_its_conversion_runs_the_same() {
    let place = tempfile::tempdir().expect("a directory");
    let fast = ["--ramp-up", "200ms", "--var", "per_second=100"];
    let record = run(&place.path().join("plan"), &plan("pairs.jmx"), &fast);
    assert_complete(&record, 1);
    assert_eq!(record["scenario"], "pairs");
    assert_eq!(record["clients"], 20);
    assert_eq!(record["vars"]["per_second"], 100);
    assert!(record["notes"].to_string().contains("JMeter takes 0"), "{}", record["notes"]);

    assert_files_agree(&place.path().join("plan"), &record);

    let file = place.path().join("pairs.toml").display().to_string();
    let output = tacho(&["convert", &plan("pairs.jmx"), "-o", &file]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("note: Line 99"), "{}", text(&output.stderr));
    let converted = run(&place.path().join("converted"), &file, &fast);
    assert_complete(&converted, 1);
    for figure in ["offered_in_per_s", "offered_out_per_s"] {
        assert_eq!(converted["steps"][0][figure], record["steps"][0][figure]);
    }
    assert_eq!(converted["vars"], record["vars"]);
}

#[test]
fn jmeters_own_pacing_and_payload_are_verified_too() {
    let place = tempfile::tempdir().expect("a directory");
    let further = [
        ["--jmx-pacing", "jmeter"],
        ["--jmx-payload", "jmeter"],
        ["--ramp-up", "200ms"],
        ["--var", "per_second=95"],
    ];
    let record = run(place.path(), &plan("pairs.jmx"), further.as_flattened());
    assert_complete(&record, 1);
    // Ten threads at 95 a second: 105 ms between two messages of each, rounded.
    let offered = record["steps"][0]["offered_in_per_s"].as_f64().expect("a rate");
    assert!((offered - 95.238).abs() < 6.0, "{offered}");
}

#[test]
fn virtual_machines_have_shared_groups_of_their_own() {
    let place = tempfile::tempdir().expect("a directory");
    let further = ["--machines", "4", "--ramp-up", "200ms", "--var", "per_second=100"];
    let record = run(place.path(), &plan("team.jmx"), &further);
    // Each message reaches one member of its machine's group.
    assert_complete(&record, 1);
    let resolved = std::fs::read_to_string(place.path().join("scenario.toml")).expect("a file");
    assert!(resolved.contains("machines = 4"), "{resolved}");
}

#[test]
fn plans_are_shown_and_checked_like_scenarios() {
    let shown = tacho(&["scenario", "show", &plan("pairs.jmx")]);
    assert!(shown.status.success());
    assert!(text(&shown.stdout).contains("clients = \"{{senders}}\""), "{}", text(&shown.stdout));
    let checked = tacho(&["scenario", "check", &plan("pairs.jmx"), "--var", "senders=7"]);
    assert!(checked.status.success());
    assert!(text(&checked.stdout).contains("clients = 7"), "{}", text(&checked.stdout));
    assert!(text(&checked.stderr).contains("note: "), "{}", text(&checked.stderr));
}

/// The run went to the address that the plan has for both brokers, and found none.
#[test]
fn a_plan_for_two_brokers_starts_two_that_are_bridged() {
    let plan = plan("bridged.jmx");
    let checked = tacho(&["scenario", "check", &plan]);
    let said = text(&checked.stderr);
    assert!(said.contains("without arguments the run starts them"), "{said}");
    assert!(said.contains("node1 and node2 have the same address"), "{said}");
    let place = tempfile::tempdir().expect("a directory");
    let fast = ["--ramp-up", "200ms", "--hold", "2s", "--warmup", "300ms", "--quiet"];
    for broker in [&[][..], &["--broker", "builtin"]] {
        let directory = place.path().join(format!("run-{}", broker.len()));
        let dir = ["run", &plan, "--dir", directory.to_str().expect("UTF-8")];
        let output = tacho(&[&dir[..], &fast, broker].concat());
        let summary = std::fs::read_to_string(directory.join("summary.json"))
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
        let record = serde_json::from_str(&summary).expect("is JSON");
        assert_code(output.status.code(), &record, &[]);
        assert_complete(&record, 1);
        let targets = record["targets"].as_array().expect("targets");
        let names: Vec<_> = targets.iter().map(|target| target["name"].as_str()).collect();
        assert_eq!(names, [Some("node1"), Some("node2")]);
        // A run that was told to start them need not explain it.
        let is_explained = record["notes"].to_string().contains("the run starts");
        assert_eq!(is_explained, broker.is_empty(), "{}", record["notes"]);
    }
    let known = ["--var", "node2=127.0.0.2"];
    let checked = tacho(&[&["scenario", "check", &plan][..], &known].concat());
    let said = text(&checked.stderr);
    assert!(said.contains("node2 at mqtt://127.0.0.2:1883"), "{said}");
}

#[test]
fn unsupported_plans_exit_with_104() {
    let fails = |arguments: &[&str], words: &str| {
        let output = tacho(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(104), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: no {words:?} in {said}");
    };
    let unknown = plan("unknown.jmx");
    fails(&["run", &unknown], "'HeaderManager' is not supported");
    fails(&["scenario", "check", &unknown], "'JSR223Sampler' is not supported");
    fails(&["convert", &unknown], "--ignore-unknown");
    fails(&["run", &plan("pairs.jmx"), "--var", "speed=1"], "no variable 'speed'");
    fails(&["run", "nowhere.jmx"], "cannot read the scenario 'nowhere.jmx'");
    fails(&["convert", "symmetric.toml"], "not a JMeter plan");
    fails(&["run", "symmetric", "--ignore-unknown"], "not a JMeter plan");
    let left_out = tacho(&["convert", &unknown, "--ignore-unknown"]);
    assert!(left_out.status.success(), "{}", text(&left_out.stderr));
    assert!(text(&left_out.stdout).contains("# Left out: line 22"));
}
