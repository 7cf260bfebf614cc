//! Every built-in scenario against Tacho's own broker, small and fully verified.

use std::fs;
use std::process::Command;

use tacho_testkit::runs::assert_code;
use tacho_testkit::runs::small::{SMALL, Small};

const TACHO: &str = env!("CARGO_BIN_EXE_tacho");

fn run(scenario: &str) {
    let small: Vec<&Small> = SMALL.iter().filter(|small| small.scenario == scenario).collect();
    let [small] = small[..] else { panic!("{} of {scenario}", small.len()) };
    small.run(TACHO, &[]).expect("all came that must");
}

#[test]
fn symmetric() {
    run("symmetric");
}

#[test]
fn fan_in() {
    run("fan-in");
}

#[test]
fn fan_out() {
    run("fan-out");
}

/// Two brokers that the run starts, each with its own row, over a bridge.
#[test]
fn bridge() {
    let small = Small {
        scenario: "bridge",
        vars: &["publishers=5", "subscribers=5", "target_throughput=50", "connections=4", "qos=2"],
        clients: 20,
        sent: 200,
        received: 200,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let record = small.run_in(TACHO, folder.path(), &[]).expect("all came that must");
    let targets = record["targets"].as_array().expect("targets");
    assert_eq!(targets.len(), 2, "{record:#}");
    for (target, name) in targets.iter().zip(["node1", "node2"]) {
        assert_eq!((&target["name"], &target["kind"]), (&name.into(), &"built_in".into()));
        let command = target["command"].as_str().expect("a command");
        assert!(command.contains(&format!("bridges-{name}.toml")), "{command}");
    }
    let parts = record["steps"][0]["targets"].as_array().expect("a part per broker");
    for name in ["node1", "node2"] {
        let part = parts.iter().find(|part| part["name"] == name).expect(name);
        for rate in ["achieved_in_per_s", "achieved_out_per_s"] {
            let rate = part[rate].as_f64().expect("a rate");
            // 50, of which a busy machine may keep some back.
            assert!((5.0..75.0).contains(&rate), "{part:#}");
        }
    }
    rows_of_bridged_brokers(&read(folder.path(), "brokers.csv"));
    let page = read(folder.path(), "report.html");
    for words in
        ["CPU of brokers and generator", "Broker node1", "Broker node2", "CPU of the broker"]
    {
        assert!(page.contains(words), "{words}");
    }
    // Each has its own.
    for words in ["from bridges of others", "Messages that wait in its bridges"] {
        assert!(page.matches(words).count() >= 2, "{words}");
    }
}

fn read(folder: &std::path::Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect(name)
}

/// Each broker has the rates of all four legs, and the CPU and memory of its own process.
fn rows_of_bridged_brokers(csv: &str) {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let rows: Vec<Vec<&str>> = lines.collect();
    for name in ["node1", "node2"] {
        let of = |column: &str| {
            let at = head.iter().position(|known| *known == column).expect(column);
            let own = rows.iter().filter(|row| row[3] == name && row[2] == "measure");
            let values = own.filter_map(|row| row[at].parse::<f64>().ok());
            values.reduce(f64::max).unwrap_or_else(|| panic!("{name} has no {column}: {csv}"))
        };
        let rates = ["sent_per_s", "received_per_s", "bridged_in_per_s", "bridged_out_per_s"];
        for column in rates.into_iter().chain(["rss_bytes", "cpu_percent", "rtt_p50_us"]) {
            assert!(of(column) > 0.0, "{name} {column}: {csv}");
        }
        assert_eq!((of("bridge_connections_up"), of("connected")), (4.0, 10.0), "{csv}");
    }
}

#[test]
fn connect() {
    run("connect");
}

#[test]
fn pairs_by_name() {
    run("10_10_qos1_p64_10mps");
}

#[test]
fn fan_out_by_name() {
    run("2_10_qos0_p32_10mps");
}

#[test]
fn several_publishers_by_name() {
    run("true_6_2_qos2_p1k_10mps");
}

#[test]
fn persistent_shared_by_name() {
    run("false_share_10_3_qos1_p64_10mps");
}

const OWN: &str = r#"
name = "own"

[groups.meters]
clients = 2
credentials = "users.csv"
connect = { session_expiry = "1h" }

[[groups.meters.publish]]
topic = "meters/{{client}}/text"
qos = 1
rate = { per_client = 10 }
payload = { text = '{"seq": {{seq}}, "value": {{random 1 6}}}' }

[[groups.meters.publish]]
topic = "meters/{{client}}/rows"
model = "poisson"
qos = 2
rate = { total = 20 }
payload = { csv = "readings.csv", text = "{{place}}: {{value}}" }

[[groups.meters.publish]]
topic = "meters/{{client}}/zeros"
rate = { total = 20 }
burst = 5
payload = { kind = "zeros", size = 64 }

[[groups.meters.publish]]
topic = "meters/{{client}}/trace"
qos = 1
trace = { rates = [{ from = 0, rate = 10 }, { from = "1s", rate = 20 }], repeat = "2s" }
payload = { file = "readings.csv" }

[[groups.meters.subscribe]]
filter = "meters/#"
no_local = true

[groups.old]
clients = 2
version = "3.1.1"

[[groups.old.subscribe]]
filter = "meters/+/text"
share = "team"

[[groups.old.subscribe]]
filter = "meters/+/rows"

[phases]
warmup = "500ms"
measure = "2s"
"#;

#[test]
fn a_file_with_texts_tables_and_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writes");
    write("own.toml", OWN);
    write("users.csv", "client_id,username,password\nann,ann,x\nbob,bob,y\n");
    write("readings.csv", "place,value\nroof,20.5\ncellar,12\n");
    let run = folder.path().join("run");
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["run", "--quiet"])
        .arg(folder.path().join("own.toml"))
        .arg("--dir")
        .arg(&run)
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let text =
        fs::read_to_string(run.join("summary.json")).unwrap_or_else(|e| panic!("{e}: {said}"));
    let record: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    // Traces and bursts need not look steady.
    assert_code(output.status.code(), &record, &[]);
    let step = &record["steps"][0];
    let count = |key: &str| step[key].as_u64().unwrap_or_else(|| panic!("no {key} in {step:#}"));
    // 40 texts, 40 in bursts, about 30 by the trace, and rows by chance: 40 and six times the root.
    assert!((110..=190).contains(&count("sent")), "{step:#}");
    assert_eq!((count("lost"), count("duplicates")), (0, 0), "{step:#}");
    // Each hears the other; the texts are shared by the old ones, who both have the rows.
    assert_eq!(count("received"), count("expected"), "{step:#}");
    assert!(count("received") > 230, "{step:#}");
}

