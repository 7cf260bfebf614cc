//! A full session queue: what was acknowledged is never dropped, unless the policy says so.

use tacho_broker::{Durability, QueuePolicy, RawConfig};
use tacho_codec::{AckKind, QoS, ReasonCode};

use crate::durable_broker::{Client, Death, DurableBroker, Seen, message, named_for};

const QOS1: QoS = QoS::AtLeastOnce;
const REFUSED: ReasonCode = ReasonCode::QUOTA_EXCEEDED;

/// Two shards whose durable sessions may queue `len_max` messages.
fn configure(len_max: u32, policy: QueuePolicy) -> impl FnOnce(&mut RawConfig) {
    move |raw| {
        let session_queue_len_max = len_max;
        raw.durability = Some(Durability { session_queue_len_max, ..Durability::default() });
        raw.limits.persistent_queue_full = policy;
    }
}

/// A broker with a durable session of shard 1 that has subscribed to `t/#` and is away.
fn broker_with_absentee(len_max: u32, policy: QueuePolicy) -> (DurableBroker, String) {
    let mut broker = DurableBroker::configured(2, configure(len_max, policy));
    let name = named_for(1, 2, "away");
    let mut away = broker.lasting(&name);
    broker.subscribe(&mut away, "t/#", QOS1);
    away.peer.reset();
    broker.commit();
    (broker, name)
}

/// Everything that waits for a client, acknowledged as it comes.
fn drain(broker: &mut DurableBroker, client: &mut Client) -> Vec<String> {
    let mut payloads = Vec::new();
    loop {
        broker.commit();
        let all = client.all();
        if all.is_empty() {
            return payloads;
        }
        for seen in all {
            let Seen::Message { payload, id, .. } = seen else { panic!("{seen:?}") };
            client.acknowledge(AckKind::PubAck, id);
            payloads.push(payload);
        }
    }
}

