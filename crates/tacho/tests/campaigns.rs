//! `tacho ladder`, `tacho capacity` and suites as a user meets them: tables, records, exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tacho_testkit::runs::{assert_code, assert_points_of_steps, rows};

/// A load that any machine carries.
const SMALL: [&str; 14] = [
    // What else runs on the machine must not have rows measured again. A generator that is late
    // does all the same: see `rows`.
    "--tolerate",
    "steal=100%,others=100%,waiting=100%",
    "--var",
    "publishers=5",
    "--var",
    "subscribers=5",
    "--var",
    "ramp_up=100ms",
    "--warmup",
    "200ms",
    "--pause",
    "0s",
    "--hold",
    "1s",
];

fn tacho(arguments: &[&str], more: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).args(more).arg("--dir").arg(dir).stdin(Stdio::null());
    command.output().expect("starts")
}

/// A job of GitHub Actions names a file for the summary of its step.
#[test]
fn the_summary_of_a_step_is_appended_unless_a_file_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("step.md");
    for (given, parts) in [(false, 1), (true, 1), (false, 2)] {
        let dir = folder.path().join(format!("run-{given}-{parts}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        let load = SMALL.into_iter().filter(|word| !["--pause", "0s"].contains(word));
        command.args(["run", "symmetric"]).args(load);
        command.arg("--dir").arg(&dir).stdin(Stdio::null());
        if given {
            command.arg("--markdown").arg(folder.path().join("other.md"));
        }
        let output = command.env("GITHUB_STEP_SUMMARY", &page).output().expect("starts");
        let said = text(&output.stderr);
        let written = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(written.matches("## tacho symmetric").count(), parts, "{said}");
    }
}

#[test]
fn a_summary_of_a_step_that_cannot_be_written_is_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut codes = Vec::new();
    for given in [false, true] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        let load = SMALL.into_iter().filter(|word| !["--pause", "0s"].contains(word));
        command.args(["run", "symmetric"]).args(load);
        let dir = folder.path().join(format!("run-{given}"));
        command.arg("--dir").arg(&dir).stdin(Stdio::null());
        // A folder takes no text.
        match given {
            true => command.arg("--markdown").arg(folder.path()),
            false => command.env("GITHUB_STEP_SUMMARY", folder.path()),
        };
        let output = command.output().expect("starts");
        let said = text(&output.stderr);
        assert!(said.contains("cannot write"), "{said}");
        assert_eq!(
            said.contains("warning: cannot write the summary of the step"),
            !given,
            "{said}"
        );
        assert!(dir.join("summary.json").exists(), "{said}");
        codes.push(output.status.code());
    }
    assert_ne!(codes[0], Some(1), "the run's own code");
    assert_eq!(codes[1], Some(1), "what was asked for is missing");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn label_of(step: &Value) -> &str {
    step["label"].as_str().expect("a label")
}

fn summary(directory: &Path) -> Value {
    let text = fs::read_to_string(directory.join("summary.json")).expect("a summary");
    serde_json::from_str(&text).expect("is JSON")
}

/// Runs a command that must be refused before anything is created.
fn refused(arguments: &[&str], code: i32, words: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("refused");
    let output = tacho(arguments, &[], &dir);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(words), "{arguments:?}: no {words:?} in {said}");
    assert!(!dir.exists(), "{arguments:?} left a directory");
}

#[test]
fn invalid_arguments_are_refused() {
    refused(&["ladder", "symmetric", "qos"], 1, "has no '='");
    refused(&["ladder", "symmetric", "target_throughput=1..9"], 1, "needs a step");
    refused(&["ladder", "symmetric", "qos=1,2,3"], 104, "there is no QoS 3");
    refused(&["ladder", "symmetric", "speed=1,2"], 104, "no variable 'speed'");
    refused(
        &["ladder", "symmetric", "qos=0,1", "--stop-when", "cpu=1"],
        1,
        "does not start with <",
    );
    refused(&["capacity", "symmetric", "--variable", "duration"], 104, "only a number");
    refused(&["capacity", "symmetric", "--variable", "speed"], 104, "no such variable");
    refused(&["capacity", "symmetric", "--from", "10", "--to", "5"], 104, "is below --from");
    refused(&["capacity", "symmetric", "--objective", "p98<1ms"], 1, "no figure 'p98'");
    refused(&["run", "symmetric", "--only", "x"], 1, "--only applies to suites");
    refused(&["run", "guide", "--only", "elephants"], 104, "--only matches nothing in guide");
    let other = "node3=mqtt://127.0.0.1:1";
    refused(&["run", "guide", "--broker", other], 104, "no target 'node3', only node1, node2");
    let all = "publishers=100000000..200000000:100000000";
    refused(&["ladder", "symmetric", all], 104, "this machine can run none of the steps");
}

