//! Scenarios in which something happens while the run is measured, small, end to end.

use tacho_testkit::runs::storms::{self, Happened};

fn run(scenario: &str, vars: &[&str], arguments: &[&str]) -> Happened {
    storms::run(env!("CARGO_BIN_EXE_tacho"), scenario, vars, arguments)
}

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
    let again = tacho_scenario::SourceText::new("again", &happened.scenario);
    let limits = tacho_scenario::Limits::NONE;
    let again = tacho_scenario::Scenario::parse(&again, &[], limits).expect("parses");
    assert_eq!((again.actions.len(), again.schedule().len()), (4, 5));
}

/// What all of them can be made small by.
const SHORT: [&str; 2] = ["ramp_up=300ms", "warmup=300ms"];

fn small(scenario: &str, vars: &[&str], hold: &str) -> Happened {
    let vars: Vec<&str> = SHORT.iter().chain(vars).copied().collect();
    run(scenario, &vars, &["--hold", hold])
}

#[test]
fn second_connections_are_served_and_first_ones_are_told() {
    for (expiry, told) in [("session_expiry=0s", "0s"), ("session_expiry=1m", "1m")] {
        let vars =
            ["clients=10", "first_takeover=300ms", "between=1s", "over=300ms", "drain=5s", expiry];
        let happened = small("takeover", &vars, "2s");
        happened.nothing_broken();
        for action in happened.actions() {
            for key in ["clients", "connected", "ready", "displaced", "told"] {
                assert_eq!(action[key], 10, "{told} {key} {action:#}");
            }
        }
        assert_eq!(happened.headline("takeover_told"), 100.0);
        assert!(happened.headline("takeover_served_99") > 0.0);
    }
}

#[test]
fn clients_that_stay_connected_miss_nothing_while_others_come_and_go() {
    let vars = ["clients=40", "share=0.25", "pause=100ms", "pairs=5", "rate=50", "drain=5s"];
    let happened = small("churn", &vars, "3s");
    happened.nothing_broken();
    let kinds = happened.actions().iter().filter(|action| action["kind"] == "disconnect");
    assert_eq!(kinds.count(), 3, "{:#}", happened.record);
    let per_second = happened.headline("connects_per_second");
    // Ten of forty are disconnected each second; clients that are offline then are skipped, on a
    // busy machine many.
    assert!(per_second > 0.0 && per_second <= 10.0, "{per_second}");
    let sub = Happened::group(&happened.record["steps"][0], "sub");
    assert_eq!((&sub["expected"], &sub["received"]), (&750.into(), &750.into()));
}

#[test]
fn new_subscribers_get_all_retained_messages() {
    let vars = ["topics=100", "subscribers=3", "after=500ms", "bystanders=2", "drain=5s"];
    let happened = run(
        "retained-flood",
        &[&["ramp_up=300ms", "warmup=1s"][..], &vars].concat(),
        &["--hold", "2s"],
    );
    happened.nothing_broken();
    let action = &happened.actions()[0];
    let counts = ["clients", "ready", "retained_expected", "retained", "complete"];
    assert_eq!(counts.map(|key| action[key].as_u64()), [3, 3, 300, 300, 3].map(Some), "{action:#}");
    assert_eq!(happened.headline("retained_complete"), 100.0);
    assert!(happened.headline("last_retained") > 0.0);
}

#[test]
fn all_wills_come_when_their_clients_break_off() {
    let vars = [
        "clients=20",
        "watchers=2",
        "first_storm=300ms",
        "between=1s",
        "pause=200ms",
        "bystanders=2",
    ];
    let happened = small("will-storm", &vars, "2500ms");
    happened.nothing_broken();
    assert_eq!(happened.actions().len(), 2);
    for action in happened.actions() {
        let counts = ["clients", "wills_expected", "wills", "connected"];
        assert_eq!(
            counts.map(|key| action[key].as_u64()),
            [20, 40, 40, 20].map(Some),
            "{action:#}"
        );
    }
    assert_eq!(happened.headline("wills_complete"), 100.0);
    assert!(happened.headline("last_will") > 0.0);
}

#[test]
fn filters_in_the_way_cost_the_broker_something_and_deliver_nothing() {
    let vars = ["publishers=20", "filters=20", "watchers=1", "after=2s", "rate=20", "drain=5s"];
    let happened = small("wildcard", &vars, "5s");
    happened.nothing_broken();
    assert!(happened.headline("cpu_per_message_before") > 0.0);
    assert!(happened.headline("cpu_per_message_after") > 0.0);
    let step = &happened.record["steps"][0];
    assert_eq!(Happened::group(step, "wild")["received"], 0);
    assert_eq!(Happened::group(step, "sub")["received"], 2000);
    // One delivery of each message counts, however many copies overlapping filters bring.
    assert_eq!(Happened::group(step, "watch")["received"], 2000);
}

