//! Scenario files of one's own: every kind of payload, rate and life, with files beside them.

use std::fs;
use std::path::Path;

use tacho_lab::needs::needs;
use tacho_lab::plan::{PlanOptions, plan};
use tacho_load as load;
use tacho_scenario::{Adjustment, Limits, Payload, Scenario};

const EVERYTHING: &str = r#"
name = "everything"
machines = 2

[vars]
unit = "C"

[target]
version = "5"

[groups.meters]
clients = 4
credentials = "users.csv"
inflight = 20
connect = { rate = "50/s", clean_start = false, session_expiry = "1h" }
disconnect = { ramp = "1s" }
will = { topic = "gone/{{client}}", payload = "bye", qos = 1, delay = "5s" }
reconnect = { attempts = 5, first = "50ms", longest = "1s" }

[[groups.meters.publish]]
topic = "meters/{{client}}/text"
qos = 1
rate = { per_client = 10 }
payload = { text = '{"seq": {{seq}}, "value": {{random 1 6}}, "unit": "{{unit}}"}' }

[[groups.meters.publish]]
topic = "meters/{{client}}/rows"
model = "poisson"
rate = { total = 20 }
payload = { csv = "readings.csv", text = "{{place}}: {{value}}" }

[[groups.meters.publish]]
topic = "meters/{{client}}/lines"
rate = { total = 20 }
burst = 5
payload = { csv = "readings.csv" }

[[groups.meters.publish]]
topic = "meters/{{client}}/file"
trace = { rates = [{ from = 0, rate = 4 }, { from = "2s", rate = 8 }], repeat = "4s" }
payload = { file = "body.bin" }

[[groups.meters.publish]]
topic = "meters/{{client}}/zeros"
trace = { file = "arrivals.csv", each = true, repeat = "2s" }
payload = { kind = "zeros", size = 64 }

[[groups.meters.publish]]
topic = "meters/{{client}}/jmeter"
model = "jmeter"
rate = { total = 8 }
wait = true
payload = { kind = "jmeter", size = 100 }

[[groups.meters.subscribe]]
filter = "meters/{{client}}/#"
qos = 1
no_local = true

[groups.old]
clients = 3
version = "3.1.1"
losses = "offline_queue_full"
offline = { after = "1s", for = "2s", clean = false }
connect = { clean_start = false, session_expiry = "1h" }

[[groups.old.subscribe]]
filter = "meters/+/text"
share = "team"

[[groups.old.subscribe]]
filter = "meters/+/rows"
qos = 0

[groups.fresh]
clients = 1

[[groups.fresh.subscribe]]
filter = "meters/#"
retain_handling = 2
"#;

/// A folder with the files that `EVERYTHING` names.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writes");
    write("users.csv", "client_id,username,password\na,ann,x\nb,bob,\nc,,\nd,dan,y\n");
    write("readings.csv", "place,value\nroof,20.5\n\"cellar, north\",12\n");
    write("arrivals.csv", "at\n0\n500ms\n1.5s\n");
    write("body.bin", "\u{0}body");
    folder
}

fn load_from(folder: &Path, text: &str) -> Result<Scenario, String> {
    let file = folder.join("mine.toml");
    fs::write(&file, text).expect("writes");
    let name = file.to_str().expect("a name");
    Scenario::load(name, &[], &Adjustment::NONE, Limits::NONE).map_err(|error| error.to_string())
}

fn spelled_out(scenario: &Scenario) -> load::Plan {
    let options = PlanOptions {
        targets: vec![std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into()],
        threads: 1,
        cpus: vec![],
        own_cores: false,
        run_id: 1,
    };
    plan(scenario, &options).expect("a plan")
}