#[test]
fn a_ladder_is_a_run_per_step_and_one_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("ladder");
    let steps = "target_throughput=50,100";
    let (junit, page) = (folder.path().join("out.xml"), folder.path().join("page.md"));
    fs::write(&page, "before\n").expect("writes");
    let (junit_name, page_name) = (junit.to_str().expect("name"), page.to_str().expect("name"));
    let arguments = ["ladder", "symmetric", steps, "--repeat", "2", "--junit", junit_name];
    let badge = folder.path().join("badge.svg");
    let further = ["--markdown", page_name, "--badge", badge.to_str().expect("name")];
    let output = tacho(&[&arguments[..], &further].concat(), &SMALL, &dir);
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    let summary = summary(&dir);
    assert_code(output.status.code(), &summary, &[]);
    assert_eq!((&summary["kind"], &summary["schema_version"]), (&"ladder".into(), &2.into()));
    let steps = rows(&summary);
    assert_eq!(steps.len(), 4, "{said}");
    assert!(label_of(steps[2]).starts_with("target_throughput=50 #2"), "{}", steps[2]);
    for (index, (label, x)) in
        [("target_throughput=50", 50.0), ("target_throughput=100", 100.0)].iter().enumerate()
    {
        let step = steps[index];
        assert!(label_of(step).starts_with(label), "{step:#}");
        assert_eq!(step["x"].as_f64(), Some(*x));
        assert_eq!(step["lost"], 0, "{step:#}");
        assert_eq!(step["received"], step["expected"]);
        assert!(step["vars"]["target_throughput"].as_f64() == Some(*x));
        // The head of the table has the variable, its rows have the values.
        let row = format!("\n  {x} ");
        assert!(table.contains(&row) && table.contains("\n  target_throughput "), "{table}");
        let own = dir.join(step["directory"].as_str().expect("a directory"));
        let child = self::summary(&own);
        assert_eq!((&child["kind"], &child["steps"][0]["sent"]), (&"run".into(), &step["sent"]));
        assert!(own.join("report.html").exists() && own.join("timeseries.csv").exists());
    }
    // One broker for all steps.
    let pid = |step: &Value| {
        let own = dir.join(step["directory"].as_str().expect("a directory"));
        self::summary(&own)["target"]["pid"].as_u64()
    };
    assert!(pid(steps[0]).is_some());
    assert_eq!(pid(steps[0]), pid(steps[1]));
    assert_eq!(summary["series"][0]["variable"], "target_throughput");
    let made = summary["steps"].as_array().map_or(0, Vec::len);
    assert_eq!(summary["series"][0]["steps"], Value::from_iter(0..made), "all belong to it");
    for file in ["report.html", "environment.json", "scenario.toml", "broker.log"] {
        assert!(dir.join(file).exists(), "{file}");
    }
    let read = |path: &Path| fs::read_to_string(path).expect("reads");
    let xml = read(&junit);
    assert_eq!(xml, read(&dir.join("junit.xml")));
    assert_eq!(xml.matches("<testcase ").count(), made + 1, "{xml}");
    let verdict = summary["verdict"].as_str().expect("a verdict").replace('_', " ");
    assert!(read(&badge).contains(&format!("<title>symmetric: {verdict}</title>")), "{verdict}");
    assert_eq!(read(&page), format!("before\n{}", read(&dir.join("summary.md"))));
    assert!(read(&page).contains("| target\\_throughput=100 | "));
}

