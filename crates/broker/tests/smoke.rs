//! The shortest way through each part, with one shard and with several.

use tacho_codec::{Connect, Packet, QoS, ReasonCode, Version};
use tacho_testkit::{TestBroker, connect, will};

const VERSIONS: [Version; 3] = [Version::V31, Version::V311, Version::V5];
const ALL_QOS: [QoS; 3] = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];

// 25
#[test]
fn publishes_reach_subscribers_at_every_qos_and_version() {
    for shards in [1, 3] {
        let broker = TestBroker::start(shards);
        for version in VERSIONS {
            let mut subscriber = broker.connected("sub", version);
            let mut publisher = broker.connected("pub", version);
            for (i, filter) in ["a/b", "a/+", "#"].into_iter().enumerate() {
                subscriber.subscribe(filter, QoS::ExactlyOnce);
                for qos in ALL_QOS {
                    let payload = format!("{i}-{qos:?}");
                    publisher.publish("a/b", payload.as_bytes(), qos, false);
                    let message = subscriber.receive_and_ack();
                    assert_eq!(message.payload, payload.as_bytes());
                    assert_eq!((message.qos, message.retain), (qos, false));
                }
            }
            subscriber.expect_nothing();
        }
    }
}

#[test]
fn retained_messages_are_replayed_once_with_the_flag() {
    for shards in [1, 3] {
        let broker = TestBroker::start(shards);
        let mut publisher = broker.connected("pub", Version::V5);
        for i in 0..200 {
            publisher.publish(&format!("r/{i}"), b"kept", QoS::AtLeastOnce, true);
        }
        publisher.publish("r/7", b"", QoS::AtLeastOnce, true);
        let mut subscriber = broker.connected("sub", Version::V5);
        subscriber.subscribe("r/+", QoS::AtLeastOnce);
        let mut topics: Vec<String> = (0..199)
            .map(|_| {
                let message = subscriber.receive_and_ack();
                assert!(message.retain);
                message.topic
            })
            .collect();
        subscriber.expect_nothing();
        topics.sort();
        topics.dedup();
        assert_eq!(topics.len(), 199);
        assert!(!topics.contains(&"r/7".to_owned()));
    }
}

#[test]
fn will_is_published_when_the_connection_is_lost() {
    for shards in [1, 3] {
        let broker = TestBroker::start(shards);
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("wills/#", QoS::ExactlyOnce);
        for version in VERSIONS {
            let mut client = broker.client(version);
            let will = Some(will("wills/x", b"gone"));
            client.connect(&Connect { will, ..connect("mortal", version) });
            drop(client);
            assert_eq!(watcher.receive().payload, b"gone");
        }
    }
}

#[test]
fn takeover_disconnects_the_old_connection_and_keeps_the_session() {
    for shards in [1, 3] {
        let broker = TestBroker::start(shards);
        let connect = Connect { clean_start: false, ..connect("same", Version::V311) };
        let mut first = broker.client(Version::V311);
        assert_eq!(first.connect(&connect), (false, ReasonCode::SUCCESS));
        first.subscribe("t", QoS::AtLeastOnce);
        let mut second = broker.client(Version::V311);
        assert_eq!(second.connect(&connect), (true, ReasonCode::SUCCESS));
        first.expect_closed();
        let mut publisher = broker.connected("pub", Version::V5);
        publisher.publish("t", b"x", QoS::AtLeastOnce, false);
        assert_eq!(second.receive_and_ack().payload, b"x");
    }
}

#[test]
fn offline_session_gets_its_queued_messages_in_order() {
    for shards in [1, 3] {
        let broker = TestBroker::start(shards);
        let connect = Connect { clean_start: false, ..connect("sleeper", Version::V311) };
        let mut sleeper = broker.client(Version::V311);
        sleeper.connect(&connect);
        sleeper.subscribe("q/#", QoS::ExactlyOnce);
        sleeper.send(&Packet::Disconnect(Default::default()));
        sleeper.expect_closed();
        let mut publisher = broker.connected("pub", Version::V5);
        for i in 0..100 {
            let qos = if i % 2 == 0 { QoS::AtLeastOnce } else { QoS::ExactlyOnce };
            publisher.publish("q/t", format!("{i}").as_bytes(), qos, false);
        }
        let mut sleeper = broker.client(Version::V311);
        assert_eq!(sleeper.connect(&connect), (true, ReasonCode::SUCCESS));
        let mut got = Vec::new();
        while got.len() < 100 {
            let message = sleeper.expect(|p| match p {
                Packet::Publish(p) => Some((p.payload.to_vec(), p.qos, p.packet_id.unwrap())),
                Packet::PubRel(_) => None,
                other => panic!("{other:?}"),
            });
            let Some((payload, qos, id)) = message else { continue };
            got.push(String::from_utf8(payload).unwrap());
            let ack = tacho_codec::Ack::new(id, ReasonCode::SUCCESS);
            match qos {
                QoS::AtLeastOnce => sleeper.send(&Packet::PubAck(ack)),
                _ => {
                    sleeper.send(&Packet::PubRec(ack));
                    sleeper.send(&Packet::PubComp(ack));
                }
            }
        }
        let expected: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn shared_subscription_delivers_each_message_to_one_member() {
    for shards in [1, 3] {
        let broker = TestBroker::start(shards);
        let mut members: Vec<_> = (0..4)
            .map(|i| {
                let mut member = broker.connected(&format!("member-{i}"), Version::V5);
                assert_eq!(
                    member.subscribe("$share/g/jobs/+", QoS::AtLeastOnce),
                    ReasonCode::GRANTED_QOS_1
                );
                member
            })
            .collect();
        let mut publisher = broker.connected("pub", Version::V5);
        for i in 0..400 {
            publisher.publish("jobs/x", format!("{i}").as_bytes(), QoS::AtLeastOnce, false);
        }
        let mut all = Vec::new();
        let deadline = std::time::Instant::now() + tacho_testkit::PATIENCE;
        while all.len() < 400 && std::time::Instant::now() < deadline {
            for member in &mut members {
                while let Ok(Some(frame)) = member.frame_within(std::time::Duration::from_millis(2))
                {
                    all.push(frame[2 + 2 + 6 + 2 + 1..].to_vec());
                }
            }
        }
        assert_eq!(all.len(), 400, "each message once");
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 400, "and no message twice");
    }
}

#[test]
fn stopping_says_goodbye_to_v5_clients() {
    let mut broker = TestBroker::start(2);
    let mut v5 = broker.connected("five", Version::V5);
    let mut v3 = broker.connected("three", Version::V311);
    broker.begin_stop();
    assert_eq!(v5.expect_disconnect(), ReasonCode::SERVER_SHUTTING_DOWN);
    v3.expect_closed();
    broker.stop();
}
