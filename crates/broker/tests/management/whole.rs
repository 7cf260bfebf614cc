//! The broker as a whole: figures, limits, listeners, users, journal, configuration.

use std::fs;

use serde_json::Value;
use tacho_codec::{QoS, Version};
use tacho_testkit::wait_until;

use super::{Managed, column};

#[test]
fn figures_limits_and_listeners_are_told() {
    let managed = Managed::start(
        "shards = 2\n[limits]\nsessions_max = 500\n[[listeners]]\naddress = '127.0.0.1:0'\n\
         transport = 'ws'\n",
    );
    let mut client = managed.broker.connected("c", Version::V5);
    client.subscribe("a", QoS::AtLeastOnce);
    let mut publisher = managed.broker.connected("publisher", Version::V5);
    publisher.publish("a", b"x", QoS::AtLeastOnce, true);
    client.receive_and_ack();
    let status = managed.get("/status");
    assert_eq!((&status["healthy"], &status["shards"]), (&true.into(), &2.into()));
    assert_eq!((&status["clients_connected"], &status["messages_in"]), (&2.into(), &1.into()));
    let limits = managed.get("/limits");
    let of = |name: &str| {
        let rows = limits["limits"].as_array().unwrap();
        rows.iter().find(|row| row["limit"] == name).unwrap().clone()
    };
    assert_eq!((&of("sessions_max")["used"], &of("sessions_max")["max"]), (&2.into(), &500.into()));
    assert_eq!(of("subscriptions_max")["used"], 1);
    assert_eq!(of("retained_count_max")["used"], 1);
    let listeners = managed.get("/listeners");
    assert_eq!(column(&listeners, "listeners", "transport"), ["tcp", "ws"]);
    let address = managed.broker.address.to_string();
    assert!(column(&listeners, "listeners", "address").contains(&&*address));
    assert!(managed.get("/bridges")["bridges"].as_array().unwrap().is_empty());
    managed.refused("/journal", 404);
    let metrics = managed.ask("GET", "/metrics", "");
    assert!(metrics.head.contains("text/plain") && metrics.body.contains("tacho_sessions"));
}

#[test]
fn the_last_hour_and_day_are_told_from_the_start_on() {
    let managed = Managed::start("shards = 1");
    for span in ["hour", "day"] {
        let target = format!("/history?span={span}");
        let times = || managed.get(&target)["time_ms"].as_array().unwrap().len();
        wait_until("there is a point", || times() > 0);
        let history = managed.get(&target);
        assert_eq!(history["span"], span);
        for list in ["clients_connected", "messages_in", "memory_bytes", "loop_lag_us"] {
            let points = history[list].as_array().unwrap().len();
            assert_eq!(points, history["time_ms"].as_array().unwrap().len(), "{list}");
        }
    }
    assert_eq!(managed.get("/history")["every_s"], 10, "the hour is the default");
    managed.refused("/history?span=year", 400);
}

#[test]
fn the_journal_tells_its_size_and_garbage() {
    let data = tempfile::tempdir().unwrap();
    let managed = Managed::start(&format!("shards = 1\ndata_dir = {:?}", data.path()));
    managed.broker.durable("c", Version::V5, None).subscribe("a", QoS::AtLeastOnce);
    wait_until("it is written", || managed.get("/journal")["log_bytes"] != 0);
    let journal = managed.get("/journal");
    assert_eq!(journal["condition"], "fine");
    let number = |key: &str| journal[key].as_u64().unwrap();
    assert_eq!(number("garbage_bytes"), number("log_bytes") - number("live_bytes"));
}

#[test]
fn users_and_roles_of_the_files_are_listed() {
    const HASH: &str = "$6$AAECAwQFBgcICQoL$JqsxEv/ucyxjA5DKsQ+Y8CDWaQDNQI9FpAkmfwAqWfwZLk/JEGgM0Ep\
                        ylrJHAZKKyFQjJeZ3nFaHjPzOzPPmPw==";
    let folder = tempfile::tempdir().unwrap();
    let (users, rules) = (folder.path().join("users"), folder.path().join("rules.toml"));
    let names = ["ann", "bob", "cy", "dee"];
    let text: String = names.map(|name| format!("{name}:{HASH}\n")).concat();
    fs::write(&users, text).unwrap();
    let text = "[users]\nbob = ['staff']\n[roles.staff]\n\
                [[rules]]\nallow = 'all'\ntopics = ['#']\nroles = ['staff']\n";
    fs::write(&rules, text).unwrap();
    let managed = Managed::start(&format!(
        "shards = 1\n[access]\npassword_file = {users:?}\nrules_file = {rules:?}\n"
    ));
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = managed.get(&format!("/users?limit=2{cursor}"));
        assert_eq!(page["read_only"], true);
        let rows = page["users"].as_array().unwrap();
        seen.extend(rows.iter().map(|row| row["user"].as_str().unwrap().to_owned()));
        let bob = rows.iter().find(|row| row["user"] == "bob");
        assert!(bob.is_none_or(|bob| bob["roles"][0] == "staff"));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, names);
    assert_eq!(column(&managed.get("/roles"), "roles", "role"), ["staff"]);
    let everything = managed.ask("GET", "/users", "").body;
    assert!(!everything.contains("JqsxEv"), "no hash leaves the broker");
}

#[test]
fn the_configuration_has_its_sources_and_no_secrets() {
    let managed = Managed::start(
        "shards = 1\n[limits]\ninflight_max = 7\n[[bridges]]\nname = 'b'\n\
         address = 'mqtt://127.0.0.1:1'\nusername = 'u'\npassword = 'hunter2'\n\
         [[bridges.egress]]\nfilter = 'a/#'\n",
    );
    let answer = managed.ask("GET", "/config", "");
    assert!(!answer.body.contains("hunter2"), "{}", answer.body);
    let values = answer.json();
    let of = |key: &str| -> Value {
        let rows = values["values"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}")).clone()
    };
    // The tests' broker has no file: what is set is not told from what is not.
    assert_eq!(of("limits.inflight_max")["value"], "7");
    assert_eq!(of("limits.sessions_max")["source"], "default");
    let receivers = managed.get("/receivers?topic=a/b");
    assert_eq!(receivers["bridges"][0], "b");
    assert_eq!(managed.get("/bridges")["bridges"][0]["name"], "b");
}