/// Publishes one message and returns the answer.
fn publish(broker: &mut DurableBroker, publisher: &mut Client, payload: &str) -> ReasonCode {
    publisher.publish("t/x", payload, QOS1, 1);
    broker.commit();
    match publisher.next() {
        Seen::Ack(AckKind::PubAck, 1, reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_acknowledged_before_a_full_queue_was_known_arrives_when_the_subscriber_returns() {
    let (mut broker, away) = broker_with_absentee(5, QueuePolicy::Refuse);
    let mut publisher = broker.passing(&named_for(0, 2, "publisher"));
    // All in one read: the other shard learns that its queue is full when it has them all.
    for id in 1..=50 {
        publisher.publish("t/x", &id.to_string(), QOS1, id);
    }
    broker.commit();
    let mut expected = Vec::new();
    for seen in publisher.all() {
        let Seen::Ack(AckKind::PubAck, id, reason) = seen else { panic!("{seen:?}") };
        if !reason.is_error() {
            expected.push(id.to_string());
        }
    }
    assert!(expected.len() > 5, "the limit is soft: {expected:?}");
    assert_eq!(publish(&mut broker, &mut publisher, "no"), REFUSED);
    // Other topics and QoS 0 are not concerned.
    publisher.publish("other", "yes", QOS1, 2);
    publisher.publish("t/x", "lost", QoS::AtMostOnce, 0);
    broker.commit();
    publisher.expect_ack(AckKind::PubAck, 2);
    let counted = |name: &str| broker.cluster.counter(name);
    assert_eq!((counted("sessions_full"), counted("refused_queue_full_total")), (1, 1));
    assert_eq!(counted("dropped_queue_full_total"), 0);
    // It is as full after a restart.
    broker.restart(Death::PowerCut);
    let mut publisher = broker.passing(&named_for(0, 2, "publisher"));
    assert_eq!(publish(&mut broker, &mut publisher, "no"), REFUSED);
    let mut back = broker.resumed(&away);
    assert_eq!(drain(&mut broker, &mut back), expected);
    assert_eq!(broker.cluster.counter("sessions_full"), 0);
    assert_eq!(publish(&mut broker, &mut publisher, "yes"), ReasonCode::SUCCESS);
    assert_eq!(drain(&mut broker, &mut back), ["yes"]);
}

#[test]
fn an_older_publisher_is_held_back_and_goes_on_as_soon_as_another_shard_has_made_room() {
    let (mut broker, away) = broker_with_absentee(4, QueuePolicy::Refuse);
    let mut filler = broker.passing(&named_for(1, 2, "filler"));
    while publish(&mut broker, &mut filler, "filling") == ReasonCode::SUCCESS {}
    let mut held = broker.passing_v3(&named_for(0, 2, "held"));
    held.publish("t/x", "held", QOS1, 7);
    broker.sleep(3);
    broker.commit();
    held.expect_nothing();
    assert_eq!(broker.cluster.held(0).held_publishers, 1);
    // No time passes from here on.
    let mut back = broker.resumed(&away);
    let drained = drain(&mut broker, &mut back);
    assert_eq!(drained.last().map(String::as_str), Some("held"), "{drained:?}");
    held.expect_ack(AckKind::PubAck, 7);
    assert_eq!(broker.cluster.held(0).held_publishers, 0);
    assert_eq!(broker.cluster.counter("dropped_queue_full_total"), 0);
}

#[test]
fn a_full_queue_has_room_again_when_a_subscription_or_the_session_ends() {
    for ends in [false, true] {
        let (mut broker, away) = broker_with_absentee(4, QueuePolicy::Refuse);
        let mut publisher = broker.passing(&named_for(0, 2, "publisher"));
        while publish(&mut broker, &mut publisher, "filling") == ReasonCode::SUCCESS {}
        if ends {
            let _ = broker.visiting(&away, true);
        } else {
            // It does not acknowledge, and wants no more.
            let back = broker.resumed(&away);
            back.unsubscribe("t/#");
        }
        broker.commit();
        assert_eq!(publish(&mut broker, &mut publisher, "yes"), ReasonCode::SUCCESS, "{ends}");
    }
}

#[test]
fn expired_messages_make_room_in_a_full_queue_that_nothing_comes_to() {
    let (mut broker, _) = broker_with_absentee(4, QueuePolicy::Refuse);
    let mut publisher = broker.passing(&named_for(0, 2, "publisher"));
    for id in 1..=4 {
        publisher.publish_with("t/x", "short-lived", QOS1, id, |mut publish| {
            publish.properties.message_expiry_s = Some(10);
            publish
        });
    }
    broker.commit();
    assert_eq!(publisher.all().len(), 4);
    assert_eq!(publish(&mut broker, &mut publisher, "no"), REFUSED);
    for _ in 0..12 {
        broker.sleep(1);
    }
    broker.commit();
    assert_eq!(broker.cluster.counter("dropped_expired_total"), 4);
    assert_eq!(publish(&mut broker, &mut publisher, "yes"), ReasonCode::SUCCESS);
}

#[test]
fn a_full_queue_drops_the_newest_or_the_oldest_or_ends_its_session_as_configured() {
    for (policy, expected) in [
        (QueuePolicy::DropNewest, vec!["1", "2", "3"]),
        (QueuePolicy::DropOldest, vec!["3", "4", "5"]),
        (QueuePolicy::EndSession, vec![]),
    ] {
        let (mut broker, away) = broker_with_absentee(3, policy);
        let mut publisher = broker.passing(&named_for(0, 2, "publisher"));
        for number in 1..=5 {
            let answer = publish(&mut broker, &mut publisher, &number.to_string());
            assert_eq!(answer, ReasonCode::SUCCESS, "{policy}");
        }
        let counted = |name: &str| broker.cluster.counter(name);
        assert_eq!(counted("refused_queue_full_total"), 0);
        if policy == QueuePolicy::EndSession {
            assert_eq!(counted("ended_queue_full_total"), 1);
            assert_eq!(counted("dropped_queue_full_total"), 4, "the fourth, and those before it");
            assert_eq!(counted("sessions"), 1, "that of the publisher");
            broker.restart(Death::PowerCut);
            let _ = broker.lasting(&away);
        } else {
            assert_eq!(counted("dropped_queue_full_total"), 2);
            broker.restart(Death::PowerCut);
            let mut back = broker.resumed(&away);
            assert_eq!(drain(&mut broker, &mut back), expected, "{policy}");
        }
    }
}

#[test]
fn a_connected_client_is_told_that_its_session_ends() {
    let mut broker = DurableBroker::configured(2, |raw| {
        configure(2, QueuePolicy::EndSession)(raw);
        raw.limits.inflight_max = 1;
    });
    let mut slow = broker.lasting(&named_for(1, 2, "slow"));
    broker.subscribe(&mut slow, "t/#", QOS1);
    let mut publisher = broker.passing(&named_for(0, 2, "publisher"));
    for number in 1..=4 {
        publish(&mut broker, &mut publisher, &number.to_string());
    }
    let seen = slow.all();
    assert_eq!(seen[0], message("t/x", "1", QOS1, 1));
    assert!(matches!(&seen[1..], [Seen::Other(text)] if text.contains("Disconnect")), "{seen:?}");
    assert_eq!(broker.cluster.counter("ended_queue_full_total"), 1);
}

#[test]
fn a_shared_subscription_whose_queue_is_full_refuses_as_well() {
    let mut broker = DurableBroker::configured(2, |raw| {
        raw.limits.shared_queue_len_max = 4;
    });
    let name = named_for(1, 2, "worker");
    let mut away = broker.lasting(&name);
    broker.subscribe(&mut away, "$share/g/t/#", QOS1);
    away.peer.reset();
    broker.commit();
    let mut publisher = broker.passing(&named_for(0, 2, "publisher"));
    let mut taken = 0;
    while publish(&mut broker, &mut publisher, &taken.to_string()) == ReasonCode::SUCCESS {
        taken += 1;
    }
    assert!(taken >= 4);
    assert_eq!(broker.cluster.counter("shared_full"), 1);
    assert_eq!(broker.cluster.counter("dropped_shared_queue_full_total"), 0);
    broker.restart(Death::Killed);
    let mut publisher = broker.passing(&named_for(0, 2, "publisher"));
    assert_eq!(publish(&mut broker, &mut publisher, "no"), REFUSED);
    let mut back = broker.resumed(&name);
    let expected: Vec<String> = (0..taken).map(|number| number.to_string()).collect();
    assert_eq!(drain(&mut broker, &mut back), expected);
    assert_eq!(broker.cluster.counter("shared_full"), 0);
    assert_eq!(publish(&mut broker, &mut publisher, "yes"), ReasonCode::SUCCESS);
}

/// The budget of all queues, with its room made by another shard.
#[test]
fn a_publisher_held_back_for_memory_goes_on_as_soon_as_another_shard_has_made_room() {
    let mut broker = DurableBroker::configured(2, |raw| {
        raw.limits.queues_bytes_max = 20_000;
        raw.limits.inflight_max = 1;
    });
    let mut slow = broker.passing(&named_for(1, 2, "slow"));
    slow.subscribe("t/#", QOS1);
    broker.settle();
    assert_eq!(slow.next(), Seen::SubAck);
    let mut filler = broker.passing(&named_for(0, 2, "filler"));
    let payload = "x".repeat(2_000);
    while publish(&mut broker, &mut filler, &payload) == ReasonCode::SUCCESS {}
    let mut held = broker.passing_v3(&named_for(0, 2, "held"));
    held.publish("t/x", "held", QOS1, 7);
    broker.settle();
    held.expect_nothing();
    assert_eq!(broker.cluster.held(0).held_publishers, 1);
    let drained = drain(&mut broker, &mut slow);
    assert_eq!(drained.last().map(String::as_str), Some("held"));
    held.expect_ack(AckKind::PubAck, 7);
}
