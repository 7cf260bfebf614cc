//! Runs that were started in a terminal, made again from the console.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::client::{Console, next_event, small};
use crate::folder;

/// A small load, as words of a command line.
const SMALL: [&str; 12] = [
    "--var",
    "publishers=2",
    "--var",
    "subscribers=2",
    "--var",
    "target_throughput=20",
    "--ramp-up",
    "50ms",
    "--warmup",
    "100ms",
    "--hold",
    "500ms",
];
const SECRET: &str = "hunter2";

/// Runs a scenario in a folder, as in a terminal there.
fn run(place: &Path, arguments: &[&str], directory: &Path, variables: &[(&str, &str)]) {
    made("run", place, arguments, directory, variables);
}

/// Runs a command in a folder, as in a terminal there.
fn made(
    word: &str,
    place: &Path,
    arguments: &[&str],
    directory: &Path,
    variables: &[(&str, &str)],
) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.arg(word).args(arguments).arg("--quiet").arg("--dir").arg(directory);
    command.current_dir(place).envs(variables.iter().copied()).stdin(Stdio::null());
    let output = command.output().expect("starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(directory.join("summary.json").exists(), "{said}");
}

fn id_of(console: &Console, path: &str) -> String {
    let answer = console.post(path, &Value::Null);
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.json()["id"].as_str().expect("has one").to_owned()
}

#[test]
fn a_run_of_a_terminal_is_repeated_as_it_was() {
    let place = folder();
    let elsewhere = folder();
    let mut arguments = vec!["symmetric"];
    arguments.extend(SMALL);
    arguments.extend(["--name", "Monday", "--threshold", "lost==0", "--timing", "sleep"]);
    run(elsewhere.path(), &arguments, &place.path().join("20260101-a"), &[]);
    let console = Console::start(place.path());
    let again = id_of(&console, "/runs/20260101-a/repeat");
    let made = console.wait_for(&again, "finished");
    assert_eq!((&made["name"], &made["scenario"]), (&json!("Monday"), &json!("symmetric")));
    let line = made["command_line"].as_str().expect("has one");
    assert!(line.starts_with("tacho run symmetric --var publishers=2"), "{line}");
    assert!(line.contains("--timing sleep") && !line.contains("--quiet"), "{line}");
    let toml = |id: &str| console.read(&format!("/runs/{id}"))["scenario_toml"].clone();
    assert_eq!(toml(&again), toml("20260101-a"));
    // The repeated one, too.
    let third = id_of(&console, &format!("/runs/{again}/repeat"));
    assert_eq!(console.wait_for(&third, "finished")["command_line"], line);

    let draft = console.post("/runs/20260101-a/draft", &Value::Null);
    assert_eq!(draft.status, 200, "{}", draft.body);
    let draft = draft.json();
    let expected = json!({
        "command": "run", "scenario": "symmetric", "name": "Monday", "thresholds": ["lost==0"],
        "variables": {"publishers": "2", "subscribers": "2", "target_throughput": "20"},
        "ramp_up_s": 0.05, "warmup_s": 0.1, "duration_s": 0.5,
    });
    assert_eq!((&draft["request"], &draft["uploads"]), (&expected, &json!([])));
    assert_eq!(draft["left_out"], json!(["--timing sleep"]));
}

