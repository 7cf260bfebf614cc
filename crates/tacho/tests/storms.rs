//! Scenarios in which something happens while the run is measured, small, end to end.

#[path = "common/storms.rs"]
mod common;

use common::{Happened, run};

#[test]
fn clients_that_are_dropped_at_once_come_back() {
    let vars = [
        "clients=30",
        "bystanders=3",
        "first_storm=500ms",
        "between=1s",
        "ramp_up=500ms",
        "warmup=500ms",
    ];
    let happened = run("reconnect-storm", &vars, &["--hold", "3s"]);
    let actions = happened.actions();
    assert_eq!(actions.len(), 2, "{:#}", happened.record);
    for action in actions {
        assert_eq!((&action["kind"], &action["group"]), (&"disconnect".into(), &"storm".into()));
        for key in ["clients", "connected", "ready"] {
            assert_eq!(action[key], 30, "{key} {action:#}");
        }
        assert_eq!((&action["given_up"], &action["phase"]), (&0.into(), &"measure".into()));
    }
    let until = happened.headline("time_to_99_percent_connected");
    assert!(until >= 100.0, "{until} ms: they pause for 100 ms");
    // Bystanders notice nothing that breaks a promise.
    happened.nothing_broken();
    let step = &happened.record["steps"][0];
    let group = |name: &str| Happened::group(step, name);
    assert_eq!(group("sub")["received"], group("sub")["expected"]);
    assert_eq!(group("sub")["expected"], 90);
    assert!(happened.table.contains("until 99 % are connected again"), "{}", happened.table);
    assert!(happened.table.contains("30 of 30 back"), "{}", happened.table);
    assert!(happened.page.contains(">all of storm break off<"));
    assert!(happened.page.contains("\"disconnect\""), "no mark in the charts");
}

const OWN: &str = r#"
name = "own"

[groups.pub]
clients = 2
reconnect = { attempts = 1000, first = "50ms", longest = "100ms" }

[[groups.pub.publish]]
topic = "own/{{i}}"
rate = { per_client = 20 }

[groups.sub]
clients = 2
reconnect = { attempts = 1000, first = "50ms", longest = "100ms" }

[[groups.sub.subscribe]]
filter = "own/{{i}}"

[[actions]]
at = "100ms"
run = "echo port {port} of {pid}; exit 3"

[[actions]]
at = "300ms"
every = "500ms"
times = 2
pause = { group = "sub", share = 0.5, for = "200ms" }

[[actions]]
at = "500ms"
run = "sleep 600"
timeout = "300ms"

[[actions]]
at = "1500ms"
kill = {}

[phases]
warmup = "200ms"
measure = "3s"
drain = "1s"
"#;

#[test]
fn commands_pauses_and_kills_of_a_file_are_in_the_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("own.toml");
    std::fs::write(&file, OWN).expect("writes");
    let happened = run(file.to_str().expect("a name"), &[], &[]);
    let kinds: Vec<_> = happened.actions().iter().map(|action| &action["kind"]).collect();
    assert_eq!(kinds, ["run", "pause", "run", "pause", "kill"], "{:#}", happened.record);
    let actions = happened.actions();
    assert_eq!(
        (&actions[0]["exit_code"], &actions[0]["output"]),
        (&3.into(), &"command-1.log".into())
    );
    assert!(happened.command_log.starts_with("port "), "{:?}", happened.command_log);
    assert_eq!((&actions[1]["clients"], &actions[3]["clients"]), (&1.into(), &1.into()));
    assert_eq!(actions[2]["exit_code"], serde_json::Value::Null);
    assert!(actions[2]["error"].as_str().is_some_and(|why| why.contains("too long")));
    assert!(actions[4]["length_s"].as_f64().is_some_and(|length| length > 0.0));
    assert_eq!(happened.record["steps"][0]["kills"], 1);
    happened.nothing_broken();
    assert!(happened.table.contains("exit code 3"), "{}", happened.table);
    // The resolved scenario gives the same run again.
    let again = tacho_lab::scenario::SourceText::new("again", &happened.scenario);
    let limits = tacho_lab::scenario::Limits::NONE;
    let again = tacho_lab::scenario::Scenario::parse(&again, &[], limits).expect("parses");
    assert_eq!((again.actions.len(), again.schedule().len()), (4, 5));
}
