//! The broker dies while a message is on its way to sessions and to shared subscriptions: each of
//! these gets it once, whichever of them had it.

use tacho_broker::SharedStrategy;
use tacho_codec::{AckKind, QoS};

use crate::groups::{name_on, payloads};
use crate::station::{Client, Death, Seen, Station};

const QOS2: QoS = QoS::ExactlyOnce;
const TOPIC: &str = "jobs/x";
const FILTER: &str = "$share/group/jobs/#";

/// One shard works and commits, the other one stands still.
fn only(station: &mut Station, shard: usize) {
    for _ in 0..20 {
        station.cluster.loops().turn(shard);
        station.cluster.commit();
    }
}

/// A session with these subscriptions whose client is not there.
fn absent(station: &mut Station, name: &str, filters: &[&str], qos: QoS) {
    let mut client = station.lasting(name);
    for filter in filters {
        station.subscribe(&mut client, filter, qos);
    }
    client.peer.reset();
    station.commit();
}

/// Takes what comes for as long as something does, and answers it.
fn take_all(station: &mut Station, clients: &mut [&mut Client]) -> Vec<Vec<String>> {
    let mut got = vec![Vec::new(); clients.len()];
    for _ in 0..8 {
        station.commit();
        for (client, got) in clients.iter_mut().zip(&mut got) {
            let seen = client.all();
            got.extend(payloads(&seen));
            seen.iter().for_each(|seen| answer(client, seen));
        }
    }
    got
}

fn answer(client: &Client, seen: &Seen) {
    match seen {
        Seen::Message { qos: QOS2, id, .. } => client.acknowledge(AckKind::PubRec, *id),
        Seen::Ack(AckKind::PubRel, id, _) => client.acknowledge(AckKind::PubComp, *id),
        _ => {}
    }
}

/// A member has a subscription of its own to the topic: what it got through that is no part of the
/// group's.
#[test]
fn what_a_member_got_by_a_subscription_of_its_own_the_group_has_not_had() {
    for death in [Death::Killed, Death::PowerCut] {
        let mut station = Station::new(2);
        let both = name_on(0, "both");
        absent(&mut station, &both, &["jobs/x", FILTER], QOS2);
        let other = name_on(1, "other");
        let mut connected = station.lasting(&other);
        station.subscribe(&mut connected, FILTER, QOS2);
        let publisher_name = name_on(0, "publisher");
        let mut publisher = station.lasting(&publisher_name);
        publisher.publish(TOPIC, "1", QOS2, 1);
        // The connected member's shard has not looked when all is over.
        only(&mut station, 0);
        publisher.expect_nothing();
        connected.expect_nothing();
        station.restart(death);
        let mut publisher = station.resumed(&publisher_name);
        publisher.publish_with(TOPIC, "1", QOS2, 1, |mut publish| {
            publish.dup = true;
            publish
        });
        let (mut both, mut other) = (station.resumed(&both), station.resumed(&other));
        let got = take_all(&mut station, &mut [&mut both, &mut other]);
        publisher.expect_ack(AckKind::PubRec, 1);
        assert_eq!(got.concat(), ["1", "1"], "{death:?}: one for the session, one for the group");
    }
}

/// The member that had the message is through with it and is none any more, and the publisher's
/// shard has not heard that all have it.
#[test]
fn what_a_member_had_that_has_left_no_other_member_gets() {
    for death in [Death::Killed, Death::PowerCut] {
        let mut station = Station::new(2);
        let absent_one = name_on(1, "absent");
        absent(&mut station, &absent_one, &[FILTER], QOS2);
        let mut member = station.lasting(&name_on(1, "member"));
        station.subscribe(&mut member, FILTER, QOS2);
        let mut publisher = station.lasting(&name_on(0, "publisher"));
        publisher.publish(TOPIC, "1", QOS2, 1);
        for _ in 0..20 {
            station.cluster.loops().turn(0);
        }
        let mut got = Vec::new();
        for _ in 0..5 {
            only(&mut station, 1);
            let seen = member.all();
            got.extend(payloads(&seen));
            seen.iter().for_each(|seen| answer(&member, seen));
        }
        assert_eq!(got, ["1"]);
        member.unsubscribe(FILTER);
        only(&mut station, 1);
        publisher.expect_nothing();
        station.restart(death);
        let mut absent_one = station.resumed(&absent_one);
        let got = take_all(&mut station, &mut [&mut absent_one]);
        assert_eq!(got.concat(), [] as [&str; 0], "{death:?}");
    }
}

/// A message that a member left waits for another one, which gets it and is through with it while
/// the publisher's shard still waits to hear of others.
#[test]
fn what_changed_hands_on_its_way_comes_once() {
    for death in [Death::Killed, Death::PowerCut] {
        let mut station = Station::configured(2, |raw| {
            raw.limits.inflight_max = 1;
            raw.shared_subscription_strategy = Some(SharedStrategy::Sticky);
        });
        let mut first = station.lasting(&name_on(1, "first"));
        station.subscribe(&mut first, FILTER, QOS2);
        let mut publisher = station.lasting(&name_on(0, "publisher"));
        // It fills the window of the first member, so that the next one waits in its session.
        publisher.publish(TOPIC, "1", QOS2, 1);
        station.commit();
        assert_eq!(payloads(&first.all()), ["1"]);
        let _ = publisher.all();
        publisher.publish(TOPIC, "2", QOS2, 2);
        for _ in 0..20 {
            station.cluster.loops().turn(0);
        }
        only(&mut station, 1);
        let mut second = station.joining(&name_on(1, "second"), FILTER, QOS2);
        only(&mut station, 1);
        first.peer.reset();
        let mut got = Vec::new();
        for _ in 0..6 {
            only(&mut station, 1);
            let seen = second.all();
            got.extend(payloads(&seen));
            seen.iter().for_each(|seen| answer(&second, seen));
        }
        assert_eq!(got, ["2"]);
        publisher.expect_nothing();
        station.restart(death);
        let (first, second) = (name_on(1, "first"), name_on(1, "second"));
        let (mut first, mut second) = (station.resumed(&first), station.resumed(&second));
        let got = take_all(&mut station, &mut [&mut first, &mut second]);
        assert_eq!(got, [vec!["1"], vec![]], "{death:?}");
    }
}
