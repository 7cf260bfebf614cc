//! Retained messages and wills.

use tacho_codec::{AckKind, QoS, Will, WillProperties};

use crate::groups::name_among;
use crate::station::{Client, Death, Seen, Station, message};

const QOS1: QoS = QoS::AtLeastOnce;
const QOS2: QoS = QoS::ExactlyOnce;

fn retain(client: &Client, topic: &str, payload: &str, qos: QoS, id: u16) {
    client.publish_with(topic, payload, qos, id, |mut publish| {
        publish.retain = true;
        publish
    });
}

/// What is retained, as a new subscriber sees it.
fn retained(station: &mut Station, filter: &str) -> Vec<(String, String)> {
    let mut client = station.passing("looks");
    client.subscribe(filter, QOS1);
    station.commit();
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
    station.commit();
    seen
}

fn pair(topic: &str, payload: &str) -> (String, String) {
    (topic.to_owned(), payload.to_owned())
}

#[test]
fn a_retained_message_is_acknowledged_after_its_commit_and_survives() {
    for shards in [1, 3] {
        let mut station = Station::new(shards);
        let mut publisher = station.passing("publisher");
        for (id, topic) in ["r/1", "r/2", "r/3", "r/4"].into_iter().enumerate() {
            retain(&publisher, topic, "old", QOS1, id as u16 + 1);
        }
        station.settle();
        publisher.expect_nothing();
        station.commit();
        assert_eq!(publisher.all().len(), 4);
        retain(&publisher, "r/1", "new", QOS1, 1);
        retain(&publisher, "r/2", "", QOS1, 2);
        // No acknowledgement waits for this one, but it is in the next commit.
        retain(&publisher, "r/5", "not waited for", QoS::AtMostOnce, 0);
        station.commit();
        assert_eq!(publisher.all().len(), 2);
        let expected = [
            pair("r/1", "new"),
            pair("r/3", "old"),
            pair("r/4", "old"),
            pair("r/5", "not waited for"),
        ];
        for death in [Death::PowerCut, Death::Killed] {
            station.restart(death);
            assert_eq!(retained(&mut station, "r/#"), expected, "{shards} shards, {death:?}");
        }
        // What comes after the restart is newer.
        let mut publisher = station.passing("publisher");
        retain(&publisher, "r/1", "newest", QOS1, 1);
        retain(&publisher, "r/3", "", QOS1, 2);
        station.commit();
        assert_eq!(publisher.all().len(), 2);
        station.restart(Death::PowerCut);
        let expected = [pair("r/1", "newest"), pair("r/4", "old"), pair("r/5", "not waited for")];
        assert_eq!(retained(&mut station, "r/#"), expected);
    }
}

#[test]
fn a_retained_message_that_the_limits_refuse_is_not_there_after_a_restart_either() {
    let mut station = Station::configured(2, |raw| raw.limits.retained_count_max = 2);
    let mut publisher = station.passing("publisher");
    for (id, topic) in ["r/1", "r/2", "r/3"].into_iter().enumerate() {
        retain(&publisher, topic, "x", QOS1, id as u16 + 1);
        station.commit();
    }
    assert_eq!(publisher.all().len(), 3);
    let before = retained(&mut station, "r/#");
    assert_eq!(before.len(), 2);
    station.restart(Death::PowerCut);
    assert_eq!(retained(&mut station, "r/#"), before);
}

#[test]
fn a_retained_message_expires_while_the_broker_is_off() {
    let mut station = Station::new(2);
    let publisher = station.passing("publisher");
    for (topic, expiry_s, id) in [("r/short", 30, 1), ("r/long", 3_000, 2)] {
        publisher.publish_with(topic, "x", QOS1, id, |mut publish| {
            publish.retain = true;
            publish.properties.message_expiry_s = Some(expiry_s);
            publish
        });
    }
    station.commit();
    assert_eq!(retained(&mut station, "r/#").len(), 2);
    // A minute passes on the wall clock.
    station.restart(Death::Killed);
    assert_eq!(retained(&mut station, "r/#"), [pair("r/long", "x")]);
    station.restart(Death::Killed);
    assert_eq!(retained(&mut station, "r/#"), [pair("r/long", "x")]);
}

#[test]
fn a_retained_message_reaches_a_lasting_subscriber_whatever_becomes_of_it() {
    let mut station = Station::new(1);
    let publisher = station.passing("publisher");
    retain(&publisher, "r", "first", QOS1, 1);
    station.commit();
    let mut subscriber = station.lasting("subscriber");
    subscriber.subscribe("r", QOS1);
    station.commit();
    let seen = subscriber.all();
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Message { retain: true, .. })), "{seen:?}");
    // Not acknowledged; meanwhile another one is retained, and only the session still refers to the
    // first.
    let mut remover = station.passing("remover");
    retain(&remover, "r", "", QOS1, 1);
    station.commit();
    remover.expect_ack(AckKind::PubAck, 1);
    station.restart(Death::PowerCut);
    let mut subscriber = station.resumed("subscriber");
    station.commit();
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
fn what_a_replay_brought_does_not_come_again_when_the_broker_dies_in_between() {
    let mut station = Station::new(3);
    let [publisher, subscriber, other] = [0, 1, 2].map(|shard| name_among(3, shard, "client"));
    let topic = name_among(3, 0, "r/topic");
    let publisher = station.lasting(&publisher);
    let mut client = station.lasting(&subscriber);
    let mut served = station.lasting(&other);
    station.subscribe(&mut served, &topic, QOS2);
    station.cluster.loops().stall(2, 1_000_000_000);
    retain(&publisher, &topic, "once", QOS2, 1);
    station.commit();
    client.subscribe(&topic, QOS2);
    station.commit();
    let seen = client.all();
    let is_replayed = |seen: &Seen| matches!(seen, Seen::Message { retain: true, .. });
    assert_eq!(seen.iter().filter(|seen| is_replayed(seen)).count(), 1, "{seen:?}");
    station.restart(Death::Killed);
    let mut client = station.resumed(&subscriber);
    let mut served = station.resumed(&other);
    station.commit();
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
        let mut station = Station::new(shards);
        let mut heir = station.lasting("heir");
        station.subscribe(&mut heir, "will/#", QOS1);
        heir.peer.reset();
        let properties = WillProperties { delay_s: Some(10), ..WillProperties::default() };
        let will =
            Will { topic: "will/of/it", payload: b"gone", qos: QOS1, retain: false, properties };
        let dies = station.with_will("dies", will);
        station.commit();
        station.restart(Death::PowerCut);
        drop(dies);
        station.sleep(11);
        station.commit();
        station.restart(Death::PowerCut);
        station.sleep(11);
        station.commit();
        let mut heir = station.resumed("heir");
        station.commit();
        let seen = heir.all();
        assert_eq!(seen.len(), 1, "{shards} shards: {seen:?}");
    }
}
