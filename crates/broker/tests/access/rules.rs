//! What clients may publish, subscribe to and receive.

use tacho_codec::{Connect, QoS, ReasonCode, Version};
use tacho_testkit::{ALL_QOS, VERSIONS, will};

use super::{Files, answer, logged_in, login};

const DENIED: ReasonCode = ReasonCode::NOT_AUTHORIZED;
const RULES: &str = "user root\ntopic #\ntopic $SYS/#\n\
                     user ann\ntopic read news/#\ntopic write out/+\ntopic deny news/secret\n\
                     pattern readwrite flat/%u/#\npattern readwrite dev/%c/#\n";
const USERS: [(&str, &str); 3] = [("root", "root"), ("ann", "ann"), ("bob", "bob")];

#[test]
fn a_publish_that_is_not_allowed_is_refused_and_goes_nowhere() {
    let files = Files::new(&USERS, Some(RULES));
    for shards in [1, 3] {
        let broker = files.broker(shards, "");
        for version in VERSIONS {
            let mut root = logged_in(&broker, "root", version, "root");
            assert!(!root.subscribe("#", QoS::AtMostOnce).is_error());
            let mut ann = logged_in(&broker, "ann-1", version, "ann");
            let refused = if version == Version::V5 { DENIED } else { ReasonCode::SUCCESS };
            for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
                for topic in ["news/a", "out", "out/a/b", "flat/bob/x", "dev/ann/x", "other"] {
                    assert_eq!(ann.try_publish(topic, b"no", qos), refused, "{topic} {version}");
                }
            }
            ann.publish("news/a", b"no", QoS::AtMostOnce, true);
            for topic in ["out/a", "flat/ann/x", "dev/ann-1/x"] {
                for qos in ALL_QOS {
                    ann.publish(topic, b"yes", qos, false);
                    let message = root.receive();
                    assert_eq!((&*message.topic, &*message.payload), (topic, &b"yes"[..]));
                }
            }
            root.expect_nothing();
        }
        assert_eq!(broker.counter("denied_publishes_total"), 3 * 13);
        assert_eq!(broker.counter("retained"), 0);
    }
}

#[test]
fn on_deny_disconnect_cuts_the_publisher() {
    let files = Files::new(&USERS, Some(RULES));
    let broker = files.broker(1, "on_deny = 'disconnect'\n");
    let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
    ann.send_publish("news/a", b"x", QoS::AtMostOnce);
    assert_eq!(ann.expect_disconnect(), DENIED);
    let mut ann = logged_in(&broker, "ann", Version::V311, "ann");
    ann.send_publish("news/a", b"x", QoS::AtLeastOnce);
    ann.expect_closed();
}

#[test]
fn a_subscription_is_granted_only_as_a_whole() {
    let files = Files::new(&USERS, Some(RULES));
    for shards in [1, 3] {
        let broker = files.broker(shards, "");
        let mut ann = logged_in(&broker, "ann-1", Version::V5, "ann");
        for (filter, is_granted) in [
            ("news/a", true),
            ("news/secret", false),
            ("news/#", false), // It would include news/secret.
            ("news/+/x", true),
            ("news/a/#", true),
            ("out/a", false),
            ("flat/ann/#", true),
            ("flat/+/x", false),
            ("dev/ann-1/+", true),
            ("#", false),
            ("$SYS/#", false),
            ("$share/g/flat/ann/#", true),
            ("$share/g/news/#", false),
        ] {
            let expected = if is_granted { ReasonCode::SUCCESS } else { DENIED };
            assert_eq!(ann.subscribe(filter, QoS::AtMostOnce), expected, "{filter}");
        }
        assert_eq!(broker.counter("denied_subscriptions_total"), 7);
        let mut old = logged_in(&broker, "ann-2", Version::V311, "ann");
        assert_eq!(old.subscribe("news/#", QoS::AtLeastOnce).value(), 0x80);
        let mut root = logged_in(&broker, "root", Version::V5, "root");
        for filter in ["#", "$SYS/#", "news/+"] {
            assert_eq!(root.subscribe(filter, QoS::AtMostOnce), ReasonCode::SUCCESS);
        }
    }
}

#[test]
fn what_is_granted_arrives_live_and_retained() {
    let files = Files::new(&USERS, Some(RULES));
    let broker = files.broker(3, "");
    let mut root = logged_in(&broker, "root", Version::V5, "root");
    root.publish("news/a", b"kept", QoS::AtLeastOnce, true);
    let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
    assert_eq!(ann.subscribe("news/a", QoS::AtLeastOnce), ReasonCode::granted(QoS::AtLeastOnce));
    assert_eq!(ann.receive_and_ack().payload, b"kept");
    root.publish("news/a", b"live", QoS::AtLeastOnce, false);
    assert_eq!(ann.receive_and_ack().payload, b"live");
    assert_eq!(broker.counter("denied_deliveries_total"), 0);
}

/// As mosquitto has it.
#[test]
fn filtered_subscriptions_leave_out_what_may_not_be_received() {
    let files = Files::new(&USERS, Some(RULES));
    for (shards, qos) in [(1, QoS::AtMostOnce), (3, QoS::AtLeastOnce), (1, QoS::ExactlyOnce)] {
        let broker = files.broker(shards, "subscribe = 'filtered'\n");
        let mut root = logged_in(&broker, "root", Version::V5, "root");
        root.publish("news/secret", b"no", qos, true);
        root.publish("news/kept", b"yes", qos, true);
        let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
        assert_eq!(ann.subscribe("#", qos), ReasonCode::granted(qos));
        assert_eq!(ann.receive_and_ack().topic, "news/kept");
        // More than the window has places, if those of what is left out were not freed.
        for _ in 0..100 {
            root.publish("news/secret", b"no", qos, false);
        }
        root.publish("news/last", b"yes", qos, false);
        assert_eq!(ann.receive_and_ack().topic, "news/last");
        assert_eq!(broker.counter("denied_deliveries_total"), 101);
        // A member that left messages out would lose them for its group.
        assert_eq!(ann.subscribe("$share/g/#", qos), DENIED);
    }
}

#[test]
fn a_will_that_is_not_allowed_refuses_the_connect() {
    let files = Files::new(&USERS, Some(RULES));
    let broker = files.broker(3, "");
    for (topic, expected) in [
        ("news/a", DENIED),
        ("flat/ann/gone", ReasonCode::SUCCESS),
        ("dev/c/x", ReasonCode::SUCCESS),
    ] {
        let connect =
            Connect { will: Some(will(topic, b"gone")), ..login("c", Version::V5, "ann", "ann") };
        assert_eq!(answer(&broker, &connect), expected, "{topic}");
    }
    assert_eq!(broker.counter("denied_wills_total"), 1);
}

/// A name with a wildcard opened every topic of a pattern (CVE-2017-7650).
#[test]
fn client_identifiers_with_wildcards_open_nothing() {
    let files = Files::new(&USERS, Some(RULES));
    let broker = files.broker(1, "");
    for id in ["+", "#", "+/+", "a/b"] {
        let mut client = logged_in(&broker, id, Version::V5, "bob");
        for filter in ["dev/+/x", "dev/#", "dev/a/b", "dev/+/#"] {
            assert_eq!(client.subscribe(filter, QoS::AtMostOnce), DENIED, "{id} {filter}");
        }
        assert_eq!(client.try_publish("dev/other/x", b"x", QoS::AtLeastOnce), DENIED, "{id}");
    }
}