#[test]
fn a_scenario_file_that_is_gone_is_repeated_from_the_record() {
    let place = folder();
    let elsewhere = folder();
    let console = Console::start(place.path());
    let preview = console.post("/preview", &small(0.5)).json();
    let toml = preview["scenario_toml"].as_str().expect("is shown");
    let own = elsewhere.path().join("own.toml");
    fs::write(&own, toml.replacen("name = \"symmetric\"", "name = \"own\"", 1)).expect("writes");
    let password = elsewhere.path().join("password");
    fs::write(&password, SECRET).expect("writes");
    let arguments = ["own.toml", "--username", "u", "--password-file", "password"];
    run(elsewhere.path(), &arguments, &place.path().join("20260101-a"), &[]);
    fs::remove_file(&own).expect("removes");

    let again = id_of(&console, "/runs/20260101-a/repeat");
    let made = console.wait_for(&again, "finished");
    assert_eq!(made["scenario"], "own");
    let line = made["command_line"].as_str().expect("has one");
    assert!(line.contains("/input/own.toml") && !line.contains("password"), "{line}");
    // The repeated one keeps its own copy.
    assert_eq!(console.send("DELETE", "/runs/20260101-a", &Value::Null).status, 204);
    let third = id_of(&console, &format!("/runs/{again}/repeat"));
    console.wait_for(&third, "finished");

    let draft = console.post(&format!("/runs/{third}/draft"), &Value::Null).json();
    let upload = &draft["uploads"][0];
    assert_eq!((&upload["name"], &upload["kind"]), (&json!("own.toml"), &json!("scenario")));
    assert_eq!(draft["request"]["upload"], upload["upload"]);
    let changed = console.begin(&draft["request"]);
    assert_eq!(console.wait_for(&changed, "finished")["scenario"], "own");
    // And that one, which has a request and its upload.
    let draft = console.post(&format!("/runs/{changed}/draft"), &Value::Null).json();
    assert_ne!(draft["request"]["upload"], upload["upload"]);
    assert_eq!(draft["uploads"][0]["name"], "own.toml");

    fs::remove_file(&password).expect("removes");
    let refused = console.post(&format!("/runs/{third}/repeat"), &Value::Null);
    assert_eq!(refused.status, 409, "{}", refused.body);
    let why = refused.json()["error"]["message"].as_str().expect("is said").to_owned();
    assert!(why.contains(password.to_str().expect("is UTF-8")), "{why}");
    assert!(!refused.body.contains(SECRET), "{}", refused.body);
}

#[test]
fn a_secret_that_the_console_does_not_have_is_named() {
    let place = folder();
    let elsewhere = folder();
    let mut arguments = vec!["symmetric", "--username", "u"];
    arguments.extend(SMALL);
    let directory = place.path().join("20260101-a");
    run(elsewhere.path(), &arguments, &directory, &[("TACHO_PASSWORD", SECRET)]);
    let record = json!({"verdict": "ok", "scenario": "symmetric"}).to_string();
    fs::create_dir(place.path().join("20260102-b")).expect("creates");
    fs::write(place.path().join("20260102-b/summary.json"), record).expect("writes");
    let console = Console::start(place.path());
    let refused = console.post("/runs/20260101-a/repeat", &Value::Null);
    assert_eq!(refused.status, 409, "{}", refused.body);
    let why = refused.json()["error"]["message"].as_str().expect("is said").to_owned();
    assert!(why.contains("environment variable TACHO_PASSWORD"), "{why}");
    assert!(!refused.body.contains(SECRET), "{}", refused.body);
    let refused = console.post("/runs/20260102-b/repeat", &Value::Null);
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("no record of its command line"), "{}", refused.body);
    assert_eq!(console.read("/runs")["total"], 2, "nothing was left behind");
}

/// The text of a scenario that comes with the program, under another name.
fn own_scenario() -> String {
    let program = env!("CARGO_BIN_EXE_tacho");
    let shown = Command::new(program).args(["scenario", "show", "symmetric"]).output();
    let text = String::from_utf8(shown.expect("starts").stdout).expect("is UTF-8");
    text.replacen("name = \"symmetric\"", "name = \"own\"", 1)
}

