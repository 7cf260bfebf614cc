//! What clients may do, by the rules in force and by those of their logins.

use std::fs;

use tacho_codec::{Connect, QoS, Version};
use tacho_testkit::connect;

use super::Managed;

const RULES: &str = "[users]\nann = ['writer']\n[roles.writer]\nqos_max = 1\n\
    [[rules]]\nroles = ['writer']\nallow = 'publish'\ntopics = ['in/%c/#']\n\
    [[rules]]\naddresses = ['127.0.0.0/8']\nallow = 'subscribe'\ntopics = ['out/#']\n";

#[test]
fn what_a_client_may_do_is_told_with_the_line_that_decides() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    fs::write(&rules, RULES).unwrap();
    let managed = Managed::start(&format!("shards = 3\n[access]\nrules_file = {rules:?}\n"));
    let mut client = managed.broker.connected("meter", Version::V5);
    client.subscribe("out/#", QoS::AtMostOnce);
    let place = |line: u32| format!("{}:{line}", rules.display());
    for (asked, allowed, why) in [
        // As it is connected: anonymous, from this address.
        ("action=subscribe&topic=out/%23&client_id=meter", true, "every topic".to_owned()),
        ("action=receive&topic=out/1&client_id=meter", true, place(9)),
        ("action=publish&topic=in/meter/1&client_id=meter", false, "no rule of".to_owned()),
        ("action=connect&client_id=meter", true, "no rule about connecting".to_owned()),
        // As it would be with a login.
        ("action=publish&topic=in/meter/1&client_id=meter&user=ann", true, place(5)),
        ("action=publish&topic=in/other/1&client_id=meter&user=ann", false, "no rule of".into()),
        ("action=publish&topic=in/meter/1&client_id=meter&user=ann&qos=2", false, "QoS".into()),
        // It has no session, so its address is not known.
        ("action=receive&topic=out/1&client_id=none", false, "no rule of".to_owned()),
        ("action=publish&topic=$SYS/a&user=ann", false, "belong to the broker".to_owned()),
    ] {
        let answer = managed.get(&format!("/explain?{asked}"));
        assert_eq!(answer["allowed"], allowed, "{asked}: {answer}");
        assert!(answer["why"].as_str().unwrap().contains(&why), "{asked}: {answer}");
        let is_session = asked.contains("client_id=meter") && !asked.contains("user");
        assert_eq!(answer["of_session"], is_session, "{asked}");
        let has_role = answer["roles"].as_array().unwrap().iter().any(|role| role == "writer");
        assert_eq!(has_role, asked.contains("user=ann"), "{asked}");
    }
    for (asked, field) in [
        ("action=publish&topic=a/%23", "topic"),
        ("action=publish", "topic"),
        ("action=subscribe&topic=a/%23/b", "topic"),
        ("action=publish&topic=a&qos=3", "qos"),
        ("action=dance", "query"),
        ("topic=a", "query"),
    ] {
        assert_eq!(managed.refused(&format!("/explain?{asked}"), 400).0, field, "{asked}");
    }
    // A reload changes the answer.
    fs::write(&rules, RULES.replace("'out/#'", "'else/#'")).unwrap();
    managed.ask("POST", "/reload", "");
    let answer = managed.get("/explain?action=receive&topic=out/1&client_id=meter");
    assert_eq!(answer["allowed"], false, "{answer}");
}

#[test]
fn without_rules_a_client_may_do_everything() {
    let managed = Managed::start("shards = 1");
    let request = Connect { username: Some("ann"), ..connect("c", Version::V5) };
    managed.broker.client(Version::V5).connect(&request);
    let answer = managed.get("/explain?action=publish&topic=a&client_id=c");
    assert_eq!(answer["why"], "no access rules: every client may do everything");
}
