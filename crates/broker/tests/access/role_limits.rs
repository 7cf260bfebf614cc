//! Limits by role: what exceeds them is refused with the code that says so, and counted.

use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, Version, Will};
use tacho_testkit::{Client, TestBroker, VERSIONS, wait_until, will};

use super::reload::{lasting, reload};
use super::{Files, answer, logged_in, login};

const QUOTA: ReasonCode = ReasonCode::QUOTA_EXCEEDED;
const USERS: [&str; 2] = ["root", "ann"];

/// All clients may do everything, and the user ann has the role with these limits.
fn rules(limits: &str) -> String {
    format!(
        "[users]\nann = 'small'\n[roles.small]\n{limits}\n\
         [[rules]]\nallow = ['all', 'connect']\ntopics = '#'\n"
    )
}

fn broker(files: &Files, shards: usize) -> TestBroker {
    files.broker(shards, "")
}

fn watching(broker: &TestBroker) -> Client {
    let mut root = logged_in(broker, "root", Version::V5, "root");
    root.subscribe("#", QoS::AtMostOnce);
    root
}

// [MQTT-3.2.2-9], [MQTT-3.2.2-10], [MQTT-3.2.2-12], [MQTT-3.2.2-13]
#[test]
fn qos_and_retain_are_said_in_connack_and_kept_to() {
    let files = Files::with_rules(&USERS, &rules("qos_max = 1\nretain = false"));
    let broker = broker(&files, 1);
    let mut root = watching(&broker);
    let mut ann = broker.client(Version::V5);
    let (qos, retain) = ann.connect_with(&login("a", Version::V5, "ann", "ann"), |connack| {
        (connack.properties.maximum_qos, connack.properties.retain_available)
    });
    assert_eq!((qos, retain), (Some(QoS::AtLeastOnce), Some(false)));
    assert_eq!(ann.subscribe("x", QoS::ExactlyOnce), ReasonCode::granted(QoS::AtLeastOnce));
    ann.publish("a", b"yes", QoS::AtLeastOnce, false);
    assert_eq!(root.receive().payload, b"yes");
    ann.send_publish("a", b"no", QoS::ExactlyOnce);
    assert_eq!(ann.expect_disconnect(), ReasonCode::QOS_NOT_SUPPORTED);
    let mut ann = logged_in(&broker, "a", Version::V5, "ann");
    ann.send_retained("a", b"no");
    assert_eq!(ann.expect_disconnect(), ReasonCode::RETAIN_NOT_SUPPORTED);
    // Before 5.0 nothing can be said: the message is dropped as one that is not allowed.
    let mut old = logged_in(&broker, "old", Version::V311, "ann");
    assert_eq!(old.try_publish("a", b"no", QoS::ExactlyOnce), ReasonCode::SUCCESS);
    old.publish("a", b"no", QoS::AtLeastOnce, true);
    old.publish("a", b"yes", QoS::AtLeastOnce, false);
    assert_eq!(root.receive().payload, b"yes");
    root.expect_nothing();
    for (qos, retain, expected) in [
        (QoS::ExactlyOnce, false, ReasonCode::QOS_NOT_SUPPORTED),
        (QoS::AtMostOnce, true, ReasonCode::RETAIN_NOT_SUPPORTED),
    ] {
        let connect = |version| {
            let will = Some(Will { qos, retain, ..will("a", b"gone") });
            Connect { will, ..login("w", version, "ann", "ann") }
        };
        assert_eq!(answer(&broker, &connect(Version::V5)), expected);
        assert!(answer(&broker, &connect(Version::V311)).is_error());
    }
    assert_eq!(broker.counter("role_limit_qos_total"), 4);
    assert_eq!(broker.counter("role_limit_retain_total"), 4);
    assert_eq!(broker.counter("retained"), 0);
}

