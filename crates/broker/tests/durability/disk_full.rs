//! A disk that is full: what has to be written is refused, the rest goes on.

use tacho_codec::{AckKind, QoS, ReasonCode};

use crate::durable_broker::{Death, DurableBroker, Seen, message, named_for};

const QOS1: QoS = QoS::AtLeastOnce;

#[test]
fn publishers_of_what_must_be_kept_are_refused_until_there_is_space() {
    let mut broker = DurableBroker::new(1);
    let mut lasting = broker.lasting("lasting");
    broker.subscribe(&mut lasting, "kept", QOS1);
    let mut passing = broker.passing("passing");
    passing.subscribe("not/kept", QOS1);
    broker.settle();
    let _ = passing.all();
    let mut publisher = broker.passing("publisher");
    let used = broker.disk.used_bytes();
    broker.disk.set_capacity(Some(used));
    // What was prepared before is used up first.
    let mut taken = 0;
    let payload = "x".repeat(60_000);
    let refused = loop {
        publisher.publish("kept", &payload, QOS1, 1);
        broker.settle();
        for _ in 0..3 {
            broker.cluster.commit();
            broker.settle();
        }
        match &publisher.all()[..] {
            [Seen::Ack(AckKind::PubAck, 1, reason)] if reason.is_error() => break *reason,
            [Seen::Ack(AckKind::PubAck, 1, _)] => taken += 1,
            // Taken in, and kept until there is space.
            [] => break ReasonCode::QUOTA_EXCEEDED,
            other => panic!("{other:?}"),
        }
        assert!(taken < 100_000, "the disk is never full");
        if taken % 100 == 0 {
            let _ = lasting.all();
            for id in 1..=100 {
                lasting.acknowledge(AckKind::PubAck, id);
            }
        }
    };
    assert_eq!(refused, ReasonCode::QUOTA_EXCEEDED);
    let mut other = broker.passing("other");
    other.publish("kept", "no", QOS1, 4);
    broker.settle();
    other.expect(&[Seen::Ack(AckKind::PubAck, 4, ReasonCode::QUOTA_EXCEEDED)]);
    assert!(broker.cluster.counter("journal_refused_publishes_total") > 0);
    let mut held = broker.passing_v3("held");
    held.publish("kept", "later", QOS1, 9);
    broker.sleep(3);
    held.expect_nothing();
    // What needs no disk goes on.
    other.publish("not/kept", "yes", QOS1, 5);
    broker.settle();
    other.expect_ack(AckKind::PubAck, 5);
    passing.expect(&[message("not/kept", "yes", QOS1, 1)]);
    // And all of it once there is space again.
    broker.make_space();
    held.expect_ack(AckKind::PubAck, 9);
    other.publish("kept", "at last", QOS1, 6);
    broker.commit();
    other.expect_ack(AckKind::PubAck, 6);
    broker.restart(Death::PowerCut);
    let mut lasting = broker.resumed("lasting");
    let mut seen = Vec::new();
    for _ in 0..100 {
        broker.commit();
        for message in lasting.all() {
            if let Seen::Message { payload, id, .. } = message {
                lasting.acknowledge(AckKind::PubAck, id);
                seen.push(payload);
            }
        }
    }
    assert_eq!(seen.last().map(String::as_str), Some("at last"), "of {}", seen.len());
}

/// A shard with a durable session is no reason to refuse what that session does not get.
#[test]
fn a_message_for_passing_sessions_of_a_shard_with_durable_ones_passes_a_full_disk() {
    let mut broker = DurableBroker::new(2);
    let (publisher, passing, lasting) =
        (named_for(0, 2, "publisher"), named_for(1, 2, "passing"), named_for(1, 2, "lasting"));
    let mut lasting = broker.lasting(&lasting);
    broker.subscribe(&mut lasting, "kept", QOS1);
    // Nothing has to be written for QoS 0.
    broker.subscribe(&mut lasting, "both/#", QoS::AtMostOnce);
    let mut passing = broker.passing(&passing);
    for filter in ["other", "both/x"] {
        passing.subscribe(filter, QOS1);
        broker.settle();
        assert_eq!(passing.next(), Seen::SubAck);
    }
    let mut publisher = broker.passing(&publisher);
    broker.fill();
    // Far more than a shard may append to a journal that takes nothing.
    let payload = "x".repeat(60_000);
    for _ in 0..100 {
        for topic in ["other", "both/x"] {
            publisher.publish(topic, &payload, QOS1, 1);
            broker.settle();
            publisher.expect_ack(AckKind::PubAck, 1);
            let Seen::Message { topic: arrived, id, .. } = passing.next() else { panic!() };
            assert_eq!(arrived, topic);
            passing.acknowledge(AckKind::PubAck, id);
            broker.settle();
        }
        let _ = lasting.all();
    }
    publisher.publish("kept", "no", QOS1, 2);
    broker.settle();
    publisher.expect(&[Seen::Ack(AckKind::PubAck, 2, ReasonCode::QUOTA_EXCEEDED)]);
    // A subscription with a higher QoS makes the difference, a lower one takes it back.
    broker.make_space();
    for (qos, is_kept) in [(QOS1, true), (QoS::AtMostOnce, false)] {
        broker.subscribe(&mut lasting, "both/#", qos);
        broker.fill();
        let _ = lasting.all();
        publisher.publish("both/x", "is it kept?", QOS1, 3);
        broker.settle();
        let reason = if is_kept { ReasonCode::QUOTA_EXCEEDED } else { ReasonCode::SUCCESS };
        publisher.expect(&[Seen::Ack(AckKind::PubAck, 3, reason)]);
        broker.make_space();
        let _ = lasting.all();
    }
    // It holds after a restart as well.
    broker.restart(Death::PowerCut);
    let passing_id = passing.client_id.clone();
    let mut passing = broker.passing(&passing_id);
    passing.subscribe("other", QOS1);
    broker.settle();
    assert_eq!(passing.next(), Seen::SubAck);
    let publisher_id = publisher.client_id.clone();
    let mut publisher = broker.passing(&publisher_id);
    broker.fill();
    for (topic, reason) in [("other", ReasonCode::SUCCESS), ("kept", ReasonCode::QUOTA_EXCEEDED)] {
        publisher.publish(topic, "again", QOS1, 4);
        broker.settle();
        publisher.expect(&[Seen::Ack(AckKind::PubAck, 4, reason)]);
    }
}
