//! Wills are judged by the rules in force when they are due.

use std::fs;

use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, Version, Will, WillProperties};
use tacho_testkit::{TestBroker, wait_until, will};
use tempfile::TempDir;

use super::reload::reload;
use super::tokens::{SECRET, keys, token_with};
use super::{Files, logged_in, login};

const USERS: [(&str, &str); 2] = [("ann", "ann"), ("root", "root")];

#[test]
fn a_will_that_is_refused_when_it_is_due_is_in_the_audit_log() {
    let files = Files::new(&USERS, Some("user ann\ntopic w/#\n"));
    let audit = files.path("audit");
    let broker = files.broker(1, &format!("audit_file = {audit:?}\n"));
    let mut ann = broker.client(Version::V5);
    let will = Some(will("w/ann", b"gone"));
    ann.connect(&Connect { will, ..login("c", Version::V5, "ann", "ann") });
    files.set_acl("user ann\ntopic v/#\n");
    reload(&broker, 1);
    drop(ann);
    let refused = || {
        let text = fs::read_to_string(&audit).unwrap_or_default();
        let mut events = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        events.find(|event: &serde_json::Value| event["event"] == "will_refused")
    };
    wait_until("an event", || refused().is_some());
    let event = refused().unwrap();
    let said = ["client_id", "user", "topic", "why"].map(|key| event[key].as_str().unwrap());
    assert_eq!(said, ["c", "ann", "w/ann", "no entry of the access list allows it"]);
    assert_eq!(broker.counter("denied_wills_total"), 1);
}

/// The journal has no rules of tokens: what they said of a will is remembered.
#[test]
fn a_will_that_its_token_allowed_is_published_after_a_restart() {
    let files = Files::new(&USERS, Some("user root\ntopic #\n"));
    let (_, jwt) = keys(&files, "");
    let data = TempDir::new().unwrap();
    let text = format!("shards = 2\ndata_dir = {:?}\n{}{jwt}", data.path(), files.section());
    let mut broker = TestBroker::configured(&text);
    let rules = r#","acl":[{"permission":"allow","action":"publish","topic":"w/${clientid}"}]"#;
    let token = token_with(SECRET, "ann", 600, rules);
    let properties = WillProperties { delay_s: Some(2), ..Default::default() };
    // Retained: it does not matter when it is published.
    let will = Will { properties, qos: QoS::AtLeastOnce, retain: true, ..will("w/ann", b"gone") };
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    let login = login("ann", Version::V5, "ann", &token);
    let mut ann = broker.client(Version::V5);
    let answer = ann.connect(&Connect { will: Some(will), properties, ..login });
    assert_eq!(answer.1, ReasonCode::SUCCESS);
    broker.stop();
    let broker = TestBroker::configured(&text);
    let mut root = logged_in(&broker, "root", Version::V5, "root");
    root.subscribe("w/#", QoS::AtLeastOnce);
    assert_eq!(root.receive_and_ack().topic, "w/ann");
    assert_eq!(broker.counter("denied_wills_total"), 0);
}
