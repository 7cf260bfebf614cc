//! A rules file: who may connect, publish, subscribe and receive, by rules in TOML.

use std::fs;

use tacho_codec::{
    Connect, ConnectProperties, Publish, PublishProperties, QoS, ReasonCode, Version,
    WillProperties,
};
use tacho_testkit::{ALL_QOS, TestBroker, VERSIONS, connect, wait_until, will};
use tempfile::TempDir;

use super::reload::{lasting, reload};
use super::{Files, answer, logged_in, login};

const DENIED: ReasonCode = ReasonCode::NOT_AUTHORIZED;
const USERS: [&str; 3] = ["root", "ann", "bob"];
const RULES: &str = r##"
[users]
root = "admin"
ann = ["device"]

[roles.admin]
[roles.device]

[[rules]]
allow = "all"
topics = ["#", "$SYS/#"]
roles = "admin"

[[rules]]
deny = "all"
topics = "up/secret/#"

[[rules]]
allow = "publish"
topics = ["up/#"]
roles = "device"
qos = [0, 1]
retain = false

[[rules]]
allow = "publish"
topics = ["up/state"]
roles = "device"
retain = true

[[rules]]
allow = "subscribe"
topics = ["down/%c/#", "down/x-%u/+"]

[[rules]]
allow = "subscribe"
topics = "jobs/#"
groups = ["crew"]

[[rules]]
allow = "subscribe"
topics = "low"
qos = 0
"##;

#[test]
fn publishing_is_decided_by_role_topic_qos_and_retain() {
    let files = Files::with_rules(&USERS, RULES);
    for shards in [1, 3] {
        let broker = files.broker(shards, "");
        for version in VERSIONS {
            let mut root = logged_in(&broker, "root", version, "root");
            assert!(!root.subscribe("up/a", QoS::AtMostOnce).is_error());
            let mut ann = logged_in(&broker, "c1", version, "ann");
            let mut bob = logged_in(&broker, "c2", version, "bob");
            let refused = if version == Version::V5 { DENIED } else { ReasonCode::SUCCESS };
            // In turns: what is remembered of a topic is not the same for all kinds.
            for _ in 0..3 {
                ann.publish("up/a", b"0", QoS::AtMostOnce, false);
                assert_eq!(root.receive().payload, b"0");
                assert_eq!(ann.try_publish("up/a", b"no", QoS::ExactlyOnce), refused);
                ann.publish("up/a", b"1", QoS::AtLeastOnce, false);
                assert_eq!(root.receive().payload, b"1");
                ann.publish("up/a", b"no", QoS::AtMostOnce, true);
                assert_eq!(ann.try_publish("up/secret/a", b"no", QoS::AtLeastOnce), refused);
                assert_eq!(bob.try_publish("up/a", b"no", QoS::AtLeastOnce), refused);
            }
            ann.publish("up/state", b"kept", QoS::ExactlyOnce, true);
            root.expect_nothing();
        }
        assert_eq!(broker.counter("denied_publishes_total"), 3 * 12);
        assert_eq!(broker.counter("retained"), 1);
    }
}

#[test]
fn subscriptions_are_granted_by_topic_qos_and_group() {
    let files = Files::with_rules(&USERS, RULES);
    for shards in [1, 3] {
        let broker = files.broker(shards, "");
        let mut ann = logged_in(&broker, "c1", Version::V5, "ann");
        for (filter, qos, is_granted) in [
            ("down/c1/#", 2, true),
            ("down/c2/#", 0, false),
            ("down/+/a", 0, false),
            ("down/x-ann/+", 0, true),
            ("down/x-bob/+", 0, false),
            ("jobs/#", 0, false),
            ("$share/crew/jobs/#", 1, true),
            ("$share/others/jobs/#", 1, false),
            ("low", 0, true),
            ("low", 1, false),
            ("$SYS/#", 0, false),
        ] {
            let qos = ALL_QOS[qos];
            let expected = if is_granted { ReasonCode::granted(qos) } else { DENIED };
            assert_eq!(ann.subscribe(filter, qos), expected, "{filter} {qos:?}");
        }
        assert_eq!(broker.counter("denied_subscriptions_total"), 7);
        // The subscription of a lower QoS is there still.
        let mut root = logged_in(&broker, "root", Version::V5, "root");
        root.publish("low", b"x", QoS::AtLeastOnce, false);
        assert_eq!(ann.receive().topic, "low");
        assert_eq!(root.subscribe("#", QoS::AtMostOnce), ReasonCode::SUCCESS);
        // A name with special characters gets nothing from filters with names.
        for id in ["+", "#", "c1/x"] {
            let mut client = logged_in(&broker, id, Version::V5, "bob");
            for filter in ["down/c1/#", "down/+/#", "down/#"] {
                assert_eq!(client.subscribe(filter, QoS::AtMostOnce), DENIED, "{id} {filter}");
            }
        }
    }
}

