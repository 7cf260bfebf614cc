//! The broker dies while a message is on its way to sessions and to shared subscriptions: each of
//! these gets it once, whichever of them had it.

use tacho_broker::SharedStrategy;
use tacho_codec::{AckKind, QoS};

use crate::durable_broker::{Client, Death, DurableBroker, Seen};
use crate::groups::{name_on, payloads};

const QOS2: QoS = QoS::ExactlyOnce;
const TOPIC: &str = "jobs/x";
const FILTER: &str = "$share/group/jobs/#";

/// One shard works and commits, the other one stands still.
fn only(broker: &mut DurableBroker, shard: usize) {
    for _ in 0..20 {
        broker.cluster.loops().turn(shard);
        broker.cluster.commit();
    }
}

/// A session with these subscriptions whose client is not there.
fn absent(broker: &mut DurableBroker, name: &str, filters: &[&str], qos: QoS) {
    let mut client = broker.lasting(name);
    for filter in filters {
        broker.subscribe(&mut client, filter, qos);
    }
    client.peer.reset();
    broker.commit();
}

/// Takes what comes for as long as something does, and answers it.
fn take_all(broker: &mut DurableBroker, clients: &mut [&mut Client]) -> Vec<Vec<String>> {
    let mut got = vec![Vec::new(); clients.len()];
    for _ in 0..8 {
        broker.commit();
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
fn a_delivery_by_a_members_own_subscription_does_not_count_for_the_group() {
    for death in [Death::Killed, Death::PowerCut] {
        let mut broker = DurableBroker::new(2);
        let both = name_on(0, "both");
        absent(&mut broker, &both, &["jobs/x", FILTER], QOS2);
        let other = name_on(1, "other");
        let mut connected = broker.lasting(&other);
        broker.subscribe(&mut connected, FILTER, QOS2);
        let publisher_name = name_on(0, "publisher");
        let mut publisher = broker.lasting(&publisher_name);
        publisher.publish(TOPIC, "1", QOS2, 1);
        // The connected member's shard has not looked when all is over.
        only(&mut broker, 0);
        publisher.expect_nothing();
        connected.expect_nothing();
        broker.restart(death);
        let mut publisher = broker.resumed(&publisher_name);
        publisher.publish_with(TOPIC, "1", QOS2, 1, |mut publish| {
            publish.dup = true;
            publish
        });
        let (mut both, mut other) = (broker.resumed(&both), broker.resumed(&other));
        let got = take_all(&mut broker, &mut [&mut both, &mut other]);
        publisher.expect_ack(AckKind::PubRec, 1);
        assert_eq!(got.concat(), ["1", "1"], "{death:?}: one for the session, one for the group");
    }
}

/// The member that had the message is through with it and is none any more, and the publisher's
/// shard has not heard that all have it.
#[test]
fn a_message_done_by_a_former_member_goes_to_no_other_member() {
    for death in [Death::Killed, Death::PowerCut] {
        let mut broker = DurableBroker::new(2);
        let absent_one = name_on(1, "absent");
        absent(&mut broker, &absent_one, &[FILTER], QOS2);
        let mut member = broker.lasting(&name_on(1, "member"));
        broker.subscribe(&mut member, FILTER, QOS2);
        let mut publisher = broker.lasting(&name_on(0, "publisher"));
        publisher.publish(TOPIC, "1", QOS2, 1);
        for _ in 0..20 {
            broker.cluster.loops().turn(0);
        }
        let mut got = Vec::new();
        for _ in 0..5 {
            only(&mut broker, 1);
            let seen = member.all();
            got.extend(payloads(&seen));
            seen.iter().for_each(|seen| answer(&member, seen));
        }
        assert_eq!(got, ["1"]);
        member.unsubscribe(FILTER);
        only(&mut broker, 1);
        publisher.expect_nothing();
        broker.restart(death);
        let mut absent_one = broker.resumed(&absent_one);
        let got = take_all(&mut broker, &mut [&mut absent_one]);
        assert_eq!(got.concat(), [] as [&str; 0], "{death:?}");
    }
}

/// A message that a member left waits for another one, which gets it and is through with it while
/// the publisher's shard still waits to hear of others.
#[test]
fn a_message_that_changed_members_in_distribution_arrives_once() {
    for death in [Death::Killed, Death::PowerCut] {
        let mut broker = DurableBroker::configured(2, |raw| {
            raw.limits.inflight_max = 1;
            raw.shared_subscription_strategy = Some(SharedStrategy::Sticky);
        });
        let mut first = broker.lasting(&name_on(1, "first"));
        broker.subscribe(&mut first, FILTER, QOS2);
        let mut publisher = broker.lasting(&name_on(0, "publisher"));
        // It fills the window of the first member, so that the next one waits in its session.
        publisher.publish(TOPIC, "1", QOS2, 1);
        broker.commit();
        assert_eq!(payloads(&first.all()), ["1"]);
        let _ = publisher.all();
        publisher.publish(TOPIC, "2", QOS2, 2);
        for _ in 0..20 {
            broker.cluster.loops().turn(0);
        }
        only(&mut broker, 1);
        let mut second = broker.joining(&name_on(1, "second"), FILTER, QOS2);
        only(&mut broker, 1);
        first.peer.reset();
        let mut got = Vec::new();
        for _ in 0..6 {
            only(&mut broker, 1);
            let seen = second.all();
            got.extend(payloads(&seen));
            seen.iter().for_each(|seen| answer(&second, seen));
        }
        assert_eq!(got, ["2"]);
        publisher.expect_nothing();
        broker.restart(death);
        let (first, second) = (name_on(1, "first"), name_on(1, "second"));
        let (mut first, mut second) = (broker.resumed(&first), broker.resumed(&second));
        let got = take_all(&mut broker, &mut [&mut first, &mut second]);
        assert_eq!(got, [vec!["1"], vec![]], "{death:?}");
    }
}
