//! A disk that is full: what has to be written is refused, the rest goes on.

use tacho_codec::{AckKind, QoS, ReasonCode};

use crate::station::{Death, Seen, Station, message};

const QOS1: QoS = QoS::AtLeastOnce;

#[test]
fn publishers_of_what_must_be_kept_are_refused_until_there_is_space() {
    let mut station = Station::new(1);
    let mut lasting = station.lasting("lasting");
    station.subscribe(&mut lasting, "kept", QOS1);
    let mut passing = station.passing("passing");
    passing.subscribe("not/kept", QOS1);
    station.settle();
    let _ = passing.all();
    let mut publisher = station.passing("publisher");
    let used = station.disk.used_bytes();
    station.disk.set_capacity(Some(used));
    // What was prepared before is used up first.
    let mut taken = 0;
    let payload = "x".repeat(60_000);
    let refused = loop {
        publisher.publish("kept", &payload, QOS1, 1);
        station.settle();
        for _ in 0..3 {
            station.cluster.commit();
            station.settle();
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
    let mut other = station.passing("other");
    other.publish("kept", "no", QOS1, 4);
    station.settle();
    other.expect(&[Seen::Ack(AckKind::PubAck, 4, ReasonCode::QUOTA_EXCEEDED)]);
    assert!(station.cluster.counter("journal_refused_publishes_total") > 0);
    let mut held = station.passing_v3("held");
    held.publish("kept", "later", QOS1, 9);
    station.sleep(3);
    held.expect_nothing();
    // What needs no disk goes on.
    other.publish("not/kept", "yes", QOS1, 5);
    station.settle();
    other.expect_ack(AckKind::PubAck, 5);
    passing.expect(&[message("not/kept", "yes", QOS1, 1)]);
    // And all of it once there is space again.
    station.make_space();
    held.expect_ack(AckKind::PubAck, 9);
    other.publish("kept", "at last", QOS1, 6);
    station.commit();
    other.expect_ack(AckKind::PubAck, 6);
    station.restart(Death::PowerCut);
    let mut lasting = station.resumed("lasting");
    let mut seen = Vec::new();
    for _ in 0..100 {
        station.commit();
        for message in lasting.all() {
            if let Seen::Message { payload, id, .. } = message {
                lasting.acknowledge(AckKind::PubAck, id);
                seen.push(payload);
            }
        }
    }
    assert_eq!(seen.last().map(String::as_str), Some("at last"), "of {}", seen.len());
}