const OWN_NAMES: &str = r##"
[[rules]]
allow = "connect"
client_ids = ["%u", "%u-*"]

[[rules]]
allow = "connect"
anonymous = true
addresses = "127.0.0.0/8"
listeners = "0"

[[rules]]
allow = "all"
topics = "#"
"##;

#[test]
fn rules_say_who_may_connect() {
    let files = Files::with_rules(&USERS, OWN_NAMES);
    for shards in [1, 3] {
        files.set_rules(OWN_NAMES);
        let text =
            format!("shards = {shards}\n[access]\nrules_file = {:?}\n", files.path("rules.toml"));
        assert_eq!(
            answer(&TestBroker::configured(&text), &connect("c", Version::V5)),
            ReasonCode::SUCCESS
        );
        let broker = files.broker(shards, "");
        for (id, user, expected) in [
            ("ann", "ann", ReasonCode::SUCCESS),
            ("ann-7", "ann", ReasonCode::SUCCESS),
            ("bob", "ann", DENIED),
            ("anna", "ann", DENIED),
        ] {
            assert_eq!(answer(&broker, &login(id, Version::V5, user, user)), expected, "{id}");
        }
        assert_eq!(broker.counter("denied_connects_total"), 2);
        let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
        let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
        files.set_rules(&format!("[[rules]]\ndeny = 'connect'\nusers = 'ann'\n{OWN_NAMES}"));
        reload(&broker, shards as u64);
        assert_eq!(ann.expect_disconnect(), DENIED);
        assert_eq!(answer(&broker, &login("ann", Version::V311, "ann", "ann")), DENIED);
        bob.ping();
        assert_eq!(broker.counter("ended_by_rules_total"), 1);
    }
}

#[test]
fn where_a_client_connects_from_counts_for_all_it_does() {
    let rules = |address: &str| {
        format!(
            "[[rules]]\nallow = 'all'\ntopics = 'a/#'\naddresses = '{address}'\n\
             [[rules]]\nallow = 'all'\ntopics = 'b/#'\n"
        )
    };
    let files = Files::with_rules(&USERS, &rules("127.0.0.1"));
    let data = TempDir::new().unwrap();
    let text = format!("shards = 1\ndata_dir = {:?}\n{}", data.path(), files.section());
    let mut broker = TestBroker::configured(&text);
    let (mut ann, _) = lasting(&broker, "ann", "ann");
    assert_eq!(ann.subscribe("a/#", QoS::AtLeastOnce), ReasonCode::granted(QoS::AtLeastOnce));
    ann.disconnect();
    let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
    bob.publish("a/x", b"queued", QoS::AtLeastOnce, false);
    broker.stop();
    // After the restart it is not known where ann was: her subscription waits for her.
    broker = TestBroker::configured(&text);
    let (mut ann, is_present) = lasting(&broker, "ann", "ann");
    assert!(is_present);
    assert_eq!(ann.receive_and_ack().payload, b"queued");
    assert_eq!(broker.counter("ended_subscriptions_total"), 0);
    files.set_rules(&rules("192.0.2.1"));
    reload(&broker, 1);
    assert_eq!(ann.expect_disconnect(), DENIED);
    assert_eq!(broker.counter("ended_subscriptions_total"), 1);
    let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
    assert_eq!(bob.try_publish("a/x", b"no", QoS::AtLeastOnce), DENIED);
    assert_eq!(bob.try_publish("b/x", b"yes", QoS::AtLeastOnce).value() & 0x80, 0);
}

