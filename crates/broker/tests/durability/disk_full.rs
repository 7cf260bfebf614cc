//! A disk that is full: what has to be written is refused, the rest goes on.

use tacho_codec::{AckKind, QoS, ReasonCode};

use crate::durable_broker::{Death, DurableBroker, Seen, message};

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
