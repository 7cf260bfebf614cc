//! Queued messages and exchanges under way.

use tacho_codec::{Ack, Connect, ConnectProperties, Packet, Publish, QoS, ReasonCode, Version};

use crate::process::Process;
use tacho_testkit::connect;

// 57
#[test]
fn messages_that_were_acknowledged_wait_for_their_receiver() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.subscribe("a/#", QoS::ExactlyOnce);
    receiver.disconnect();
    let mut publisher = broker.connected("publisher");
    for number in 0..40_u8 {
        let qos = if number % 2 == 0 { QoS::AtLeastOnce } else { QoS::ExactlyOnce };
        publisher.publish("a/b", &[number], qos, false);
    }
    broker.kill();
    // On another number of shards, and killed once more in between.
    Process::on(directory.path(), &["--shards", "1"]).kill();
    let broker = Process::on(directory.path(), &["--shards", "3"]);
    let (mut receiver, present) = broker.lasting("receiver", 600);
    assert!(present);
    for number in 0..40_u8 {
        let message = receiver.receive_and_ack();
        assert_eq!((message.topic.as_str(), &message.payload[..]), ("a/b", &[number][..]));
        assert_eq!(message.qos as u8, 1 + number % 2);
    }
    receiver.ping();
    receiver.expect_nothing();
    broker.stop();
    let broker = Process::on(directory.path(), &[]);
    let (mut receiver, present) = broker.lasting("receiver", 600);
    assert!(present);
    receiver.expect_nothing();
}

#[test]
fn a_long_queue_of_large_messages_comes_back_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.subscribe("a", QoS::AtLeastOnce);
    drop(receiver);
    let mut publisher = broker.connected("publisher");
    let payload = |number: u16| {
        let mut payload = vec![number as u8; if number.is_multiple_of(50) { 200_000 } else { 100 }];
        payload[..2].copy_from_slice(&number.to_be_bytes());
        payload
    };
    for number in 0..500 {
        publisher.send_publish("a", &payload(number), QoS::AtLeastOnce);
        if number % 50 == 49 {
            for _ in 0..50 {
                publisher.expect_ack(0x40);
            }
        }
    }
    broker.kill();
    let broker = Process::on(directory.path(), &[]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    for number in 0..500 {
        assert_eq!(receiver.receive_and_ack().payload, payload(number), "{number}");
    }
    receiver.expect_nothing();
}

/// Messages in memory once filled more than half of the limit behind others on disk, which were
/// then never loaded.
#[test]
fn messages_that_come_while_a_queue_drains_do_not_keep_it_from_being_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "1"]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.subscribe("a", QoS::AtLeastOnce);
    receiver.disconnect();
    let mut publisher = broker.connected("publisher");
    let mut published = 0..420_u16;
    let mut publish = || {
        let number = published.next().unwrap();
        publisher.publish("a", &number.to_be_bytes(), QoS::AtLeastOnce, false);
    };
    (0..200).for_each(|_| publish());
    let mut receiver = broker.client(Version::V5);
    receiver.connect(&Connect {
        clean_start: false,
        properties: ConnectProperties {
            session_expiry_s: Some(600),
            receive_maximum: Some(1),
            ..Default::default()
        },
        ..connect("receiver", Version::V5)
    });
    for number in 0..420_u16 {
        // The queue gets short enough for new messages to stay in memory, then keeps its length.
        if (85..305).contains(&number) {
            publish();
        }
        assert_eq!(receiver.receive_and_ack().payload, number.to_be_bytes());
    }
}