#[test]
fn everything_is_spelled_out() {
    let folder = folder();
    let scenario = load_from(folder.path(), EVERYTHING).expect("loads");
    let plan = spelled_out(&scenario);
    let [fresh, meters, old] = &plan.groups[..] else { panic!("{} groups", plan.groups.len()) };
    let ids: Vec<_> = meters.clients.iter().map(|client| client.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert_eq!(meters.clients[3].password.as_deref(), Some(&b"y"[..]));
    assert_eq!((&meters.clients[1].password, &meters.clients[2].username), (&None, &None));
    assert_eq!(meters.clients[1].will_topic.as_deref(), Some("gone/1"));
    assert_eq!(meters.will.as_ref().map(|will| (will.payload.len(), will.delay_s)), Some((3, 5)));
    assert_eq!(meters.reconnect.map(|reconnect| reconnect.attempts_max), Some(5));
    assert_eq!(meters.disconnects_per_s, Some(4.0));
    assert_eq!((meters.version, old.version), (load::Version::V5, load::Version::V311));
    assert_eq!(old.expect_losses, Some(load::DeclaredLoss::OfflineQueueFull));
    assert_eq!(
        old.offline.map(|offline| (offline.for_ns, offline.clean)),
        Some((2_000_000_000, false))
    );
    assert_eq!(old.clients[0].subscriptions[0].filter, "$share/team/meters/+/text");
    assert_eq!(fresh.clients[0].subscriptions[0].retain_handling, load::RetainHandling::Never);
    assert!(meters.clients[0].subscriptions[0].no_local);
    let rates: Vec<_> = meters
        .publish
        .iter()
        .map(|block| (block.pace.per_second().unwrap_or(0.0) * 4.0).round())
        .collect();
    assert_eq!(rates, [40.0, 20.0, 20.0, 6.0, 6.0, 8.0]);
    assert!(matches!(meters.publish[1].pace, load::Pace::Poisson { .. }));
    assert!(matches!(meters.publish[2].pace, load::Pace::Bursts { messages: 5, .. }));
    let load::Pace::Jmeter { per_minute, threads, wait, .. } = meters.publish[5].pace else {
        panic!("{:?}", meters.publish[5].pace)
    };
    assert_eq!((per_minute, threads, wait), (240.0, 2, true), "for each of two machines");
    let sizes: Vec<_> =
        meters.publish.iter().map(|block| block.payload.bytes_max("a", "t")).collect();
    assert_eq!(sizes[4..], [64, 124]);
    let Payload::Text { text } = &scenario.groups["meters"].publish[0].payload else {
        panic!("no text")
    };
    assert_eq!(text, r#"{"seq": {{seq}}, "value": {{random 1 6}}, "unit": "C"}"#);
    // Clients do not receive each other's messages; 'old' shares the texts and has rows three
    // times, 'fresh' has all.
    let needs = needs(&scenario).expect("counts");
    assert_eq!((needs.clients, needs.subscriptions), (8, 11));
    assert_eq!(needs.routes, 4 + 3 * 4 + 6 * 4);
}

#[test]
fn everything_resolves_to_a_file_that_says_the_same() {
    let folder = folder();
    let scenario = load_from(folder.path(), EVERYTHING).expect("loads");
    let resolved = scenario.to_toml();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let again = load_from(elsewhere.path(), &resolved).expect(&resolved);
    assert_eq!(again, scenario, "{resolved}");
}

#[test]
fn rates_of_every_model_are_scaled() {
    let folder = folder();
    let whole = spelled_out(&load_from(folder.path(), EVERYTHING).expect("loads"));
    let file = folder.path().join("mine.toml");
    let double = Adjustment { scale: 2.0, ..Adjustment::NONE };
    let name = file.to_str().expect("a name");
    let scaled = Scenario::load(name, &[], &double, Limits::NONE).expect("loads");
    let factor = spelled_out(&scaled).offered_in_per_s() / whole.offered_in_per_s();
    assert!((factor - 2.0).abs() < 0.01, "{factor}");
}

#[test]
fn errors_name_the_place_in_the_file() {
    let folder = folder();
    for (from, to, words) in [
        ("credentials = \"users.csv\"", "credentials = \"no.csv\"", &["cannot read", "no.csv"][..]),
        ("clients = 4", "clients = 6", &["6 clients need a row each, there are 4", "2 too few"]),
        (
            "credentials = \"users.csv\"",
            "credentials = \"readings.csv\"",
            &["no column that describes clients", "known columns: client_id, username, password"],
        ),
        ("{{place}}", "{{plaice}}", &["unknown field {{plaice}}", "place, value"]),
        ("{{random 1 6}}", "{{random 6 1}}", &["FROM <= TO"]),
        ("file = \"body.bin\"", "file = \"absent.bin\"", &["cannot read", "absent.bin"]),
        ("file = \"arrivals.csv\"", "file = \"users.csv\"", &["no column 'at'"]),
        ("repeat = \"4s\"", "repeat = \"1s\"", &["repeated after its last entry"]),
        ("burst = 5", "burst = 0", &["a burst cannot be 0"]),
        ("burst = 5", "burst = 5\nmodel = \"poisson\"", &["'burst' belongs to model = \"bursts\""]),
        ("model = \"poisson\"", "model = \"fish\"", &["\"poisson\", \"bursts\""]),
        (
            "kind = \"zeros\", size = 64",
            "kind = \"zeros\", text = \"x\"",
            &["'text' does not apply to a payload of kind \"zeros\""],
        ),
        ("kind = \"zeros\", size = 64", "kind = \"text\"", &["needs 'text'"]),
        ("kind = \"zeros\"", "kind = \"nulls\"", &["'kind' cannot be 'nulls'"]),
        (
            "kind = \"jmeter\", size = 100",
            "kind = \"jmeter\", size = 10",
            &["10 bytes is too small"],
        ),
        ("share = \"team\"", "share = \"a/b\"", &["without '/'"]),
        (
            "filter = \"meters/+/text\"",
            "filter = \"$share/x/a\"",
            &["already names a shared group"],
        ),
        ("no_local = true", "no_local = true\nshare = \"x\"", &["forbids no_local"]),
        ("qos = 0\n", "qos = 0\nretain_handling = 1\n", &["requires MQTT 5"]),
        ("retain_handling = 2", "retain_handling = 3", &["cannot be 3", "between 0 and 2"]),
        ("offline_queue_full", "some", &["'losses' cannot be 'some'"]),
        ("for = \"2s\"", "for = \"0s\"", &["has no effect"]),
        ("attempts = 5", "attempts = 0", &["attempts cannot be 0"]),
        ("longest = \"1s\"", "longest = \"1ms\"", &["shorter than the first"]),
        ("disconnect = { ramp = \"1s\"", "disconnect = { rate = 0", &["would disconnect"]),
        ("version = \"3.1.1\"", "version = \"6\"", &["no MQTT version '6'"]),
        ("topic = \"gone/{{client}}\"", "topic = \"gone/#\"", &["wildcards"]),
    ] {
        assert!(EVERYTHING.contains(from), "{from}");
        let error = load_from(folder.path(), &EVERYTHING.replacen(from, to, 1)).expect_err(to);
        for word in words {
            assert!(error.contains(word), "{to}: no {word:?} in {error}");
        }
        assert!(error.contains("mine.toml:"), "{to}: no place in {error}");
    }
}

#[test]
fn the_same_client_id_twice_is_found_in_the_table() {
    let folder = folder();
    fs::write(folder.path().join("users.csv"), "client_id\na\nb\na\nc\n").expect("writes");
    let error = load_from(folder.path(), EVERYTHING).expect_err("twice");
    assert!(error.contains("two clients have the client id 'a'"), "{error}");
}