const ABSENT: &str = r#"
name = "absent"

[groups.pub]
clients = 2
connect = { ramp = "200ms" }

[[groups.pub.publish]]
topic = "rooms/{{i}}"
qos = 1
rate = { total = 40 }

[groups.sub]
clients = 2
connect = { ramp = "200ms", session_expiry = "5m", clean_start = true }
offline = { after = "500ms", for = "800ms", clean = false }

[[groups.sub.subscribe]]
filter = "rooms/{{i}}"

[phases]
warmup = "300ms"
measure = "3s"
drain = "30s"
"#;

#[test]
fn a_file_with_an_absence() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("absent.toml"), ABSENT).expect("writes");
    let run = folder.path().join("run");
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["run", "--quiet"])
        .arg(folder.path().join("absent.toml"))
        .arg("--dir")
        .arg(&run)
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let read = |name: &str| {
        fs::read_to_string(run.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {said}"))
    };
    let record: serde_json::Value = serde_json::from_str(&read("summary.json")).expect("is JSON");
    // Nothing is received for a while: that is neither sustained nor steady.
    assert_code(output.status.code(), &record, &[]);
    let step = &record["steps"][0];
    // What was published meanwhile followed, all of it.
    assert_eq!((&step["sent"], &step["received"]), (&120.into(), &120.into()), "{step:#}");
    assert_eq!((&step["lost"], &step["out_of_order"]), (&0.into(), &0.into()), "{step:#}");
    let series = read("timeseries.csv");
    let mut lines = series.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let column = head.iter().position(|name| *name == "reconnects").expect("a column");
    let again: u64 = lines.map(|line| line[column].parse::<u64>().expect("a number")).sum();
    assert_eq!(again, 2, "{series}");
    // The longest way took the absence.
    assert!(step["latency_us"]["max"].as_u64() >= Some(700_000), "{step:#}");
}
