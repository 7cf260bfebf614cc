//! Attributes that a login brings, and rules that ask for them.

use std::net::TcpListener;

use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, Version};
use tacho_testkit::http::{StubAnswer, StubReply, StubService};
use tacho_testkit::{Client, TestBroker, wait_until};
use tempfile::TempDir;

use super::tokens::{SECRET, keys, token_with};
use super::{Files, answer, login};

const DENIED: ReasonCode = ReasonCode::NOT_AUTHORIZED;
const V5: Version = Version::V5;
/// Clients in the south may not publish; the halls of the north may subscribe.
const RULES: &str = r#"
[[rules]]
deny = "publish"
topics = "up/#"
attributes = { site = "south" }

[[rules]]
allow = "publish"
topics = "up/#"

[[rules]]
allow = "subscribe"
topics = "down/#"
attributes = { site = ["north", "far north"], kind = "hall" }
"#;

fn attributes(site: &str, kind: &str) -> String {
    format!(r#","client_attrs":{{"site":"{site}","kind":"{kind}"}}"#)
}

fn broker(files: &Files, more: &str) -> TestBroker {
    let (_, jwt) = keys(files, more);
    TestBroker::configured(&format!("shards = 2\n{}{jwt}", files.section()))
}

/// What a client with this token is answered when it publishes and when it subscribes.
fn rights(broker: &TestBroker, id: &str, claims: &str) -> (bool, bool) {
    let token = token_with(SECRET, "ann", 600, claims);
    let mut client = broker.client(V5);
    assert_eq!(client.connect(&login(id, V5, "x", &token)).1, ReasonCode::SUCCESS, "{claims}");
    let may_publish = !client.try_publish("up/x", b"x", QoS::AtLeastOnce).is_error();
    (may_publish, !client.subscribe("down/#", QoS::AtLeastOnce).is_error())
}

#[test]
fn rules_ask_for_the_attributes_in_a_token() {
    let files = Files::with_rules(&[], RULES);
    let named = broker(&files, "");
    for (claims, expected) in [
        (attributes("north", "hall"), (true, true)),
        (attributes("far north", "hall"), (true, true)),
        (attributes("north", "yard"), (true, false)),
        (attributes("south", "hall"), (false, false)),
        (r#","client_attrs":{"kind":"hall"}"#.to_owned(), (true, false)),
        (String::new(), (true, false)),
    ] {
        assert_eq!(rights(&named, "c", &claims), expected, "{claims}");
    }
    for wrong in [r#","client_attrs":"north""#, r#","client_attrs":{"site":3}"#] {
        let token = token_with(SECRET, "ann", 600, wrong);
        let reason = answer(&named, &login("c", V5, "x", &token));
        assert_eq!(reason, ReasonCode::BAD_USER_NAME_OR_PASSWORD, "{wrong}");
    }
    let other = broker(&files, "attributes_claim = 'at'\n");
    assert_eq!(rights(&other, "c", r#","at":{"site":"north","kind":"hall"}"#), (true, true));
    assert_eq!(rights(&other, "c", &attributes("south", "hall")), (true, false));
    let none = broker(&files, "attributes_claim = ''\n");
    assert_eq!(rights(&none, "c", &attributes("south", "hall")), (true, false));
}

#[test]
fn a_backend_brings_them_too() {
    let body = r#"{"result":"allow","client_attrs":{"site":"north","kind":"hall"}}"#;
    let service = StubService::answering(TcpListener::bind("127.0.0.1:0").unwrap(), move |_| {
        StubReply::Answer(StubAnswer::new(200, body))
    });
    let files = Files::with_rules(&[], RULES);
    std::fs::remove_file(files.path("users")).unwrap();
    let text = format!(
        "[access]\nrules_file = {:?}\n[access.http]\nurl = 'http://{}/'\n\
         [access.http.fields]\nuser = '%u'\n",
        files.path("rules.toml"),
        service.address()
    );
    let broker = TestBroker::configured(&text);
    let mut client = broker.client(V5);
    assert_eq!(client.connect(&login("c", V5, "ann", "x")).1, ReasonCode::SUCCESS);
    assert_eq!(client.subscribe("down/#", QoS::AtLeastOnce), ReasonCode::granted(QoS::AtLeastOnce));
    assert!(client.subscribe("up/#", QoS::AtLeastOnce).is_error());
}

fn lasting(broker: &TestBroker, site: &str) -> (Client, bool) {
    let token = token_with(SECRET, "ann", 600, &attributes(site, "hall"));
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    let connect = Connect { clean_start: false, properties, ..login("c", V5, "x", &token) };
    let mut client = broker.client(V5);
    let (is_present, reason) = client.connect(&connect);
    assert_eq!(reason, ReasonCode::SUCCESS);
    (client, is_present)
}

/// The journal has no attributes: what a session has by them waits for its client.
#[test]
fn sessions_of_the_journal_keep_what_their_clients_may_still_have() {
    for (site, may) in [("far north", true), ("south", false)] {
        let (files, data) = (Files::with_rules(&[], RULES), TempDir::new().unwrap());
        let (_, jwt) = keys(&files, "");
        let text = format!("shards = 2\ndata_dir = {:?}\n{}{jwt}", data.path(), files.section());
        let mut broker = TestBroker::configured(&text);
        let (mut client, _) = lasting(&broker, "north");
        assert!(!client.subscribe("down/#", QoS::AtLeastOnce).is_error());
        client.disconnect();
        broker.stop();
        broker = TestBroker::configured(&text);
        let (_client, is_present) = lasting(&broker, site);
        assert!(is_present);
        let ended = u64::from(!may);
        wait_until("what ends", || broker.counter("ended_subscriptions_total") == ended);
        assert_eq!(broker.counter("subscriptions"), u64::from(may));
    }
    // With the same attributes nothing changes, with others the rules are asked again.
    let files = Files::with_rules(&[], RULES);
    let broker = broker(&files, "");
    let (mut client, _) = lasting(&broker, "north");
    assert!(!client.subscribe("down/#", QoS::AtLeastOnce).is_error());
    let (mut client, _) = lasting(&broker, "north");
    assert_eq!(broker.counter("ended_subscriptions_total"), 0);
    assert!(!client.try_publish("up/x", b"x", QoS::AtLeastOnce).is_error());
    let (mut client, _) = lasting(&broker, "south");
    assert_eq!(broker.counter("ended_subscriptions_total"), 1);
    assert_eq!(client.try_publish("up/x", b"x", QoS::AtLeastOnce), DENIED);
}
