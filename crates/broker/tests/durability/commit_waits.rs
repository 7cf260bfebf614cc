//! What waits for a commit, and what does not.

use std::fs;

use tacho_access::{Scheme, StoredPassword, set_user};
use tacho_broker::AccessReloaded;
use tacho_codec::{AckKind, Disconnect, Packet, QoS, ReasonCode, Version};
use tacho_journal::sim::Faults;

use crate::durable_broker::{Death, DurableBroker, Seen, message};

const QOS0: QoS = QoS::AtMostOnce;
const QOS1: QoS = QoS::AtLeastOnce;
const QOS2: QoS = QoS::ExactlyOnce;

#[test]
fn puback_leaves_after_the_commit_of_what_a_lasting_session_gets() {
    for online in [true, false] {
        let mut broker = DurableBroker::new(1);
        let mut subscriber = broker.lasting("subscriber");
        broker.subscribe(&mut subscriber, "a/#", QOS1);
        if !online {
            subscriber.peer.reset();
            broker.commit();
        }
        let mut publisher = broker.passing("publisher");
        publisher.publish("a/1", "one", QOS1, 7);
        broker.settle();
        publisher.expect_nothing();
        if online {
            // What is sent to the subscriber does not wait.
            subscriber.expect(&[message("a/1", "one", QOS1, 1)]);
        }
        assert!(broker.cluster.commit());
        broker.settle();
        publisher.expect_ack(AckKind::PubAck, 7);
        if !online {
            let mut subscriber = broker.resumed("subscriber");
            broker.commit();
            subscriber.expect(&[message("a/1", "one", QOS1, 1)]);
        }
    }
}

#[test]
fn a_message_for_passing_sessions_waits_for_nothing() {
    let mut broker = DurableBroker::new(2);
    let lasting = broker.lasting("elsewhere");
    let mut first = broker.passing("first");
    let mut second = broker.passing("the-second-one");
    for client in [&mut first, &mut second] {
        client.subscribe("a", QOS2);
    }
    broker.settle();
    let _ = (first.all(), second.all());
    let mut publisher = broker.passing("publisher");
    publisher.publish("a", "one", QOS1, 1);
    publisher.publish("a", "two", QOS2, 2);
    broker.settle();
    let acks: Vec<_> = publisher.all();
    // Another shard that has lasting sessions is asked; its answer needs no commit.
    assert_eq!(acks.len(), 2, "{acks:?}");
    assert!(first.all().len() == 2 && second.all().len() == 2);
    drop(lasting);
}

#[test]
fn acknowledgements_leave_in_the_order_of_the_publishes() {
    let mut broker = DurableBroker::new(1);
    let mut subscriber = broker.lasting("subscriber");
    broker.subscribe(&mut subscriber, "kept", QOS1);
    let mut publisher = broker.passing("publisher");
    publisher.publish("kept", "1", QOS1, 1);
    publisher.publish("not/kept", "2", QOS1, 2);
    publisher.publish("kept", "3", QOS2, 3);
    publisher.publish("not/kept", "4", QOS1, 4);
    broker.settle();
    publisher.expect_nothing();
    broker.commit();
    let ids: Vec<_> = publisher.all();
    let ids: Vec<_> = ids.iter().map(|seen| format!("{seen:?}")).collect();
    for (id, ack) in ["1", "2", "3", "4"].iter().zip(&ids) {
        assert!(ack.contains(&format!(", {id}, ")), "{ids:?}");
    }
    assert_eq!(ids.len(), 4);
}

#[test]
fn a_lasting_publishers_qos_2_waits_for_its_identifiers() {
    let mut broker = DurableBroker::new(1);
    let mut publisher = broker.lasting("publisher");
    publisher.publish("unread/topic", "one", QOS2, 9);
    broker.settle();
    publisher.expect_nothing();
    broker.commit();
    assert_eq!(publisher.all().len(), 1, "PUBREC");
    publisher.acknowledge(AckKind::PubRel, 9);
    broker.settle();
    publisher.expect_nothing();
    broker.commit();
    publisher.expect_ack(AckKind::PubComp, 9);
}

#[test]
fn a_lasting_subscribers_qos_2_waits_in_both_steps() {
    let mut broker = DurableBroker::new(1);
    let mut subscriber = broker.lasting("subscriber");
    broker.subscribe(&mut subscriber, "a", QOS2);
    let mut publisher = broker.passing("publisher");
    publisher.publish("a", "one", QOS2, 1);
    broker.settle();
    subscriber.expect_nothing();
    publisher.expect_nothing();
    broker.commit();
    publisher.expect_ack(AckKind::PubRec, 1);
    subscriber.expect(&[message("a", "one", QOS2, 1)]);
    subscriber.acknowledge(AckKind::PubRec, 1);
    broker.settle();
    subscriber.expect_nothing();
    broker.commit();
    subscriber.expect_ack(AckKind::PubRel, 1);
    // The end of the exchange forces nothing.
    subscriber.acknowledge(AckKind::PubComp, 1);
    broker.commit();
    subscriber.expect_nothing();
}

