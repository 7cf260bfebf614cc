//! The console by its API, as a job of CI or its pages use it.

mod access;
mod agents;
mod broker;
mod ci;
mod client;
mod repeats;
mod starts;
mod uploads;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use client::{Console, long, next_event, small};

/// A folder for runs; those that a test leaves running end with it.
struct Folder(tempfile::TempDir);

fn folder() -> Folder {
    Folder(tempfile::tempdir().expect("temporary directory"))
}

impl Folder {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for pid in runs_below(self.path()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
    }
}

/// Processes of runs whose directories are below `here`, or are it.
fn runs_below(here: &Path) -> Vec<rustix::process::Pid> {
    let here = here.display().to_string();
    let run = |process: fs::DirEntry| {
        let line = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let is_run = line.contains("\0--dir\0") && line.contains(&here);
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
        pid.filter(|_| is_run).and_then(rustix::process::Pid::from_raw)
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(run).collect()
}

#[test]
fn a_run_goes_from_request_to_summary_and_is_repeated_compared_and_kept() {
    let place = folder();
    let console = Console::start(place.path());
    let mut request = small(1.0);
    request["name"] = json!("Monday");
    request["tags"] = json!(["nightly"]);
    let id = console.begin(&request);
    let run = console.wait_for(&id, "finished");
    assert_eq!((&run["name"], &run["tags"][0]), (&json!("Monday"), &json!("nightly")));
    assert_eq!(run["summary"]["scenario"], "symmetric");
    assert_eq!(run["verdict"], run["summary"]["verdict"]);
    assert_eq!(run["request"]["variables"]["qos"], Value::Null);
    assert_eq!(run["request"]["variables"]["publishers"], "2");
    let line = run["command_line"].as_str().expect("has one");
    assert!(line.starts_with("tacho run symmetric --var publishers=2"), "{line}");
    assert!(run["achieved_tps"].as_f64().is_some_and(|tps| tps > 0.0), "{run}");
    for file in ["report.html", "report.zh.html", "files/summary.json", "files/console.log"] {
        assert_eq!(console.get(&format!("/runs/{id}/{file}")).status, 200, "{file}");
    }
    let files = run["files"].as_array().expect("are listed");
    assert!(files.iter().any(|file| file["name"] == "summary.json" && file["kind"] == "record"));
    for file in files {
        let name = file["name"].as_str().expect("has one");
        let answer = console.get(&format!("/runs/{id}/files/{name}"));
        assert_eq!(answer.status, 200, "{name}");
        // What the run says at its very end comes after its record.
        let is_whole = file["bytes"].as_u64() == Some(answer.body.len() as u64);
        assert!(is_whole || file["kind"] == "log", "{name}: {} {file}", answer.body.len());
    }
    assert_eq!(run["files_cut"], false);
    let chinese = console.get(&format!("/runs/{id}/report.zh.html"));
    assert!(
        chinese.body.contains("lang=\"zh") && chinese.head.contains("sandbox"),
        "{}",
        chinese.head
    );
    // The addresses that links have had so far.
    let old = format!("GET /runs/{id}/report.html");
    let headers = format!("Cookie: tacho_token={}", console.token);
    assert_eq!(console.raw(&old, &headers, b"").status, 200);

    let again = console.post(&format!("/runs/{id}/repeat"), &Value::Null);
    assert_eq!(again.status, 201, "{}", again.body);
    let again = again.json()["id"].as_str().expect("has one").to_owned();
    assert_ne!(again, id);
    assert_eq!(console.wait_for(&again, "finished")["name"], "Monday");
    let compared = console.read(&format!("/compare?ids={id},{again}"));
    assert_eq!(compared["sides"].as_array().map(Vec::len), Some(2));
    assert_eq!(compared["sides"][1]["label"], again.as_str());
    assert!(!compared.to_string().contains(place.path().to_str().expect("UTF-8")), "{compared}");
    let trend = console.read("/trends?scenario=symmetric&figure=achieved_tps");
    assert!(trend["points"].as_array().is_some_and(|points| points.len() <= 2), "{trend}");

    let page = console.read("/runs?sort=-started&limit=1&tag=nightly");
    assert_eq!(
        (page["total"].as_u64(), page["rows"][0]["id"].as_str()),
        (Some(2), Some(again.as_str()))
    );
    let next = page["next"].as_str().expect("there is more");
    let page = console.read(&format!("/runs?limit=1&tag=nightly&cursor={next}"));
    assert_eq!((page["rows"][0]["id"].as_str(), &page["next"]), (Some(id.as_str()), &Value::Null));
}

#[test]
fn requests_that_make_no_sense_name_their_field_and_start_nothing() {
    let place = folder();
    let console = Console::start(place.path());
    for (change, field) in [
        (json!({"scenario": "no-such"}), Value::Null),
        (json!({"scenario": "../x.toml"}), json!("scenario")),
        (json!({"variables": {"qos": 7}}), json!("variables.qos")),
        (json!({"variables": {"nothing": 1}}), json!("variables.nothing")),
        (json!({"broker": "mqtt://user:hunter2@127.0.0.1"}), json!("broker")),
        (
            json!({"credentials": {"password_file": "/no/such/file"}}),
            json!("credentials.password_file"),
        ),
        (json!({"thresholds": ["loss==0", "p99"]}), json!("thresholds[1]")),
        (json!({"outputs": ["nowhere"]}), json!("outputs[0]")),
        (json!({"virtual_users": {"absent": 1}}), json!("virtual_users.absent")),
        (json!({"tags": ["a\nb"]}), json!("tags")),
        (json!({"password": "hunter2"}), json!("password")),
    ] {
        let mut request = small(1.0);
        for (key, value) in change.as_object().expect("is one") {
            request[key] = value.clone();
        }
        let answer = console.post("/runs", &request);
        assert_eq!(
            (answer.status, &answer.json()["error"]["field"]),
            (400, &field),
            "{}",
            answer.body
        );
        let error = &answer.json()["error"];
        assert!(error["code"].is_string() && error["message_zh"].is_string(), "{error}");
        assert!(!answer.body.contains("hunter2"), "{}", answer.body);
    }
    let wrong = console.raw(
        "POST /api/v1/runs",
        &format!("Authorization: Bearer {}\nContent-Type: application/json", console.token),
        b"{\"scenario\":",
    );
    assert_eq!(wrong.status, 400, "{}", wrong.body);
    assert_eq!(console.read("/runs")["total"], 0);
    let names: Vec<_> = fs::read_dir(place.path()).expect("lists").flatten().collect();
    let left: Vec<_> = names.iter().filter(|entry| entry.path().is_dir()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_run_that_goes_on_says_how_far_it_is() {
    let place = folder();
    let console = Console::start(place.path());
    let mut request = long();
    request["command"] = json!("ladder");
    request["steps"] = json!("qos=0,1");
    let id = console.begin(&request);
    console.wait_for(&id, "running");
    let deadline = std::time::Instant::now() + tacho_testkit::PATIENCE;
    let progress = loop {
        let progress = console.read(&format!("/runs/{id}"))["progress"].clone();
        if progress["phase"] == "measure" {
            break progress;
        }
        assert!(std::time::Instant::now() < deadline, "it never measures: {progress}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!((&progress["step"]["number"], &progress["step"]["of"]), (&json!(1), &json!(2)));
    assert_eq!(progress["planned_s"], 300.0, "{progress}");
    assert!(progress["step_planned_s"].as_f64().is_some_and(|planned| planned > 300.0));
    assert_eq!(console.read("/queue")["running"]["progress"], progress, "lists say it, too");
    assert_eq!(console.post(&format!("/runs/{id}/stop"), &Value::Null).status, 202);
    let ended = console.wait_for(&id, "finished");
    assert_eq!(ended["progress"], Value::Null);
    assert!(!place.path().join(&id).join("progress.json").exists());
}

#[test]
fn a_preview_says_what_a_run_would_do() {
    let place = folder();
    let console = Console::start(place.path());
    let preview = console.post("/preview", &small(3.0));
    assert_eq!(preview.status, 200, "{}", preview.body);
    let preview = preview.json();
    assert_eq!(preview["problems"], json!([]));
    assert_eq!(
        (&preview["offered"]["clients"], &preview["offered"]["messages_in_per_s"]),
        (&json!(4), &json!(20.0))
    );
    assert!(preview["scenario_toml"].as_str().is_some_and(|toml| toml.contains("[groups.pub]")));
    let wrong =
        console.post("/preview", &json!({"scenario": "symmetric", "variables": {"qos": 7}}));
    assert_eq!(wrong.json()["problems"][0]["field"], "variables.qos", "{}", wrong.body);
    let scenarios = console.read("/scenarios");
    let all = scenarios["scenarios"].as_array().expect("a list");
    let symmetric = all.iter().find(|one| one["name"] == "symmetric").expect("is there");
    assert_eq!(symmetric["variables"][2]["choices"], json!(["0", "1", "2"]));
    assert_eq!(symmetric["variables"][0]["help_zh"], "发布消息的客户端数");
    assert!(scenarios["published"].as_array().is_some_and(|rows| rows.len() > 10));
    assert!(console.read("/machine")["doctor"].as_array().is_some_and(|rows| !rows.is_empty()));
}

#[test]
fn one_run_goes_on_and_others_wait_in_order() {
    let place = folder();
    let console = Console::start(place.path());
    let first = console.begin(&long());
    console.wait_for(&first, "running");
    let waiting: Vec<String> = (0..3).map(|_| console.begin(&small(0.5))).collect();
    let position = |id: &str| console.read(&format!("/runs/{id}"))["position"].clone();
    assert_eq!(waiting.iter().map(|id| position(id)).collect::<Vec<_>>(), [1, 2, 3]);
    let queue = console.read("/queue");
    assert_eq!(
        (&queue["running"]["id"], queue["queued"].as_array().map(Vec::len)),
        (&json!(first), Some(3))
    );

    let cancel = |id: &str| console.post(&format!("/runs/{id}/cancel"), &Value::Null);
    let canceled = cancel(&waiting[0]);
    assert_eq!((canceled.status, &canceled.json()["state"]), (200, &json!("canceled")));
    assert_eq!((cancel(&waiting[0]).status, cancel(&first).status), (409, 409));
    assert_eq!((position(&waiting[1]), position(&waiting[2])), (json!(1), json!(2)));
    let refused = console.send("DELETE", &format!("/runs/{first}"), &Value::Null);
    assert_eq!(refused.status, 409, "{}", refused.body);

    let stop = |id: &str| console.post(&format!("/runs/{id}/stop"), &Value::Null).status;
    assert_eq!((stop(&waiting[1]), stop(&first)), (409, 202));
    let stopped = console.wait_for(&first, "finished");
    assert_eq!((&stopped["verdict"], &stopped["progress"]), (&json!("aborted"), &Value::Null));
    let (second, third) =
        (console.wait_for(&waiting[1], "finished"), console.wait_for(&waiting[2], "finished"));
    let started = |run: &Value| run["started"].as_str().map(str::to_owned);
    assert!(started(&second) < started(&third), "{second} {third}");
    assert_eq!(console.wait_for(&waiting[0], "canceled")["summary"], Value::Null);
    // A canceled one can be asked for again.
    let again = console.post(&format!("/runs/{}/repeat", waiting[0]), &Value::Null);
    let again = again.json()["id"].as_str().expect("is taken").to_owned();
    console.wait_for(&again, "finished");
}

#[test]
fn a_run_survives_the_console_and_the_next_one_finds_it_and_the_queue() {
    let place = folder();
    let console = Console::start(place.path());
    let (running, waiting) = (console.begin(&long()), console.begin(&small(0.5)));
    console.wait_for(&running, "running");
    let process = || {
        let text = fs::read_to_string(place.path().join(&running).join("request.json"));
        let request: Value = serde_json::from_str(&text.expect("reads")).expect("is JSON");
        request["process"]["pid"].clone()
    };
    let before = process();
    assert!(before.is_number(), "{before}");
    let token = console.token.clone();
    console.kill();
    let console = Console::start(place.path());
    assert_eq!(console.token, token, "bookmarks survive");
    let queue = console.read("/queue");
    assert_eq!(
        (&queue["running"]["id"], &queue["queued"][0]["id"]),
        (&json!(running), &json!(waiting))
    );
    assert_eq!(process(), before, "it is not started twice");
    let mut events = console.events(&format!("/runs/{running}/events"));
    next_event(&mut events, "event: second");
    assert_eq!(console.post(&format!("/runs/{running}/stop"), &Value::Null).status, 202);
    next_event(&mut events, "event: end");
    assert_eq!(console.wait_for(&running, "finished")["verdict"], "aborted");
    console.wait_for(&waiting, "finished");
}

#[test]
fn events_of_a_run_come_to_every_viewer_with_their_history() {
    let place = folder();
    let console = Console::start(place.path());
    let id = console.begin(&long());
    let waits = console.begin(&small(0.5));
    let mut queued = console.events(&format!("/runs/{waits}/events"));
    assert!(next_event(&mut queued, "event: waiting").contains("\"position\":1"));
    let mut lists = console.events("/events");
    next_event(&mut lists, "\"type\":\"ready\"");
    let mut viewers: Vec<_> =
        (0..3).map(|_| console.events(&format!("/runs/{id}/events"))).collect();
    for viewer in &mut viewers {
        next_event(viewer, "event: hello");
        next_event(viewer, "event: second");
    }
    let cancel = console.post(&format!("/runs/{waits}/cancel"), &Value::Null);
    assert_eq!(cancel.status, 200);
    next_event(&mut lists, "\"canceled\"");
    next_event(&mut queued, "event: end");
    console.post(&format!("/runs/{id}/stop"), &Value::Null);
    next_event(&mut viewers[0], "event: end");
    console.wait_for(&id, "finished");
    // Of one that has ended, too, with its whole course.
    let table = |name: &str| fs::read_to_string(place.path().join(&id).join(name)).expect("reads");
    let mut past = console.events(&format!("/runs/{id}/events"));
    let hello = next_event(&mut past, "event: hello");
    assert!(hello.contains("\"aborted\"") && hello.contains("\"clients\":4"), "{hello}");
    for _ in table("timeseries.csv").lines().skip(1) {
        next_event(&mut past, "event: second");
    }
    let resources = table("resources.csv");
    let times: BTreeSet<&str> =
        resources.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    for _ in times {
        next_event(&mut past, "event: host");
    }
    next_event(&mut past, "event: end");
}

#[test]
fn notes_survive_and_deleted_runs_come_back() {
    let place = folder();
    for id in ["20260101-a", "20260102-b"] {
        let record = json!({"verdict": "ok", "scenario": "symmetric", "started_at": "2026-01-02T03:04:05.000Z"});
        fs::create_dir(place.path().join(id)).expect("creates");
        fs::write(place.path().join(id).join("summary.json"), record.to_string()).expect("writes");
    }
    let console = Console::start(place.path());
    let path = "/runs/20260101-a";
    let row =
        console.send("PATCH", path, &json!({"tags": ["good"], "starred": true, "note": "why"}));
    assert_eq!((row.status, &row.json()["note"]), (200, &json!("why")), "{}", row.body);
    let wrong = console.send("PATCH", path, &json!({"tags": [""]}));
    assert_eq!((wrong.status, &wrong.json()["error"]["field"]), (400, &json!("tags")));
    let wrong = console.send("PATCH", path, &json!({"verdict": "ok"}));
    assert_eq!((wrong.status, &wrong.json()["error"]["field"]), (400, &json!("verdict")));
    let base = console.send("PATCH", "/runs/20260102-b", &json!({"baseline": true}));
    assert_eq!(base.json()["baseline"], true, "{}", base.body);
    assert_eq!(console.read(path)["baseline_run"], "20260102-b");
    assert_eq!(console.read("/runs/20260102-b")["baseline_run"], Value::Null);
    console.kill();

    let console = Console::start(place.path());
    let page = console.read("/runs?starred=1&q=GOOD");
    assert_eq!((&page["total"], &page["rows"][0]["note"]), (&json!(1), &json!("why")));
    assert_eq!(console.send("DELETE", path, &Value::Null).status, 204);
    assert_eq!(console.get(path).status, 404);
    assert_eq!(console.read("/runs")["total"], 1);
    assert_eq!(console.send("DELETE", path, &Value::Null).status, 404);
    let back = console.post(&format!("{path}/restore"), &Value::Null);
    assert_eq!((back.status, &back.json()["tags"][0]), (200, &json!("good")), "{}", back.body);
    assert_eq!(console.post(&format!("{path}/restore"), &Value::Null).status, 404);
    assert_eq!(console.read("/runs")["total"], 2);
}

#[test]
fn the_trash_is_listed_restored_from_at_any_time_and_emptied_by_operators_only() {
    let place = folder();
    for id in ["20260101-a", "20260102-b", "20260103-c"] {
        let record = json!({"verdict": "ok", "scenario": "symmetric", "started_at": "2026-01-02T03:04:05.000Z"});
        fs::create_dir(place.path().join(id)).expect("creates");
        fs::write(place.path().join(id).join("summary.json"), record.to_string()).expect("writes");
    }
    let tokens = place.path().join("tokens");
    fs::write(&tokens, "viewer 0123456789abcdefX\n").expect("writes");
    let console = Console::start(place.path());
    assert_eq!(console.read("/trash")["total"], 0);
    for id in ["20260101-a", "20260102-b", "20260103-c"] {
        assert_eq!(console.send("DELETE", &format!("/runs/{id}"), &Value::Null).status, 204);
    }
    // The way back does not end with the page from which the run was deleted.
    console.kill();
    let mut console = Console::start_with(
        place.path(),
        &["--token-file", tokens.to_str().expect("is UTF-8")],
        None,
    );
    let trash = console.read("/trash");
    assert_eq!((&trash["total"], &trash["rows"][0]["scenario"]), (&json!(3), &json!("symmetric")));
    assert!(trash["rows"][0]["deleted"].is_string() && trash["bytes"].as_u64() > Some(200));
    let back = console.post("/runs/20260101-a/restore", &Value::Null);
    assert_eq!((back.status, &back.json()["state"]), (200, &json!("finished")), "{}", back.body);
    assert_eq!(
        (&console.read("/trash")["total"], &console.read("/runs")["total"]),
        (&json!(2), &json!(1))
    );

    let operator = std::mem::replace(&mut console.token, "0123456789abcdefX".to_owned());
    assert_eq!(console.read("/trash")["total"], 2);
    assert_eq!(console.send("DELETE", "/trash", &Value::Null).status, 403);
    assert_eq!(console.send("DELETE", "/trash/20260102-b", &Value::Null).status, 403);
    console.token = operator;
    assert_eq!(
        console.send("DELETE", "/trash/20260101-a", &Value::Null).status,
        404,
        "is no run of it"
    );
    let one = console.send("DELETE", "/trash/20260102-b", &Value::Null);
    assert_eq!((one.status, &one.json()["removed"]), (200, &json!(1)), "{}", one.body);
    let rest = console.send("DELETE", "/trash", &Value::Null).json();
    assert_eq!(rest["removed"], 1);
    assert!(rest["bytes"].as_u64() > Some(50), "{rest}");
    assert_eq!(console.post("/runs/20260103-c/restore", &Value::Null).status, 404);
    assert_eq!(
        (&console.read("/trash")["total"], &console.read("/runs")["total"]),
        (&json!(0), &json!(1))
    );
}

#[test]
fn a_comparison_has_its_report_in_both_languages() {
    let place = folder();
    let console = Console::start(place.path());
    let mut request = small(0.3);
    request["command"] = json!("compare");
    request["broker"] = json!(["builtin", "builtin"]);
    request["repeat"] = json!(1);
    let id = console.begin(&request);
    assert_eq!(console.wait_for(&id, "finished")["kind"], "comparison");
    for (page, lang) in [("report.html", "lang=\"en"), ("report.zh.html", "lang=\"zh")] {
        let report = console.get(&format!("/runs/{id}/{page}"));
        assert_eq!(report.status, 200, "{page}: {}", report.body);
        assert!(report.body.contains(lang), "{page}");
    }
}

#[test]
fn a_run_waits_while_another_program_has_the_machine() {
    let place = folder();
    let lock = place.path().join("lock");
    let runs = place.path().join("runs");
    fs::create_dir(&runs).expect("creates");
    let console = Console::start_with(&runs, &[], Some(&lock));
    let mut other = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["run", "symmetric", "--var", "publishers=2", "--var", "subscribers=2"])
        .args(["--var", "target_throughput=20", "--hold", "10m", "--quiet", "--dir"])
        .arg(place.path().join("elsewhere"))
        .env("TACHO_MACHINE_LOCK", &lock)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let deadline = std::time::Instant::now() + tacho_testkit::PATIENCE;
    while console.read("/queue")["held_by"].is_null() {
        assert!(std::time::Instant::now() < deadline, "no program holds the machine");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let id = console.begin(&small(0.5));
    let run = console.read(&format!("/runs/{id}"));
    assert_eq!((&run["state"], &run["position"]), (&json!("queued"), &json!(1)));
    let held_by = console.read("/queue")["held_by"].as_str().expect("is held").to_owned();
    assert!(held_by.contains("tacho run symmetric") && held_by.contains("elsewhere"), "{held_by}");
    let pid = rustix::process::Pid::from_child(&other);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is ours");
    other.wait().expect("ends");
    console.wait_for(&id, "finished");
}

#[test]
fn a_folder_has_one_console() {
    let place = folder();
    let _console = Console::start(place.path());
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["serve", "--listen", "0", "--dir"])
        .arg(place.path())
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(104), "{said}");
    assert!(said.contains("another console"), "{said}");
}

#[test]
fn a_run_that_fails_at_its_start_says_why() {
    let place = folder();
    let console = Console::start(place.path());
    let mut request = small(0.5);
    // Nothing listens there.
    request["broker"] = json!("mqtt://127.0.0.1:1");
    let id = console.begin(&request);
    let run = console.wait_for(&id, "broken");
    let why = run["problems"][0]["message"].as_str().expect("is said");
    assert!(why.contains("cannot connect to mqtt://127.0.0.1:1"), "{run}");
    assert_eq!(
        (&run["target"], &run["scenario"]),
        (&json!("mqtt://127.0.0.1:1"), &json!("symmetric"))
    );
}
