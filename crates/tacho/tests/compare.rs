//! `tacho compare` as a user meets it: sessions, stored runs, conditions, refusals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tacho_testkit::runs::{assert_code, assert_points_of_steps};

use serde_json::{Value, json};

fn tacho(arguments: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.arg("compare").args(arguments).arg("--dir").arg(dir).stdin(Stdio::null());
    command.output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("is JSON")
}

/// A load that any machine carries, as short as can be.
const SMALL: [&str; 10] = [
    "--var",
    "publishers=4",
    "--var",
    "subscribers=4",
    "--var",
    "target_throughput=100",
    "--ramp-up",
    "50ms",
    "--warmup",
    "100ms",
];

fn refused(arguments: &[&str], code: i32, words: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("refused");
    let output = tacho(arguments, &dir);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(words), "{arguments:?}: no {words:?} in {said}");
    assert!(!dir.exists(), "{arguments:?} left a directory");
}

#[test]
fn a_session_makes_its_repeats_in_turns_and_leaves_a_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("session");
    let junit = folder.path().join("junit.xml");
    let junit_name = junit.to_str().expect("a name");
    let points = folder.path().join("points.jsonl");
    let out = format!("json={}", points.display());
    let arguments = [
        "symmetric",
        "--repeats",
        "2",
        "--hold",
        "500ms",
        "--before-b",
        "echo set for $TACHO_SIDE",
        "--broker-args-b=--shared-strategy random",
        "--max-regression",
        "5%",
        // A busy machine must not change the number of runs.
        "--make-up",
        "0",
        "--lang",
        "zh",
        "--junit",
        junit_name,
        "--out",
        &out,
    ];
    let output = tacho(&[&arguments[..], &SMALL].concat(), &dir);
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    assert_points_of_steps(&points, &dir);
    // Two repeats are too few for an interval, so that the condition cannot be told.
    assert_eq!(output.status.code(), Some(111), "{said}\n{table}");
    let record = read(&dir.join("comparison.json"));
    assert_eq!(record["schema_version"], 2);
    assert_eq!((&record["scenario"], &record["interleaved"]), (&json!("symmetric"), &json!(true)));
    assert_eq!(record["verdict"], "unclear");
    assert_eq!(record["conditions"][0]["outcome"], "undecided");
    let sides = record["sides"].as_array().expect("sides");
    let directories = |side: usize| {
        let repeats = sides[side]["repeats"].as_array().expect("repeats");
        repeats.iter().map(|one| one["directory"].as_str().expect("one").to_owned()).collect()
    };
    let (first, second): (Vec<String>, Vec<String>) = (directories(0), directories(1));
    assert_eq!(first, ["steps/01-a-1", "steps/04-a-2"]);
    assert_eq!(second, ["steps/02-b-1", "steps/03-b-2"]);
    for own in first.iter().chain(&second) {
        let run = read(&dir.join(own).join("summary.json"));
        assert_eq!((&run["kind"], &run["steps"][0]["lost"]), (&json!("run"), &json!(0)));
        assert!(dir.join(own).join("report.html").exists());
    }
    let before = &sides[1]["repeats"][1]["before"];
    assert_eq!((&before["exit_code"], &before["output"]), (&json!(0), &json!("set for b\n")));
    assert!(sides[0]["repeats"][0]["before"].is_null());
    let figures = record["points"][0]["figures"].as_array().expect("figures");
    // A busy machine may make a repeat say nothing about the broker.
    let counting = |side: usize| {
        let repeats = sides[side]["repeats"].as_array().expect("repeats");
        repeats.iter().filter(|repeat| repeat["counts"] == true).count()
    };
    if counting(0) > 0 && counting(1) > 0 {
        let shown = |name: &str| figures.iter().any(|row| row["name"] == name);
        assert!(shown("connect_rate") && shown("time_to_connected"), "{record:#}");
        let tps = figures.iter().find(|row| row["name"] == "tps").expect("the rate");
        let values = |side: usize| tps["sides"][side]["values"].as_array().map(Vec::len);
        assert_eq!((values(0), values(1)), (Some(counting(0)), Some(counting(1))), "{record:#}");
        assert!(tps["changes"][0]["low"].is_null() && tps["changes"][0]["change"].is_number());
    }
    let different: Vec<&str> = record["environment"]
        .as_array()
        .expect("differences")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(different.contains(&"broker") && different.contains(&"command before each repeat"));
    assert!(table.contains("verdict: unclear"), "{table}");
    assert!(table.contains("--shared-strategy random"), "{table}");
    let summary = read(&dir.join("summary.json"));
    assert_eq!(
        (&summary["kind"], &summary["series"][1]["name"], &summary["verdict"]),
        (&"comparison".into(), &"b".into(), &"unclear".into())
    );
    let page = fs::read_to_string(dir.join("report.html")).expect("a report");
    assert!(page.contains("环境的差异") && page.contains("<html lang=\"zh\">"));
    assert!(page.contains("steps/03-b-2/report.html"));
    let xml = fs::read_to_string(&junit).expect("is written");
    assert!(xml.contains("no regression above 5%"), "{xml}");
}