#[test]
fn repeats_have_runs_of_their_own_and_statistics() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("repeats");
    let small: Vec<&str> =
        SMALL.into_iter().filter(|word| !["--pause", "0s"].contains(word)).collect();
    let arguments = ["run", "symmetric", "--var", "target_throughput=50", "--repeat", "2"];
    let output = tacho(&arguments, &small, &dir);
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    let summary = summary(&dir);
    assert_code(output.status.code(), &summary, &[]);
    assert!(said.contains("run 2 of 2"), "{said}");
    assert_eq!(summary["kind"], "repeats");
    // A disturbed run is made again, and counts only where the last attempt does.
    let steps = summary["steps"].as_array().expect("steps");
    assert!(steps.len() >= 2, "{summary:#}");
    for step in steps {
        let own = dir.join(step["directory"].as_str().expect("a directory"));
        assert_eq!(self::summary(&own)["kind"], "run");
        assert!(own.join("report.html").exists());
    }
    let repeated = summary["repeated"].as_array().map_or(&[][..], Vec::as_slice);
    if let Some(tps) = repeated.iter().find(|row| row["name"] == "tps") {
        let spread = &tps["sides"][0];
        let of = |name: &str| spread[name].as_f64().expect("a figure");
        assert!(of("min") <= of("median") && of("median") <= of("max"), "{spread:#}");
        assert!(
            table.contains("runs that count") && table.contains("messages in + out"),
            "{table}"
        );
        let page = fs::read_to_string(dir.join("report.html")).expect("a report");
        assert!(page.contains("Over the runs") && page.contains("Repeated load test"));
        let markdown = fs::read_to_string(dir.join("summary.md")).expect("a page");
        assert!(markdown.contains("| figure | median | min | max | runs that count |"));
    } else {
        assert_ne!(summary["verdict"], "ok", "no statistics of runs that count: {summary:#}");
    }
    refused(&["run", "guide", "--repeat", "2"], 104, "--repeat applies to scenarios only");
    refused(&["run", "symmetric", "--repeat", "0"], 1, "not in 1..=100");
}

#[test]
fn a_ladder_ends_where_it_is_asked_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("ladder");
    let arguments = ["ladder", "symmetric", "target_throughput=50..90:20", "--stop-when", "tps>1"];
    let output = tacho(&arguments, &SMALL, &dir);
    let said = text(&output.stderr);
    assert!(said.contains("tps>1 holds: the ladder ends here"), "{said}");
    let summary = summary(&dir);
    assert_eq!(rows(&summary).len(), 1, "{summary:#}");
    let findings = summary["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|finding| finding["code"] == "ladder_stopped"), "{summary:#}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn a_capacity_search_ends_with_an_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("capacity");
    let arguments = [
        "capacity",
        "symmetric",
        "--from",
        "40",
        "--to",
        "80",
        "--objective",
        "p99<10s",
        "--objective",
        "lost==0",
        "--trial",
        "500ms",
        "--confirm",
        "2",
        "--no-profile",
    ];
    let points = folder.path().join("points.jsonl");
    let out = format!("json={}", points.display());
    let output = tacho(&arguments, &[&SMALL[..], &["--out", &out]].concat(), &dir);
    let table = text(&output.stdout);
    let summary = summary(&dir);
    assert_points_of_steps(&points, &dir);
    let capacity = &summary["capacity"];
    assert_eq!(summary["kind"], "capacity");
    let trials = capacity["trials"].as_array().expect("trials");
    assert_eq!((&trials[0]["value"], &trials[0]["purpose"]), (&40.0.into(), &"bracket".into()));
    assert!(table.contains("capacity of target_throughput at e2e_p99<10s, lost==0"), "{table}");
    assert_code(output.status.code(), &summary, &[]);
    if output.status.success() {
        // On a busy machine the search may have ended below the highest value to try.
        let pass = capacity["highest_pass"].as_f64().expect("something passes");
        let fail = capacity["lowest_fail"].as_f64();
        assert!(pass <= 80.0 && fail.map_or(pass == 80.0, |fail| pass < fail), "{table}");
        assert!(capacity["confirmed"].as_u64() >= Some(2));
    }
}

#[test]
fn a_capacity_search_that_cannot_pass_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("capacity");
    let arguments =
        ["capacity", "symmetric", "--from", "1", "--objective", "p50<1ns", "--trial", "500ms"];
    let output = tacho(&arguments, &SMALL, &dir);
    let table = text(&output.stdout);
    let summary = summary(&dir);
    assert_code(output.status.code(), &summary, &["threshold_failed"]);
    assert_ne!(summary["verdict"], "ok", "{table}");
    if summary["verdict"] == "threshold_failed" {
        assert!(table.contains("nothing passes"), "{table}");
    }
    assert!(summary["capacity"]["highest_pass"].is_null());
}