#[test]
fn others_are_served_while_some_do_not_read() {
    let vars = [
        "publishers=10",
        "rate=100",
        "payload_size=4096",
        "fast=2",
        "slow=2",
        "after=1s",
        "pause=1s",
        "drain=5s",
    ];
    let happened = small("slow-consumer", &vars, "4s");
    happened.nothing_broken();
    for name in ["calm_p99_before", "calm_p99_during", "calm_p99_after"] {
        assert!(happened.headline(name) > 0.0, "{name}");
    }
    let step = &happened.record["steps"][0];
    let fast = Happened::group(step, "fast");
    assert_eq!((&fast["expected"], &fast["received"]), (&8000.into(), &8000.into()));
    let slow = Happened::group(step, "slow");
    assert_eq!((&slow["concerned"], &slow["lost"]), (&true.into(), &0.into()), "{slow:#}");
}

#[test]
fn a_soak_tells_trends() {
    let happened = small("soak", &["pairs=5", "rate=40"], "4s");
    happened.nothing_broken();
    for name in ["memory_drift", "latency_drift_p50"] {
        happened.headline(name);
    }
    assert!(happened.table.contains("per hour"), "{}", happened.table);
}

#[test]
fn everything_at_once_arrives() {
    let vars = ["devices=10", "billing=4", "services=2", "firmware_size=8192"];
    let happened = small("mixed", &vars, "2s");
    happened.nothing_broken();
    assert_eq!(happened.headline("delivered"), 100.0);
    let step = &happened.record["steps"][0];
    for name in ["service", "dashboard", "actor", "ledger", "updater"] {
        let group = Happened::group(step, name);
        assert!(group["expected"].as_u64() > Some(0), "{group:#}");
        assert_eq!(group["received"], group["expected"], "{group:#}");
    }
}

#[test]
fn requests_are_answered() {
    for qos in ["qos=0", "qos=2"] {
        let vars = ["requesters=10", "responders=2", "rate=20", qos];
        let happened = small("request-response", &vars, "2s");
        happened.nothing_broken();
        assert_eq!(happened.headline("answered"), 100.0);
        let step = &happened.record["steps"][0];
        for name in ["ask", "answer"] {
            let group = Happened::group(step, name);
            assert_eq!(
                (&group["expected"], &group["received"]),
                (&400.into(), &400.into()),
                "{name}"
            );
        }
        assert_eq!((&step["corrupted"], &step["unexpected"]), (&0.into(), &0.into()), "{step:#}");
        // An answer has come two ways through the broker, its request one; buckets of long times
        // are wide.
        let p50 = |name: &str| Happened::group(step, name)["latency_us"]["p50"].as_u64();
        assert!(p50("answer") > Some(0) && p50("ask") >= p50("answer"), "{step:#}");
        assert!(happened.headline("round_trip_p50") > 0.0);
    }
}

/// Two bridged brokers, one of which is killed while messages flow: every
/// acknowledged message arrives.
#[test]
fn a_bridged_broker_that_is_killed_costs_nothing_that_was_acknowledged() {
    for qos in ["qos=1", "qos=2"] {
        let vars = [
            qos,
            "publishers=5",
            "subscribers=5",
            "target_throughput=50",
            "connections=3",
            "kill_at=1s",
            "ramp_up=500ms",
            "warmup=500ms",
        ];
        let happened = run("bridge-restart", &vars, &["--hold", "4s"]);
        happened.nothing_broken();
        let record = &happened.record;
        let step = &record["steps"][0];
        assert_eq!((&step["kills"], &step["sessions_lost"]), (&1.into(), &0.into()), "{record:#}");
        assert!(step["received"].as_u64() > Some(100), "{step:#}");
        let [action] = happened.actions() else { panic!("{record:#}") };
        assert_eq!((&action["kind"], &action["phase"]), (&"kill".into(), &"measure".into()));
        let restart = &record["restarts"][0];
        assert_eq!(restart["target"], "node2");
        assert!(restart["waiting_max"].as_u64() > Some(0), "{restart:#}");
        assert!(happened.headline("restart_serving") > 0.0);
        // All bridges are up again and empty, later than the broker serves.
        assert!(happened.headline("bridge_drained") > happened.headline("restart_serving"));
        assert!(happened.table.contains("waited in bridges at the worst"), "{}", happened.table);
        for words in ["Broker node1", "Broker node2", "Messages that wait in its bridges"] {
            assert!(happened.page.contains(words), "{words}");
        }
    }
}