// 57
#[test]
fn messages_in_flight_are_sent_again_with_their_identifiers() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.subscribe("a", QoS::ExactlyOnce);
    let mut publisher = broker.connected("publisher");
    publisher.publish("a", b"one", QoS::AtLeastOnce, false);
    publisher.publish("a", b"two", QoS::ExactlyOnce, false);
    publisher.publish("a", b"three", QoS::ExactlyOnce, false);
    let sent: Vec<_> = (0..3).map(|_| receiver.receive()).collect();
    // PUBREC for the third one, whose PUBREL comes once that is safe.
    let third = sent[2].packet_id.unwrap();
    receiver.send(&Packet::PubRec(Ack::new(third, ReasonCode::SUCCESS)));
    assert_eq!(receiver.expect_ack(0x62), third);
    broker.kill();
    let broker = Process::on(directory.path(), &[]);
    let (mut receiver, present) = broker.lasting("receiver", 600);
    assert!(present);
    // PUBREL needs no message from the disk, and does not wait for those that do.
    assert_eq!(receiver.expect_ack(0x62), third);
    for before in &sent[..2] {
        let again = receiver.receive();
        assert!(again.dup);
        assert_eq!(
            (again.packet_id, &again.payload, again.qos),
            (before.packet_id, &before.payload, before.qos)
        );
    }
    for before in &sent[..2] {
        let id = before.packet_id.unwrap();
        if before.qos == QoS::AtLeastOnce {
            receiver.send(&Packet::PubAck(Ack::new(id, ReasonCode::SUCCESS)));
        } else {
            receiver.send(&Packet::PubRec(Ack::new(id, ReasonCode::SUCCESS)));
            assert_eq!(receiver.expect_ack(0x62), id);
            receiver.send(&Packet::PubComp(Ack::new(id, ReasonCode::SUCCESS)));
        }
    }
    receiver.send(&Packet::PubComp(Ack::new(third, ReasonCode::SUCCESS)));
    receiver.ping();
    broker.stop();
    let broker = Process::on(directory.path(), &[]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.ping();
    receiver.expect_nothing();
}

// 57
#[test]
fn an_incoming_exchange_goes_on_and_its_message_comes_once() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.subscribe("a", QoS::AtLeastOnce);
    receiver.disconnect();
    let (mut publisher, _) = broker.lasting("publisher", 600);
    publisher.send_publish("a", b"once", QoS::ExactlyOnce);
    let id = publisher.expect_ack(0x50);
    broker.kill();
    let broker = Process::on(directory.path(), &[]);
    let (mut publisher, present) = broker.lasting("publisher", 600);
    assert!(present);
    // It has not seen PUBREC: the message comes again.
    let (packet_id, qos) = (Some(id), QoS::ExactlyOnce);
    let publish =
        Publish { topic: "a", payload: b"once", qos, packet_id, dup: true, ..Publish::default() };
    publisher.send(&Packet::Publish(publish));
    assert_eq!(publisher.expect_ack(0x50), id);
    publisher.send(&Packet::PubRel(Ack::new(id, ReasonCode::SUCCESS)));
    assert_eq!(publisher.expect_ack(0x70), id);
    broker.kill();
    let broker = Process::on(directory.path(), &[]);
    let (mut publisher, _) = broker.lasting("publisher", 600);
    // The identifier is free: this is another message.
    publisher.send(&Packet::Publish(Publish { payload: b"twice", dup: false, ..publish }));
    assert_eq!(publisher.expect_ack(0x50), id);
    publisher.send(&Packet::PubRel(Ack::new(id, ReasonCode::SUCCESS)));
    assert_eq!(publisher.expect_ack(0x70), id);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    assert_eq!(receiver.receive_and_ack().payload, b"once");
    assert_eq!(receiver.receive_and_ack().payload, b"twice");
    receiver.expect_nothing();
}

#[test]
fn messages_waiting_for_a_shared_subscription_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "3"]);
    let (mut member, _) = broker.lasting("member", 600);
    member.subscribe("$share/group/a", QoS::AtLeastOnce);
    member.disconnect();
    let mut publisher = broker.connected("publisher");
    for number in 0..10_u8 {
        publisher.publish("a", &[number], QoS::AtLeastOnce, false);
    }
    broker.kill();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut member, present) = broker.lasting("member", 600);
    assert!(present);
    for number in 0..10_u8 {
        assert_eq!(member.receive_and_ack().payload, [number]);
    }
    member.ping();
    broker.stop();
    let broker = Process::on(directory.path(), &[]);
    let (mut member, _) = broker.lasting("member", 600);
    member.expect_nothing();
}