#[test]
fn a_suite_runs_its_rows_and_reports_skipped_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("suite");
    let arguments = [
        "run",
        "guide",
        "--only",
        "qos1/10K",
        "--only",
        "bridge/10K",
        "--only",
        "no-bridge/10K",
        "--scale",
        "0.01",
        "--scale-clients",
        "0.01",
        "--hold",
        "1s",
        "--var",
        "warmup=200ms",
        "--tolerate",
        "steal=100%,others=100%,waiting=100%",
    ];
    let points = folder.path().join("points.jsonl");
    let output = tacho(&arguments, &["--out", &format!("json={}", points.display())], &dir);
    let said = text(&output.stderr);
    let summary = summary(&dir);
    assert_code(output.status.code(), &summary, &[]);
    assert_points_of_steps(&points, &dir);
    assert_eq!((&summary["kind"], &summary["scenario"]), (&"suite".into(), &"guide".into()));
    // Labels are totals, and say what the rates were multiplied by.
    let steps = rows(&summary);
    assert!(label_of(steps[0]).starts_with("10K x0.01"), "{}", steps[0]);
    assert_eq!(steps[0]["x"], 50.0);
    assert!(text(&output.stdout).contains("  TPS (in + out)"), "{said}");
    assert!(!text(&output.stdout).contains("target_throughput"), "{said}");
    // The same run stands in two figures and was made once.
    assert_eq!(steps.len(), 2, "{said}");
    // The last attempt of the row of a series.
    let of = |name: &str| {
        let series = summary["series"].as_array().expect("series");
        let series = series.iter().find(|series| series["name"] == name).expect(name);
        let last = series["steps"].as_array().and_then(|steps| steps.last()?.as_u64());
        &summary["steps"][last.expect("a step") as usize]
    };
    assert_eq!((of("qos1"), of("no-bridge")), (steps[0], steps[0]));
    // With bridges the run starts two brokers, which pass on all of it.
    assert_eq!(of("bridge"), steps[1]);
    let step = steps[1];
    for (what, count) in [("sent", 50), ("received", 50), ("lost", 0)] {
        assert_eq!(step[what], count, "{step:#}");
    }
    // What needs brokers that are not there is skipped.
    let more = ["--broker-cmd", "node1=never started {port}"];
    let dir = folder.path().join("other");
    let output = tacho(&arguments, &more, &dir);
    let table = text(&output.stdout);
    assert!(table.contains("skipped bridge, 10K: needs brokers that are bridged"), "{table}");
}

#[test]
fn several_brokers_have_figures_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("two.toml");
    let group = |name: &str, target: &str, rate: u32| {
        format!(
            "[groups.{name}]\nclients = 2\nconnect = {{ ramp = '100ms' }}\n{target}\n\
             [[groups.{name}.publish]]\ntopic = '{name}/{{{{i}}}}'\nqos = 1\n\
             rate = {{ total = {rate} }}\n[[groups.{name}.subscribe]]\nfilter = '{name}/{{{{i}}}}'\n"
        )
    };
    let scenario = "name = 'two'\n[vars]\ninflight = 8\n[targets.other]\n".to_owned()
        + &group("here", "inflight = \"{{inflight}}\"", 40)
        + &group("there", "target = 'other'", 80);
    fs::write(&file, scenario).expect("writes");
    let dir = folder.path().join("run");
    let name = file.to_str().expect("a name");
    let arguments = ["ladder", name, "inflight=8", "--pause", "0s", "--hold", "2s"];
    let output = tacho(&arguments, &["--warmup", "200ms"], &dir);
    let table = text(&output.stdout);
    let summary = summary(&dir);
    assert_code(output.status.code(), &summary, &[]);
    assert_eq!(summary["targets"][1]["name"], "other", "{summary:#}");
    let targets = summary["steps"][0]["targets"].as_array().expect("targets");
    let achieved = |name: &str| {
        let target = targets.iter().find(|target| target["name"] == name).expect(name);
        target["achieved_in_per_s"].as_f64().expect("a rate")
    };
    // 40 and 80 a second on a calm machine; on any other, both are kept back together.
    let (here, there) = (achieved(""), achieved("other"));
    assert!(here > 0.0 && there > here, "{here} {there}");
    assert!(table.contains("at other"), "{table}");
    assert!(dir.join("broker.log").exists() && dir.join("broker-other.log").exists());
    let wrong = ["--broker-cmd", "elsewhere=x {port}"];
    let output = tacho(&arguments, &wrong, &folder.path().join("none"));
    assert_eq!(output.status.code(), Some(104));
    assert!(text(&output.stderr).contains("only other"), "{}", text(&output.stderr));
}