#[test]
fn levels_and_subscriptions_are_limited() {
    let files = Files::with_rules(&USERS, &rules("topic_levels_max = 2\nsubscriptions_max = 2"));
    let broker = broker(&files, 1);
    let mut root = watching(&broker);
    let mut ann = logged_in(&broker, "a", Version::V5, "ann");
    for _ in 0..2 {
        assert_eq!(ann.try_publish("a/b/c", b"no", QoS::AtLeastOnce), QUOTA);
        assert!(!ann.try_publish("a/b", b"yes", QoS::AtLeastOnce).is_error());
        assert_eq!(root.receive().payload, b"yes");
    }
    assert_eq!(ann.subscribe("x/y/z", QoS::AtMostOnce), QUOTA);
    for (filter, expected) in [
        ("x", ReasonCode::SUCCESS),
        ("$share/g/x/y", ReasonCode::SUCCESS),
        ("z", QUOTA),
        ("x", ReasonCode::SUCCESS),
    ] {
        assert_eq!(ann.subscribe(filter, QoS::AtMostOnce), expected, "{filter}");
    }
    ann.unsubscribe("x");
    assert_eq!(ann.subscribe("z", QoS::AtMostOnce), ReasonCode::SUCCESS);
    assert_eq!(broker.counter("role_limit_topic_levels_total"), 3);
    assert_eq!(broker.counter("role_limit_subscriptions_total"), 1);
    // A user without the role.
    assert_eq!(root.subscribe("x/y/z", QoS::AtMostOnce), ReasonCode::SUCCESS);
}

#[test]
fn connections_of_one_user_are_limited_over_all_shards() {
    let files = Files::with_rules(&USERS, &rules("connections_max = 2"));
    for shards in [1, 3] {
        let broker = broker(&files, shards);
        let first = logged_in(&broker, "a1", Version::V5, "ann");
        let mut second = logged_in(&broker, "a2", Version::V5, "ann");
        assert_eq!(answer(&broker, &login("a3", Version::V5, "ann", "ann")), QUOTA);
        for version in VERSIONS {
            assert!(answer(&broker, &login("a4", version, "ann", "ann")).is_error());
        }
        // Its own place it may take.
        let again = logged_in(&broker, "a2", Version::V5, "ann");
        assert_eq!(second.expect_disconnect(), ReasonCode::SESSION_TAKEN_OVER);
        assert_eq!(answer(&broker, &login("a3", Version::V5, "ann", "ann")), QUOTA);
        logged_in(&broker, "root", Version::V5, "root");
        first.disconnect();
        wait_until("a place", || {
            answer(&broker, &login("a3", Version::V5, "ann", "ann")) == ReasonCode::SUCCESS
        });
        assert!(broker.counter("role_limit_connections_total") >= 5);
        again.disconnect();
    }
}

#[test]
fn packets_sessions_and_queues_are_limited() {
    let limits = "packet_size_max = 1000\nsession_expiry_max_s = 60\nqueue_len_max = 3";
    let files = Files::with_rules(&USERS, &rules(limits));
    let text = "[limits]\npersistent_queue_full = 'drop_newest'\n";
    let broker = TestBroker::configured(&format!("shards = 1\n{}{text}", files.section()));
    let mut root = logged_in(&broker, "root", Version::V5, "root");
    let properties = ConnectProperties { session_expiry_s: Some(3_600), ..Default::default() };
    let lasting =
        Connect { clean_start: false, properties, ..login("a", Version::V5, "ann", "ann") };
    let mut ann = broker.client(Version::V5);
    let (size, expiry) = ann.connect_with(&lasting, |connack| {
        (connack.properties.packet_size_max, connack.properties.session_expiry_s)
    });
    assert_eq!((size, expiry), (Some(1_000), Some(60)));
    ann.subscribe("a", QoS::AtLeastOnce);
    root.publish("a", &[0; 2_000], QoS::AtLeastOnce, false);
    assert_eq!(ann.receive_and_ack().payload.len(), 2_000);
    ann.send_publish("b", &[0; 2_000], QoS::AtMostOnce);
    assert_eq!(ann.expect_disconnect(), ReasonCode::PACKET_TOO_LARGE);
    wait_until("the end of a connection", || broker.counter("sessions_connected") == 1);
    for number in 0..8 {
        root.publish("a", &[number], QoS::AtLeastOnce, false);
    }
    let mut ann = broker.client(Version::V5);
    assert_eq!(ann.connect(&lasting), (true, ReasonCode::SUCCESS));
    for number in 0..3 {
        assert_eq!(ann.receive_and_ack().payload, [number]);
    }
    ann.expect_nothing();
    assert_eq!(broker.counter("dropped_queue_full_total"), 5);
}

