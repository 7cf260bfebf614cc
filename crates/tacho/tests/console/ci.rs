//! The commands of docs/console.md for jobs of CI, cron and systemd, as a shell runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::client::{Console, long, small};
use crate::folder;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/console.md");
    fs::read_to_string(path).expect("is there")
}

/// Whether these programs are there; they must be with `TACHO_REQUIRE_PEERS=1`.
fn has(programs: &[&str]) -> bool {
    let is_there = |program: &&str| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let missing: Vec<&&str> = programs.iter().filter(|program| !is_there(program)).collect();
    let required = std::env::var("TACHO_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(missing.is_empty() || !required, "not installed: {missing:?}");
    if !missing.is_empty() {
        println!("skipped: not installed: {missing:?}");
    }
    missing.is_empty()
}

/// The content of `cat > NAME <<'EOF'`.
fn file(document: &str, name: &str) -> String {
    let (_, rest) = document.split_once(&format!("cat > {name} <<'EOF'\n")).expect("is shown");
    rest.split_once("\nEOF\n").expect("ends").0.to_owned() + "\n"
}

/// The command of the line that begins so, and of those that continue it.
fn command(document: &str, start: &str) -> String {
    let (_, rest) = document.split_once(&format!("\n{start}")).expect("is shown");
    let mut lines = rest.lines();
    let mut command = lines.next().unwrap_or_default().to_owned();
    while let Some(part) = command.strip_suffix('\\') {
        command = format!("{part}{}", lines.next().unwrap_or_default().trim());
    }
    command
}

fn shell(console: &Console, place: &Path, command: &str) -> Output {
    let address = format!("http://{}", console.address);
    let command = command.replace("http://127.0.0.1:9740", &address);
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(place)
        .env("TACHO_TOKEN", &console.token)
        .env("TACHO_CONSOLE", address)
        .env("HOME", place)
        .output();
    output.expect("starts")
}

#[test]
fn the_script_of_the_documents_waits_for_its_run_and_tells_its_verdict() {
    if !has(&["curl", "jq"]) {
        return;
    }
    let (runs, place) = (folder(), folder());
    let console = Console::start(runs.path());
    let document = document();
    let script = file(&document, "console-run.sh");
    fs::write(place.path().join("console-run.sh"), script).expect("writes");
    // As it stands there, but smaller.
    let mut request: Value =
        serde_json::from_str(&file(&document, "request.json")).expect("is JSON");
    for (key, value) in small(0.5).as_object().expect("is one") {
        request[key] = value.clone();
    }
    fs::write(place.path().join("request.json"), request.to_string()).expect("writes");
    let output = shell(&console, place.path(), "sh console-run.sh");
    let said = String::from_utf8_lossy(&output.stderr);
    let rows = console.read("/runs")["rows"].clone();
    assert_eq!((&rows[0]["state"], rows.as_array().map(Vec::len)), (&json!("finished"), Some(1)));
    let is_ok = rows[0]["verdict"] == "ok";
    assert_eq!(output.status.success(), is_ok, "{said} {rows}");
    let events = fs::read_to_string(place.path().join("events.txt")).expect("is written");
    assert!(events.contains("event: end"), "{events:.2000}");
    // A request that makes no sense is an error of the job, with its reason.
    fs::write(place.path().join("request.json"), r#"{"scenario": "no-such"}"#).expect("writes");
    let output = shell(&console, place.path(), "sh console-run.sh");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("no-such"), "{said}");
    assert_eq!(console.read("/runs")["total"], 1);
}

#[test]
fn the_commands_of_the_documents_put_runs_into_the_queue() {
    if !has(&["curl"]) {
        return;
    }
    let (runs, place) = (folder(), folder());
    let console = Console::start(runs.path());
    let going = console.begin(&long());
    console.wait_for(&going, "running");
    let header = format!("Authorization: Bearer {}\n", console.token);
    fs::write(place.path().join(".tacho-header"), header).expect("writes");
    let document = document();
    let systemd = command(&document, "ExecStart=");
    let home = place.path().to_str().expect("is UTF-8");
    for line in [
        format!("curl {}", command(&document, "curl --fail-with-body ")),
        command(&document, "15 2 * * *  "),
        systemd.replace("%h", home).replace("/usr/bin/curl", "curl"),
    ] {
        let output = shell(&console, place.path(), &line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        let taken: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        assert_eq!(taken["state"], "queued", "{line}: {taken}");
        let id = taken["id"].as_str().expect("has one");
        let look = format!("curl {}", command(&document, "curl -s "));
        let known = look.rsplit('/').next().unwrap_or_default().to_owned();
        let output = shell(&console, place.path(), &look.replace(&known, id));
        let run: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        assert_eq!((&run["id"], &run["state"]), (&taken["id"], &json!("queued")), "{look}");
        assert_eq!(console.send("DELETE", &format!("/runs/{id}"), &Value::Null).status, 204);
    }
}
