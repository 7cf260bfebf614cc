//! Retained messages and wills.

use tacho_codec::{AckKind, QoS, Will, WillProperties};

use crate::durable_broker::{Client, Death, DurableBroker, Seen, message};
use crate::groups::name_among;

const QOS1: QoS = QoS::AtLeastOnce;
const QOS2: QoS = QoS::ExactlyOnce;

fn retain(client: &Client, topic: &str, payload: &str, qos: QoS, id: u16) {
    client.publish_with(topic, payload, qos, id, |mut publish| {
        publish.retain = true;
        publish
    });
}

/// What is retained, as a new subscriber sees it.
fn retained(broker: &mut DurableBroker, filter: &str) -> Vec<(String, String)> {
    let mut client = broker.passing("looks");
    client.subscribe(filter, QOS1);
    broker.commit();
    let mut seen: Vec<_> = client
        .all()
        .into_iter()
        .filter_map(|seen| match seen {
            Seen::Message { topic, payload, retain: true, .. } => Some((topic, payload)),
            _ => None,
        })
        .collect();
    seen.sort();
    client.peer.reset();
    broker.commit();
    seen
}

fn pair(topic: &str, payload: &str) -> (String, String) {
    (topic.to_owned(), payload.to_owned())
}

#[test]
fn a_retained_message_is_acknowledged_after_its_commit_and_survives() {
    for shards in [1, 3] {
        let mut broker = DurableBroker::new(shards);
        let mut publisher = broker.passing("publisher");
        for (id, topic) in ["r/1", "r/2", "r/3", "r/4"].into_iter().enumerate() {
            retain(&publisher, topic, "old", QOS1, id as u16 + 1);
        }
        broker.settle();
        publisher.expect_nothing();
        broker.commit();
        assert_eq!(publisher.all().len(), 4);
        retain(&publisher, "r/1", "new", QOS1, 1);
        retain(&publisher, "r/2", "", QOS1, 2);
        // No acknowledgement waits for this one, but it is in the next commit.
        retain(&publisher, "r/5", "not waited for", QoS::AtMostOnce, 0);
        broker.commit();
        assert_eq!(publisher.all().len(), 2);
        let expected = [
            pair("r/1", "new"),
            pair("r/3", "old"),
            pair("r/4", "old"),
            pair("r/5", "not waited for"),
        ];
        for death in [Death::PowerCut, Death::Killed] {
            broker.restart(death);
            assert_eq!(retained(&mut broker, "r/#"), expected, "{shards} shards, {death:?}");
        }
        // What comes after the restart is newer.
        let mut publisher = broker.passing("publisher");
        retain(&publisher, "r/1", "newest", QOS1, 1);
        retain(&publisher, "r/3", "", QOS1, 2);
        broker.commit();
        assert_eq!(publisher.all().len(), 2);
        broker.restart(Death::PowerCut);
        let expected = [pair("r/1", "newest"), pair("r/4", "old"), pair("r/5", "not waited for")];
        assert_eq!(retained(&mut broker, "r/#"), expected);
    }
}

#[test]
fn a_retained_message_that_the_limits_refuse_is_not_there_after_a_restart_either() {
    let mut broker = DurableBroker::configured(2, |raw| raw.limits.retained_count_max = 2);
    let mut publisher = broker.passing("publisher");
    for (id, topic) in ["r/1", "r/2", "r/3"].into_iter().enumerate() {
        retain(&publisher, topic, "x", QOS1, id as u16 + 1);
        broker.commit();
    }
    assert_eq!(publisher.all().len(), 3);
    let before = retained(&mut broker, "r/#");
    assert_eq!(before.len(), 2);
    broker.restart(Death::PowerCut);
    assert_eq!(retained(&mut broker, "r/#"), before);
}

