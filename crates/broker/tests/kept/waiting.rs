//! What waits for a commit, and what does not.

use tacho_codec::{AckKind, Disconnect, Packet, QoS, ReasonCode};
use tacho_journal::sim::Faults;

use crate::station::{Death, Seen, Station, message};

const QOS0: QoS = QoS::AtMostOnce;
const QOS1: QoS = QoS::AtLeastOnce;
const QOS2: QoS = QoS::ExactlyOnce;

#[test]
fn puback_leaves_after_the_commit_of_what_a_lasting_session_gets() {
    for online in [true, false] {
        let mut station = Station::new(1);
        let mut subscriber = station.lasting("subscriber");
        station.subscribe(&mut subscriber, "a/#", QOS1);
        if !online {
            subscriber.peer.reset();
            station.commit();
        }
        let mut publisher = station.passing("publisher");
        publisher.publish("a/1", "one", QOS1, 7);
        station.settle();
        publisher.expect_nothing();
        if online {
            // What is sent to the subscriber does not wait.
            subscriber.expect(&[message("a/1", "one", QOS1, 1)]);
        }
        assert!(station.cluster.commit());
        station.settle();
        publisher.expect_ack(AckKind::PubAck, 7);
        if !online {
            let mut subscriber = station.resumed("subscriber");
            station.commit();
            subscriber.expect(&[message("a/1", "one", QOS1, 1)]);
        }
    }
}

#[test]
fn a_message_for_passing_sessions_waits_for_nothing() {
    let mut station = Station::new(2);
    let lasting = station.lasting("elsewhere");
    let mut first = station.passing("first");
    let mut second = station.passing("the-second-one");
    for client in [&mut first, &mut second] {
        client.subscribe("a", QOS2);
    }
    station.settle();
    let _ = (first.all(), second.all());
    let mut publisher = station.passing("publisher");
    publisher.publish("a", "one", QOS1, 1);
    publisher.publish("a", "two", QOS2, 2);
    station.settle();
    let acks: Vec<_> = publisher.all();
    // Another shard that has lasting sessions is asked; its answer needs no commit.
    assert_eq!(acks.len(), 2, "{acks:?}");
    assert!(first.all().len() == 2 && second.all().len() == 2);
    drop(lasting);
}

#[test]
fn acknowledgements_leave_in_the_order_of_the_publishes() {
    let mut station = Station::new(1);
    let mut subscriber = station.lasting("subscriber");
    station.subscribe(&mut subscriber, "kept", QOS1);
    let mut publisher = station.passing("publisher");
    publisher.publish("kept", "1", QOS1, 1);
    publisher.publish("not/kept", "2", QOS1, 2);
    publisher.publish("kept", "3", QOS2, 3);
    publisher.publish("not/kept", "4", QOS1, 4);
    station.settle();
    publisher.expect_nothing();
    station.commit();
    let ids: Vec<_> = publisher.all();
    let ids: Vec<_> = ids.iter().map(|seen| format!("{seen:?}")).collect();
    for (id, ack) in ["1", "2", "3", "4"].iter().zip(&ids) {
        assert!(ack.contains(&format!(", {id}, ")), "{ids:?}");
    }
    assert_eq!(ids.len(), 4);
}

#[test]
fn a_lasting_publishers_qos_2_waits_for_its_identifiers() {
    let mut station = Station::new(1);
    let mut publisher = station.lasting("publisher");
    publisher.publish("unread/topic", "one", QOS2, 9);
    station.settle();
    publisher.expect_nothing();
    station.commit();
    assert_eq!(publisher.all().len(), 1, "PUBREC");
    publisher.acknowledge(AckKind::PubRel, 9);
    station.settle();
    publisher.expect_nothing();
    station.commit();
    publisher.expect_ack(AckKind::PubComp, 9);
}

#[test]
fn a_lasting_subscribers_qos_2_waits_in_both_steps() {
    let mut station = Station::new(1);
    let mut subscriber = station.lasting("subscriber");
    station.subscribe(&mut subscriber, "a", QOS2);
    let mut publisher = station.passing("publisher");
    publisher.publish("a", "one", QOS2, 1);
    station.settle();
    subscriber.expect_nothing();
    publisher.expect_nothing();
    station.commit();
    publisher.expect_ack(AckKind::PubRec, 1);
    subscriber.expect(&[message("a", "one", QOS2, 1)]);
    subscriber.acknowledge(AckKind::PubRec, 1);
    station.settle();
    subscriber.expect_nothing();
    station.commit();
    subscriber.expect_ack(AckKind::PubRel, 1);
    // The end of the exchange forces nothing.
    subscriber.acknowledge(AckKind::PubComp, 1);
    station.commit();
    subscriber.expect_nothing();
}