#[test]
fn new_limits_count_for_clients_that_are_connected() {
    let files = Files::with_rules(&USERS, &rules(""));
    for shards in [1, 3] {
        files.set_rules(&rules(""));
        let broker = broker(&files, shards);
        let mut ann = logged_in(&broker, "a", Version::V5, "ann");
        assert!(!ann.try_publish("a/b", b"x", QoS::AtLeastOnce).is_error());
        files.set_rules(&rules("topic_levels_max = 1\nqos_max = 1"));
        reload(&broker, shards as u64);
        assert_eq!(ann.try_publish("a/b", b"x", QoS::AtLeastOnce), QUOTA);
        ann.send_publish("a", b"x", QoS::ExactlyOnce);
        assert_eq!(ann.expect_disconnect(), ReasonCode::QOS_NOT_SUPPORTED);
        files.set_rules(&rules(""));
        reload(&broker, shards as u64);
        let mut ann = logged_in(&broker, "a", Version::V5, "ann");
        assert!(!ann.try_publish("a/b", b"x", QoS::AtLeastOnce).is_error());
    }
}

#[test]
fn messages_and_bytes_per_second_are_limited() {
    for (limits, excess) in [
        ("publish_messages_per_s_max = 5", "hold"),
        ("publish_bytes_per_s_max = 400\npublish_bytes_burst = 500", "hold"),
        ("publish_messages_per_s_max = 1000\npublish_messages_burst = 5", "disconnect"),
    ] {
        let limits = format!("{limits}\npublish_excess = '{excess}'");
        let files = Files::with_rules(&USERS, &rules(&limits));
        let broker = broker(&files, 2);
        let mut root = watching(&broker);
        let mut ann = logged_in(&broker, "a", Version::V5, "ann");
        for number in 0..20 {
            ann.send_publish("a", &[number; 100], QoS::AtMostOnce);
        }
        if excess == "hold" {
            wait_until("a client held back", || broker.counter("throttled_rate_total") > 0);
            // It is not read on, and what it has sent is not lost.
            for number in 0..20 {
                assert_eq!(root.receive().payload, [number; 100]);
            }
        } else {
            assert_eq!(ann.expect_disconnect(), ReasonCode::MESSAGE_RATE_TOO_HIGH);
        }
        // A user without the role.
        for number in 0..20 {
            root.send_publish("r", &[number; 100], QoS::AtMostOnce);
        }
        wait_until("the messages of others", || {
            let mut message = root.receive();
            while message.topic != "r" || message.payload != [19; 100] {
                message = root.receive();
            }
            true
        });
    }
}

#[test]
fn a_new_rate_counts_for_clients_that_are_connected() {
    let files = Files::with_rules(&USERS, &rules(""));
    let broker = broker(&files, 1);
    let mut ann = logged_in(&broker, "a", Version::V5, "ann");
    files.set_rules(&rules("publish_messages_per_s_max = 5\npublish_excess = 'disconnect'"));
    reload(&broker, 1);
    for _ in 0..20 {
        ann.send_publish("a", b"x", QoS::AtMostOnce);
    }
    assert_eq!(ann.expect_disconnect(), ReasonCode::MESSAGE_RATE_TOO_HIGH);
    assert_eq!(broker.counter("ended_rate_total"), 1);
}

#[test]
fn a_role_has_its_own_policy_for_full_queues() {
    let limits = "queue_len_max = 3\npersistent_queue_full = 'drop_oldest'";
    let files = Files::with_rules(&USERS, &rules(limits));
    let broker = broker(&files, 1);
    let mut root = logged_in(&broker, "root", Version::V5, "root");
    let (mut ann, _) = lasting(&broker, "ann", "ann");
    ann.subscribe("a", QoS::AtLeastOnce);
    ann.disconnect();
    wait_until("the end of a connection", || broker.counter("sessions_connected") == 1);
    for number in 0..8 {
        root.publish("a", &[number], QoS::AtLeastOnce, false);
    }
    let (mut ann, _) = lasting(&broker, "ann", "ann");
    for number in 5..8 {
        assert_eq!(ann.receive_and_ack().payload, [number]);
    }
    ann.expect_nothing();
    assert_eq!(broker.counter("dropped_queue_full_total"), 5);
}