#[test]
fn a_role_that_is_taken_away_counts_at_once() {
    let files = Files::with_rules(&USERS, RULES);
    for shards in [1, 3] {
        files.set_rules(RULES);
        let broker = files.broker(shards, "");
        let mut ann = logged_in(&broker, "c1", Version::V5, "ann");
        ann.subscribe("down/c1/#", QoS::AtLeastOnce);
        ann.publish("up/a", b"x", QoS::AtLeastOnce, false);
        let mut root = logged_in(&broker, "root", Version::V5, "root");
        files.set_rules(&RULES.replace("ann = [\"device\"]", ""));
        reload(&broker, shards as u64);
        assert_eq!(ann.try_publish("up/a", b"no", QoS::AtLeastOnce), DENIED);
        root.publish("down/c1/x", b"for her", QoS::AtLeastOnce, false);
        assert_eq!(ann.receive_and_ack().payload, b"for her");
        assert_eq!(broker.counter("ended_by_rules_total"), 0);
        // A file that cannot be used changes nothing.
        files.set_rules("[[rules]]\nallow = 'everything'\n");
        assert_eq!(broker.reload_access(), tacho_broker::AccessReloaded::Unusable);
        root.publish("down/c1/x", b"again", QoS::AtLeastOnce, false);
        assert_eq!(ann.receive_and_ack().payload, b"again");
        fs::remove_file(files.path("rules.toml")).unwrap();
        assert_eq!(broker.reload_access(), tacho_broker::AccessReloaded::Unusable);
    }
}

#[test]
fn a_subscription_whose_qos_or_group_is_not_allowed_any_more_ends() {
    let files = Files::with_rules(&USERS, RULES);
    let broker = files.broker(1, "");
    let mut ann = logged_in(&broker, "c1", Version::V5, "ann");
    ann.subscribe("down/c1/#", QoS::AtLeastOnce);
    let mut bob = logged_in(&broker, "c2", Version::V5, "bob");
    bob.subscribe("$share/crew/jobs/#", QoS::AtLeastOnce);
    bob.subscribe("down/c2/#", QoS::AtMostOnce);
    let qos_0 = RULES.replace("\"down/x-%u/+\"]", "\"down/x-%u/+\"]\nqos = 0");
    files.set_rules(&qos_0);
    reload(&broker, 1);
    assert_eq!(ann.expect_disconnect(), DENIED);
    bob.ping();
    files.set_rules(&qos_0.replace("crew", "others"));
    reload(&broker, 1);
    assert_eq!(bob.expect_disconnect(), DENIED);
    assert_eq!(broker.counter("ended_subscriptions_total"), 2);
}

#[test]
fn a_response_topic_must_be_one_that_its_publisher_may_receive() {
    let files = Files::with_rules(&USERS, RULES);
    let broker = files.broker(1, "");
    let mut root = logged_in(&broker, "root", Version::V5, "root");
    root.subscribe("up/#", QoS::AtMostOnce);
    let mut ann = logged_in(&broker, "c1", Version::V5, "ann");
    for (response_topic, expected) in [
        ("down/c1/answers", ReasonCode::SUCCESS),
        ("down/c2/answers", DENIED),
        ("plant/valve", DENIED),
    ] {
        let properties =
            PublishProperties { response_topic: Some(response_topic), ..Default::default() };
        let packet_id = Some(ann.id());
        let publish = Publish {
            topic: "up/ask",
            payload: b"?",
            qos: QoS::AtLeastOnce,
            packet_id,
            properties,
            ..Publish::default()
        };
        ann.send(&tacho_codec::Packet::Publish(publish));
        let reason = ann.expect(|packet| match packet {
            tacho_codec::Packet::PubAck(ack) => ack.reason,
            other => panic!("{other:?}"),
        });
        assert_eq!(reason, expected, "{response_topic}");
    }
    assert_eq!(root.receive().topic, "up/ask");
    root.expect_nothing();
    assert_eq!(broker.counter("denied_publishes_total"), 2);
    // Of a will, too.
    for (topic, expected) in [("down/c3/x", ReasonCode::SUCCESS), ("plant/valve", DENIED)] {
        let properties = WillProperties { response_topic: Some(topic), ..Default::default() };
        let will = Some(tacho_codec::Will { properties, ..will("up/gone", b"gone") });
        let connect = Connect { will, ..login("c3", Version::V5, "ann", "ann") };
        assert_eq!(answer(&broker, &connect), expected, "{topic}");
    }
}