/// Beside its own repeats, in a column and a series of their own.
#[test]
fn the_first_side_is_repeated_for_the_noise_floor() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("aa");
    let log = folder.path().join("log");
    let note = format!("echo $TACHO_SIDE $TACHO_REPEAT >> {}", log.display());
    let arguments = [
        "symmetric",
        "--repeats",
        "1",
        "--aa",
        "5",
        "--make-up",
        "0",
        "--hold",
        "300ms",
        "--before-a",
        &note,
        "--quiet",
    ];
    let output = tacho(&[&arguments[..], &SMALL].concat(), &dir);
    // One repeat per side is too few for any verdict.
    assert_code(output.status.code(), &read(&dir.join("summary.json")), &["unclear"]);
    let record = read(&dir.join("comparison.json"));
    let again = record["aa_repeats"].as_array().expect("repeats");
    let directories: Vec<&str> = again.iter().filter_map(|one| one["directory"].as_str()).collect();
    assert_eq!(directories[..2], ["steps/03-a-aa-1", "steps/04-a-aa-2"], "{record:#}");
    assert_eq!((again.len(), &record["made_up"]), (5, &json!(0)));
    let ran = fs::read_to_string(&log).expect("was written");
    assert_eq!(ran, "a 1\na aa-1\na aa-2\na aa-3\na aa-4\na aa-5\n");
    let summary = read(&dir.join("summary.json"));
    assert_eq!(summary["series"][2]["name"], "a-aa");
    let side = format!("{}@a", dir.to_str().expect("a name"));
    let (again, other) = (folder.path().join("again"), five(folder.path(), "other", 1000));
    let output = tacho(&[&side, &other], &again);
    assert_eq!(output.status.code(), Some(111), "{}", text(&output.stderr));
    assert_eq!(read(&again.join("summary.json"))["verdict"], "unclear");
    let record = read(&again.join("comparison.json"));
    assert_eq!(record["aa_repeats"].as_array().map(Vec::len), Some(5));
}

/// Writes the directory of a run of a made-up broker.
fn stored(folder: &Path, name: &str, p99_us: u64, change: impl Fn(&mut Value)) -> PathBuf {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compare");
    let mut record = read(&fixture.join("summary.json"));
    record["steps"][0]["latency_us"]["p99"] = p99_us.into();
    record["name"] = name.into();
    change(&mut record);
    let path = folder.join(name);
    fs::create_dir_all(&path).expect("creates");
    fs::write(path.join("summary.json"), record.to_string()).expect("writes");
    for file in ["environment.json", "scenario.toml", "e2e.hgrm"] {
        fs::copy(fixture.join(file), path.join(file)).expect("copies");
    }
    path
}

/// Five runs as one argument.
fn five(folder: &Path, name: &str, p99_us: u64) -> String {
    let one = |number: u64| {
        let path = stored(folder, &format!("{name}{number}"), p99_us + number * 3, |_| {});
        path.to_str().expect("a name").to_owned()
    };
    (0..5).map(one).collect::<Vec<_>>().join(",")
}