#[test]
fn a_ladder_of_a_scenario_file_is_repeated_by_the_file_or_by_its_copy() {
    let place = folder();
    let elsewhere = folder();
    let own = elsewhere.path().join("own.toml");
    fs::write(&own, own_scenario()).expect("writes");
    let mut arguments = vec!["own.toml", "payload_size=100,200", "--pause", "0s"];
    arguments.extend(SMALL);
    made("ladder", elsewhere.path(), &arguments, &place.path().join("20260101-a"), &[]);
    let console = Console::start(place.path());
    // A step that was disturbed is there twice, the second time at once or behind the others.
    let steps = |run: &Value| {
        let steps = run["summary"]["steps"].as_array().cloned().unwrap_or_default();
        let mut seen = BTreeSet::new();
        let labels = steps.iter().map(|step| step["label"].to_string());
        labels.filter(|label| seen.insert(label.clone())).collect::<Vec<_>>()
    };
    // Each step has its course, as a single run has.
    let mut events = console.events("/runs/20260101-a/steps/2/events");
    assert!(next_event(&mut events, "event: hello").contains("\"scenario\":\"own\""));
    next_event(&mut events, "event: second");
    next_event(&mut events, "event: end");
    for none in ["0", "99", "x", "-1"] {
        let refused = console.get(&format!("/runs/20260101-a/steps/{none}/events"));
        let code = refused.json()["error"]["code"].clone();
        assert_eq!((refused.status, code), (404, json!("run.no_step")), "{none}");
    }
    let again = id_of(&console, "/runs/20260101-a/repeat");
    let repeated = console.wait_for(&again, "finished");
    assert_eq!((&repeated["kind"], steps(&repeated).len()), (&json!("ladder"), 2));
    let line = repeated["command_line"].as_str().expect("has one");
    assert!(line.starts_with(&format!("tacho ladder {}", own.display())), "{line}");

    // The draft has the file itself.
    let draft = console.post("/runs/20260101-a/draft", &Value::Null).json();
    assert_eq!(draft["request"]["steps"], "payload_size=100,200");
    assert_eq!(draft["uploads"][0]["name"], "own.toml");
    assert_eq!(draft["request"]["upload"], draft["uploads"][0]["upload"]);
    assert_eq!(draft["left_out"], json!(["--pause 0s"]));

    // Once the file says something else, its copy is taken; so is the copy of the copy.
    fs::write(&own, own_scenario().replacen("qos = 1 ", "qos = 0 ", 1)).expect("writes");
    let copied = id_of(&console, "/runs/20260101-a/repeat");
    let copied_line = console.wait_for(&copied, "finished")["command_line"].clone();
    assert!(copied_line.as_str().is_some_and(|line| line.contains("/input/own.toml")));
    fs::remove_file(&own).expect("removes");
    assert_eq!(console.send("DELETE", "/runs/20260101-a", &Value::Null).status, 204);
    let third = id_of(&console, &format!("/runs/{copied}/repeat"));
    assert_eq!(steps(&console.wait_for(&third, "finished")), steps(&repeated));
}

#[test]
fn a_scenario_file_with_a_password_has_no_copy_in_the_record() {
    let place = folder();
    let elsewhere = folder();
    let own = elsewhere.path().join("own.toml");
    let with_password = own_scenario().replacen(
        "connect = {",
        &format!("connect = {{ username = \"u\", password = \"{SECRET}\","),
        1,
    );
    assert!(with_password.contains(SECRET), "{with_password}");
    fs::write(&own, with_password).expect("writes");
    let mut arguments = vec!["own.toml", "payload_size=100,200", "--pause", "0s"];
    arguments.extend(SMALL);
    let directory = place.path().join("20260101-a");
    made("ladder", elsewhere.path(), &arguments, &directory, &[]);
    let source = fs::read_to_string(directory.join("source.json")).expect("is there");
    assert!(!source.contains(SECRET) && source.contains("own.toml"), "{source}");
    let console = Console::start(place.path());
    // As it is there and gives what ran, it is used.
    let again = id_of(&console, "/runs/20260101-a/repeat");
    console.wait_for(&again, "finished");
    fs::remove_file(&own).expect("removes");
    let refused = console.post("/runs/20260101-a/repeat", &Value::Null);
    assert_eq!(refused.status, 409, "{}", refused.body);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "repeat.cannot", "{error}");
    assert!(error["message_zh"].as_str().is_some_and(|zh| zh.contains("密码")), "{error}");
    assert!(!refused.body.contains(SECRET), "{}", refused.body);
}