#[test]
fn wills_are_asked_by_kind_at_connect_and_when_they_fire() {
    let files = Files::with_rules(&USERS, RULES);
    let broker = files.broker(1, "");
    let mut root = logged_in(&broker, "root", Version::V5, "root");
    root.subscribe("#", QoS::AtMostOnce);
    for (topic, qos, retain, expected) in [
        ("up/a", 1, false, ReasonCode::SUCCESS),
        ("up/a", 2, false, DENIED),
        ("up/a", 1, true, DENIED),
        ("up/state", 2, true, ReasonCode::SUCCESS),
        ("up/secret/a", 0, false, DENIED),
    ] {
        let will = Some(tacho_codec::Will { qos: ALL_QOS[qos], retain, ..will(topic, b"gone") });
        let connect = Connect { will, ..login("c1", Version::V5, "ann", "ann") };
        assert_eq!(answer(&broker, &connect), expected, "{topic} {qos} {retain}");
        if expected == ReasonCode::SUCCESS {
            assert_eq!(root.receive().topic, topic);
        }
    }
    assert_eq!(broker.counter("denied_wills_total"), 3);
    let mut ann = broker.client(Version::V5);
    let will = Some(will("up/a", b"gone"));
    ann.connect(&Connect { will, ..login("c1", Version::V5, "ann", "ann") });
    files.set_rules(&RULES.replace("qos = [0, 1]", "qos = 1"));
    reload(&broker, 1);
    ann.ping();
    drop(ann);
    wait_until("a denied will", || broker.counter("denied_wills_total") == 4);
    root.expect_nothing();
}

#[test]
fn another_user_or_place_does_not_use_what_was_decided_for_the_one_before() {
    let files = Files::with_rules(&USERS, RULES);
    let broker = files.broker(1, "session_takeover = 'any_user'\n");
    let (mut ann, _) = lasting(&broker, "c1", "ann");
    for _ in 0..2 {
        ann.publish("up/a", b"x", QoS::AtLeastOnce, false);
    }
    ann.disconnect();
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    let mut bob = broker.client(Version::V5);
    let resumed =
        Connect { clean_start: false, properties, ..login("c1", Version::V5, "bob", "bob") };
    assert_eq!(bob.connect(&resumed), (true, ReasonCode::SUCCESS));
    assert_eq!(bob.try_publish("up/a", b"no", QoS::AtLeastOnce), DENIED);
}

/// The rules of a client with many topics are made ready; that must not outlive them, nor the
/// client.
#[test]
fn many_topics_of_one_client_are_decided_by_the_rules_in_force() {
    let files = Files::with_rules(&USERS, RULES);
    let broker = files.broker(1, "session_takeover = 'any_user'\n");
    let (mut ann, _) = lasting(&broker, "c1", "ann");
    let mut root = logged_in(&broker, "root", Version::V5, "root");
    for number in 0..200 {
        let may = ann.try_publish(&format!("up/{number}"), b"x", QoS::AtLeastOnce);
        assert!(may.value() < 0x80, "{number}");
        let secret = format!("up/secret/{number}");
        assert_eq!(ann.try_publish(&secret, b"no", QoS::AtLeastOnce), DENIED);
        assert_eq!(ann.try_publish("up/0", b"no", QoS::ExactlyOnce), DENIED);
        let may = root.try_publish(&secret, b"x", QoS::AtLeastOnce);
        assert!(may.value() < 0x80, "{number}");
    }
    files.set_rules(&RULES.replace("ann = [\"device\"]", ""));
    reload(&broker, 1);
    assert_eq!(ann.try_publish("up/200", b"no", QoS::AtLeastOnce), DENIED);
    files.set_rules(RULES);
    reload(&broker, 1);
    for number in 0..200 {
        ann.publish(&format!("up/{number}"), b"x", QoS::AtLeastOnce, false);
    }
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    let mut bob = broker.client(Version::V5);
    let resumed =
        Connect { clean_start: false, properties, ..login("c1", Version::V5, "bob", "bob") };
    assert_eq!(bob.connect(&resumed), (true, ReasonCode::SUCCESS));
    assert_eq!(bob.try_publish("up/201", b"no", QoS::AtLeastOnce), DENIED);
}