#[test]
fn stored_runs_with_a_known_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let (fast, slow) = (five(folder.path(), "fast", 1000), five(folder.path(), "slow", 1300));
    let dir = folder.path().join("out");
    let output = tacho(&[&fast, &slow, "--fail-if", "worse"], &dir);
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(99), "{said}\n{table}");
    let record = read(&dir.join("comparison.json"));
    assert_eq!((&record["verdict"], &record["interleaved"]), (&json!("worse"), &json!(false)));
    let figures = record["points"][0]["figures"].as_array().expect("figures");
    let row = figures.iter().find(|row| row["name"] == "e2e_p99").expect("is compared");
    let change = row["changes"][0]["change"].as_f64().expect("a change");
    assert!((change - 29.8).abs() < 0.5, "{change}");
    // All else is the same.
    let told = figures.iter().filter(|row| row["changes"][0]["verdict"] == "worse").count();
    assert_eq!(told, 1, "{record:#}");
    assert!(table.contains("verdict: worse"), "{table}");
    assert!(dir.join("report.html").exists() && dir.join("junit.xml").exists());
    assert_eq!(read(&dir.join("summary.json"))["verdict"], "threshold_failed");
    for (arguments, code) in [
        (vec![slow.as_str(), &fast, "--fail-if", "worse", "--fail-if", "not-better"], 0),
        (vec![fast.as_str(), &slow, "--max-regression", "40%"], 0),
        (vec![fast.as_str(), &slow, "--max-regression", "p99=20%", "--json"], 99),
    ] {
        let output = tacho(&[&arguments[..], &["--force"]].concat(), &dir);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    }
    // A side of a comparison is its repeats, wherever they lie.
    let side = format!("{}@b", dir.to_str().expect("a name"));
    let output = tacho(&[&fast, &side, "--quiet"], &folder.path().join("again"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(read(&folder.path().join("again/comparison.json"))["verdict"], "worse");
}

#[test]
fn single_runs_are_compared_without_a_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |path: &PathBuf| path.to_str().expect("a name").to_owned();
    let one = path(&stored(folder.path(), "one", 1000, |_| {}));
    let two = path(&stored(folder.path(), "two", 2000, |_| {}));
    let dir = folder.path().join("out");
    let output = tacho(&[&one, &two], &dir);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(111), "{table}");
    let summary = read(&dir.join("summary.json"));
    assert_eq!(summary["verdict"], "unclear");
    let reason = summary["reasons"][0].as_str().expect("a reason");
    assert!(reason.contains("fewer than 5 repeats"), "{reason}");
    assert!(table.contains("+100.0 %") && table.contains("needs at least 5"), "{table}");
    assert!(table.contains("The runs did not alternate"), "{table}");
    let output = tacho(&[&one, &two, "--fail-if", "worse", "--force"], &dir);
    assert_eq!(output.status.code(), Some(111), "{}", text(&output.stdout));
}

#[test]
fn contradictory_arguments_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |path: &PathBuf| path.to_str().expect("a name").to_owned();
    let one = path(&stored(folder.path(), "one", 1000, |_| {}));
    let rename = |record: &mut Value| record["scenario"] = "fan-out".into();
    let other = path(&stored(folder.path(), "other", 1000, rename));
    let nowhere = folder.path().join("nowhere").to_str().expect("a name").to_owned();
    refused(&[], 1, "required");
    refused(&[&one], 104, "is a run: give two or more");
    refused(&[&one, &nowhere], 104, "the directory does not exist");
    refused(&[&one, &other], 104, "ran 'fan-out'");
    refused(&[&one, &one, "--var", "qos=1"], 1, "the runs are made already");
    refused(&[&one, &one, "--max-regression", "p98=5%"], 1, "no figure 'p98'");
    refused(&["symmetric", "--fail-if", "slow"], 1, "write worse or not-better");
    refused(&["symmetric", "--repeats", "0"], 1, "not in 1..=100");
    refused(&["symmetric", "--aa", "3"], 1, "write 0, or 5 to 100");
    refused(&[&one, &one, "--aa", "5"], 1, "the runs are made already");
    refused(&["no-such-scenario"], 104, "no-such-scenario");
    refused(&["symmetric", "--brokers", "builtin"], 104, "2 to 8 brokers");
    refused(&["symmetric", "--brokers", "builtin,elephant"], 104, "'elephant' is no URL");
    refused(&["symmetric", "--broker", "c=builtin"], 104, "there is no side 'c', only a, b");
    refused(&["bridge", "--brokers", "builtin,builtin"], 104, "loads several brokers");
    let no_port = ["symmetric", "--broker-cmd", "b=mosquitto"];
    refused(&no_port, 104, "does not say where {port} goes");
    let url = ["symmetric", "--broker", "a=mqtt://127.0.0.1:1", "--broker-args-a", "--quiet"];
    refused(&url, 104, "this one is running already");
    let gone = ["symmetric", "--brokers", "builtin,127.0.0.1:1"];
    refused(&gone, 112, "127.0.0.1:1");
}

#[test]
fn a_command_that_fails_ends_the_comparison() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("out");
    let arguments = ["symmetric", "--hold", "300ms", "--before-b", "echo no such setting; exit 3"];
    let output = tacho(&[&arguments[..], &SMALL].concat(), &dir);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the command before repeat 1 of b failed"), "{said}");
    assert!(said.contains("no such setting"), "{said}");
    assert_eq!(read(&dir.join("summary.json"))["verdict"], "aborted");
}