#[test]
fn a_retained_message_expires_while_the_broker_is_off() {
    let mut broker = DurableBroker::new(2);
    let publisher = broker.passing("publisher");
    for (topic, expiry_s, id) in [("r/short", 30, 1), ("r/long", 3_000, 2)] {
        publisher.publish_with(topic, "x", QOS1, id, |mut publish| {
            publish.retain = true;
            publish.properties.message_expiry_s = Some(expiry_s);
            publish
        });
    }
    broker.commit();
    assert_eq!(retained(&mut broker, "r/#").len(), 2);
    // A minute passes on the wall clock.
    broker.restart(Death::Killed);
    assert_eq!(retained(&mut broker, "r/#"), [pair("r/long", "x")]);
    broker.restart(Death::Killed);
    assert_eq!(retained(&mut broker, "r/#"), [pair("r/long", "x")]);
}

#[test]
fn a_retained_message_reaches_a_lasting_subscriber_whatever_becomes_of_it() {
    let mut broker = DurableBroker::new(1);
    let publisher = broker.passing("publisher");
    retain(&publisher, "r", "first", QOS1, 1);
    broker.commit();
    let mut subscriber = broker.lasting("subscriber");
    subscriber.subscribe("r", QOS1);
    broker.commit();
    let seen = subscriber.all();
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Message { retain: true, .. })), "{seen:?}");
    // Not acknowledged; meanwhile another one is retained, and only the session still refers to the
    // first.
    let mut remover = broker.passing("remover");
    retain(&remover, "r", "", QOS1, 1);
    broker.commit();
    remover.expect_ack(AckKind::PubAck, 1);
    broker.restart(Death::PowerCut);
    let mut subscriber = broker.resumed("subscriber");
    broker.commit();
    let seen = subscriber.all();
    assert!(
        matches!(&seen[..], [Seen::Message { payload, dup: true, .. }, ..] if payload == "first"),
        "{seen:?}"
    );
}

/// A message retained before a subscription was delivered from the store, and once more after a
/// crash: its delivery to another subscriber was incomplete, and the record that the subscription
/// was too late for it was lost.
#[test]
fn a_replayed_message_is_not_delivered_again_after_a_crash() {
    let mut broker = DurableBroker::new(3);
    let [publisher, subscriber, other] = [0, 1, 2].map(|shard| name_among(3, shard, "client"));
    let topic = name_among(3, 0, "r/topic");
    let publisher = broker.lasting(&publisher);
    let mut client = broker.lasting(&subscriber);
    let mut served = broker.lasting(&other);
    broker.subscribe(&mut served, &topic, QOS2);
    broker.cluster.loops().stall(2, 1_000_000_000);
    retain(&publisher, &topic, "once", QOS2, 1);
    broker.commit();
    client.subscribe(&topic, QOS2);
    broker.commit();
    let seen = client.all();
    let is_replayed = |seen: &Seen| matches!(seen, Seen::Message { retain: true, .. });
    assert_eq!(seen.iter().filter(|seen| is_replayed(seen)).count(), 1, "{seen:?}");
    broker.restart(Death::Killed);
    let mut client = broker.resumed(&subscriber);
    let mut served = broker.resumed(&other);
    broker.commit();
    let seen = client.all();
    assert!(
        matches!(&seen[..], [Seen::Message { dup: true, retain: true, .. }]),
        "the one that was not acknowledged, and no other: {seen:?}"
    );
    served.expect(&[message(&topic, "once", QOS2, 1)]);
}

#[test]
fn the_will_of_a_client_that_died_with_the_broker_is_published_once() {
    for shards in [1, 2] {
        let mut broker = DurableBroker::new(shards);
        let mut heir = broker.lasting("heir");
        broker.subscribe(&mut heir, "will/#", QOS1);
        heir.peer.reset();
        let properties = WillProperties { delay_s: Some(10), ..WillProperties::default() };
        let will =
            Will { topic: "will/of/it", payload: b"gone", qos: QOS1, retain: false, properties };
        let dies = broker.with_will("dies", will);
        broker.commit();
        broker.restart(Death::PowerCut);
        drop(dies);
        broker.sleep(11);
        broker.commit();
        broker.restart(Death::PowerCut);
        broker.sleep(11);
        broker.commit();
        let mut heir = broker.resumed("heir");
        broker.commit();
        let seen = heir.all();
        assert_eq!(seen.len(), 1, "{shards} shards: {seen:?}");
    }
}