#[test]
fn a_message_for_sessions_of_two_shards_waits_for_both_and_is_written_once() {
    let mut station = Station::new(2);
    // One of these names belongs to each shard, as the number of open messages shows.
    let names = ["subscriber-a", "subscriber-b", "subscriber-c", "subscriber-d"];
    for name in names {
        let mut subscriber = station.lasting(name);
        station.subscribe(&mut subscriber, "a", QOS1);
        subscriber.peer.reset();
    }
    station.commit();
    let mut publisher = station.passing("publisher");
    let before = station.cluster.counter("journal_messages_total");
    publisher.publish("a", "one", QOS1, 3);
    station.settle();
    publisher.expect_nothing();
    station.commit();
    publisher.expect_ack(AckKind::PubAck, 3);
    assert_eq!(station.cluster.counter("journal_messages_total") - before, 1);
    assert_eq!(station.cluster.counter("journal_open_total"), 1);
    for death in [Death::Killed, Death::PowerCut] {
        station.restart(death);
        for name in names {
            let mut subscriber = station.resumed(name);
            station.commit();
            let dup = death == Death::PowerCut;
            let seen = subscriber.all();
            assert_eq!(seen.len(), 1, "{name} after {death:?}: {seen:?}");
            assert!(format!("{seen:?}").contains(&format!("dup: {dup}")), "{seen:?}");
        }
    }
}

#[test]
fn qos_0_to_an_absent_session_is_kept_only_if_the_settings_say_so() {
    for offline_qos0 in [false, true] {
        let mut station = Station::configured(2, |raw| {
            raw.durability.get_or_insert_default().offline_qos0 = offline_qos0;
        });
        let names = ["subscriber-a", "subscriber-b", "subscriber-c"];
        for name in names {
            let mut subscriber = station.lasting(name);
            station.subscribe(&mut subscriber, "a", QOS0);
            subscriber.peer.reset();
        }
        station.commit();
        let publisher = station.passing("publisher");
        publisher.publish("a", "one", QOS0, 0);
        station.commit();
        for round in 0..2 {
            station.restart(Death::PowerCut);
            for name in names {
                let mut subscriber = station.resumed(name);
                station.commit();
                // At most once: after the first time it is gone.
                if offline_qos0 && round == 0 {
                    subscriber.expect(&[message("a", "one", QOS0, 0)]);
                } else {
                    subscriber.expect_nothing();
                }
            }
        }
    }
}

#[test]
fn the_end_of_a_session_is_committed_before_connack() {
    for leaves in [false, true] {
        let mut station = Station::new(1);
        let mut former = station.lasting("client");
        station.subscribe(&mut former, "a", QOS1);
        if leaves {
            let session_expiry_s = Some(0);
            let goodbye = Disconnect::new(ReasonCode::SUCCESS);
            former.send(&Packet::Disconnect(Disconnect { session_expiry_s, ..goodbye }));
            station.settle();
        }
        // Not durable itself, so that nothing of its own has to be written.
        let mut client = station.visiting("client", !leaves);
        station.settle();
        client.expect_nothing();
        station.commit();
        client.expect(&[Seen::Connected { session_present: false }]);
        station.restart(Death::PowerCut);
        let mut client = station.visiting("client", false);
        station.commit();
        client.expect(&[Seen::Connected { session_present: false }]);
    }
}

#[test]
fn the_release_of_a_message_that_cannot_be_read_leaves_with_its_own_commit() {
    let mut station = Station::new(1);
    let mut subscriber = station.lasting("subscriber");
    station.subscribe(&mut subscriber, "a", QOS2);
    let mut publisher = station.passing("publisher");
    publisher.publish("a", "one", QOS2, 1);
    station.commit();
    subscriber.expect(&[message("a", "one", QOS2, 1)]);
    publisher.expect_ack(AckKind::PubRec, 1);
    station.restart(Death::Killed);
    station.disk.set_faults(Faults { read_error: 1.0, ..Faults::default() });
    // The exchange is resumed, its message is lost. Nothing else happens: in the past PUBREL, and
    // all that was behind it, waited for a commit that another event asked for.
    let mut subscriber = station.resumed("subscriber");
    subscriber.expect_ack(AckKind::PubRel, 1);
    assert_eq!(station.cluster.counter("lost_messages_total"), 1);
    station.disk.set_faults(Faults::default());
    subscriber.acknowledge(AckKind::PubComp, 1);
    let publisher = station.passing("publisher");
    publisher.publish("a", "two", QOS2, 1);
    station.commit();
    subscriber.expect(&[message("a", "two", QOS2, 2)]);
}