#[test]
fn a_message_for_sessions_of_two_shards_waits_for_both_and_is_written_once() {
    let mut broker = DurableBroker::new(2);
    // One of these names belongs to each shard, as the number of open messages shows.
    let names = ["subscriber-a", "subscriber-b", "subscriber-c", "subscriber-d"];
    for name in names {
        let mut subscriber = broker.lasting(name);
        broker.subscribe(&mut subscriber, "a", QOS1);
        subscriber.peer.reset();
    }
    broker.commit();
    let mut publisher = broker.passing("publisher");
    let before = broker.cluster.counter("journal_messages_total");
    publisher.publish("a", "one", QOS1, 3);
    broker.settle();
    publisher.expect_nothing();
    broker.commit();
    publisher.expect_ack(AckKind::PubAck, 3);
    assert_eq!(broker.cluster.counter("journal_messages_total") - before, 1);
    assert_eq!(broker.cluster.counter("journal_open_total"), 1);
    for death in [Death::Killed, Death::PowerCut] {
        broker.restart(death);
        for name in names {
            let mut subscriber = broker.resumed(name);
            broker.commit();
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
        let mut broker = DurableBroker::configured(2, |raw| {
            raw.durability.get_or_insert_default().offline_qos0 = offline_qos0;
        });
        let names = ["subscriber-a", "subscriber-b", "subscriber-c"];
        for name in names {
            let mut subscriber = broker.lasting(name);
            broker.subscribe(&mut subscriber, "a", QOS0);
            subscriber.peer.reset();
        }
        broker.commit();
        let publisher = broker.passing("publisher");
        publisher.publish("a", "one", QOS0, 0);
        broker.commit();
        for round in 0..2 {
            broker.restart(Death::PowerCut);
            for name in names {
                let mut subscriber = broker.resumed(name);
                broker.commit();
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
        let mut broker = DurableBroker::new(1);
        let mut former = broker.lasting("client");
        broker.subscribe(&mut former, "a", QOS1);
        if leaves {
            let session_expiry_s = Some(0);
            let goodbye = Disconnect::new(ReasonCode::SUCCESS);
            former.send(&Packet::Disconnect(Disconnect { session_expiry_s, ..goodbye }));
            broker.settle();
        }
        // Not durable itself, so that nothing of its own has to be written.
        let mut client = broker.visiting("client", !leaves);
        broker.settle();
        client.expect_nothing();
        broker.commit();
        client.expect(&[Seen::Connected { session_present: false }]);
        broker.restart(Death::PowerCut);
        let mut client = broker.visiting("client", false);
        broker.commit();
        client.expect(&[Seen::Connected { session_present: false }]);
    }
}

#[test]
fn the_release_of_a_message_that_cannot_be_read_leaves_with_its_own_commit() {
    let mut broker = DurableBroker::new(1);
    let mut subscriber = broker.lasting("subscriber");
    broker.subscribe(&mut subscriber, "a", QOS2);
    let mut publisher = broker.passing("publisher");
    publisher.publish("a", "one", QOS2, 1);
    broker.commit();
    subscriber.expect(&[message("a", "one", QOS2, 1)]);
    publisher.expect_ack(AckKind::PubRec, 1);
    broker.restart(Death::Killed);
    broker.disk.set_faults(Faults { read_error: 1.0, ..Faults::default() });
    // The exchange is resumed, its message is lost. Nothing else happens: in the past PUBREL, and
    // all that was behind it, waited for a commit that another event asked for.
    let mut subscriber = broker.resumed("subscriber");
    subscriber.expect_ack(AckKind::PubRel, 1);
    assert_eq!(broker.cluster.counter("lost_messages_total"), 1);
    broker.disk.set_faults(Faults::default());
    subscriber.acknowledge(AckKind::PubComp, 1);
    let publisher = broker.passing("publisher");
    publisher.publish("a", "two", QOS2, 1);
    broker.commit();
    subscriber.expect(&[message("a", "two", QOS2, 2)]);
}

#[test]
fn a_client_that_new_rules_shut_out_before_the_commit_is_refused() {
    for stays in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.toml");
        let letting_in =
            |name: &str| format!("[[rules]]\nallow = 'connect'\nclient_ids = '{name}'\n");
        fs::write(&file, letting_in("client")).unwrap();
        let mut broker = DurableBroker::configured(1, |raw| {
            raw.access.rules_file = Some(file.clone());
        });
        let mut client = broker.connecting("client", Version::V5, |_| {});
        broker.settle();
        client.expect_nothing();
        let both = letting_in("client") + &letting_in("other");
        fs::write(&file, if stays { both } else { letting_in("other") }).unwrap();
        assert_eq!(broker.cluster.access().reload(), AccessReloaded::New);
        broker.settle();
        broker.commit();
        assert_eq!(client.all().first(), Some(&answer_if(stays)));
    }
}

/// CONNACK for a client that may, or may not, be there.
fn answer_if(stays: bool) -> Seen {
    match stays {
        true => Seen::Connected { session_present: false },
        false => Seen::Refused(ReasonCode::NOT_AUTHORIZED),
    }
}

#[test]
fn a_user_that_is_gone_before_the_commit_is_refused() {
    for stays in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        let stored = StoredPassword::make(b"secret", Scheme::Sha512).unwrap();
        let ann = set_user("", "ann", &stored);
        fs::write(&file, &ann).unwrap();
        let mut broker = DurableBroker::configured(1, |raw| {
            raw.access.password_file = Some(file.clone());
        });
        let mut client = broker.connecting("client", Version::V5, |connect| {
            connect.username = Some("ann");
            connect.password = Some(b"secret");
        });
        broker.settle();
        client.expect_nothing();
        let bob = set_user(if stays { &ann } else { "" }, "bob", &stored);
        fs::write(&file, bob).unwrap();
        assert_eq!(broker.cluster.access().reload(), AccessReloaded::New);
        broker.settle();
        broker.commit();
        assert_eq!(client.all().first(), Some(&answer_if(stays)));
    }
}
