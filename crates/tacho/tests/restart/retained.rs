//! Retained messages.

use tacho_codec::{Publish, PublishProperties, QoS, UserPropertiesBuf};

use crate::process::Process;

/// They took 193 MB of disk: three segments of 64 MiB. Now the first is of 1 MiB, and at most two
/// of 4 MiB are ready; on a slow disk another of 2 MiB is begun, since the first was used before
/// it was zeroed.
#[test]
fn two_retained_messages_take_little_disk() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "1"]);
    let mut publisher = broker.connected("publisher");
    for topic in ["a", "b"] {
        publisher.publish(topic, b"payload", QoS::AtLeastOnce, true);
    }
    broker.stop();
    let files = std::fs::read_dir(directory.path()).unwrap();
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes > 0 && bytes <= 11 << 20, "{bytes} bytes");
    let broker = Process::on(directory.path(), &["--shards", "1"]);
    let mut subscriber = broker.connected("subscriber");
    subscriber.subscribe("#", QoS::AtLeastOnce);
    assert_eq!(subscriber.receive().payload, b"payload");
}

// 57
#[test]
fn retained_messages_come_back_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let mut publisher = broker.connected("publisher");
    for (topic, payload) in [("a", "first"), ("a", "second"), ("b", "removed"), ("b", "")] {
        publisher.publish(topic, payload.as_bytes(), QoS::AtLeastOnce, true);
    }
    let mut user = UserPropertiesBuf::default();
    user.push("name", "value").unwrap();
    let packet_id = Some(publisher.id());
    publisher.publish_packet(&Publish {
        topic: "c",
        payload: b"with properties",
        qos: QoS::ExactlyOnce,
        retain: true,
        packet_id,
        properties: PublishProperties {
            message_expiry_s: Some(500),
            payload_format_utf8: Some(true),
            content_type: Some("text"),
            response_topic: Some("answers"),
            correlation_data: Some(b"\0\xff"),
            user_properties: user.view(),
            ..PublishProperties::default()
        },
        ..Publish::default()
    });
    let packet_id = Some(publisher.id());
    publisher.publish_packet(&Publish {
        topic: "d",
        payload: b"short-lived",
        qos: QoS::AtLeastOnce,
        retain: true,
        packet_id,
        properties: PublishProperties { message_expiry_s: Some(1), ..Default::default() },
        ..Publish::default()
    });
    broker.kill();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let broker = Process::on(directory.path(), &["--shards", "3"]);
    let mut subscriber = broker.connected("subscriber");
    subscriber.subscribe("#", QoS::ExactlyOnce);
    let mut got: Vec<_> = (0..2).map(|_| subscriber.receive_and_ack()).collect();
    got.sort_by_key(|message| message.topic.clone());
    assert_eq!((got[0].topic.as_str(), &got[0].payload[..]), ("a", &b"second"[..]));
    assert!(got[0].retain && got[0].qos == QoS::AtLeastOnce);
    let c = &got[1];
    assert_eq!((c.topic.as_str(), &c.payload[..]), ("c", &b"with properties"[..]));
    assert_eq!(c.qos, QoS::ExactlyOnce);
    assert!(c.message_expiry_s.is_some_and(|left_s| (400..500).contains(&left_s)), "{c:?}");
    assert_eq!(c.content_type.as_deref(), Some("text"));
    assert_eq!(c.response_topic.as_deref(), Some("answers"));
    assert_eq!(c.correlation_data.as_deref(), Some(&b"\0\xff"[..]));
    assert_eq!(c.payload_format_utf8, Some(true));
    assert_eq!(c.user_properties, [("name".to_owned(), "value".to_owned())]);
    subscriber.expect_nothing();
    // Later publishes replace the restored messages.
    let mut publisher = broker.connected("publisher");
    publisher.publish("a", b"third", QoS::AtLeastOnce, true);
    publisher.publish("c", b"", QoS::AtLeastOnce, true);
    broker.stop();
    let broker = Process::on(directory.path(), &[]);
    let mut subscriber = broker.connected("subscriber");
    subscriber.subscribe("#", QoS::ExactlyOnce);
    assert_eq!(subscriber.receive_and_ack().payload, b"third");
    subscriber.expect_nothing();
}
