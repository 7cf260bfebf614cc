//! Durable sessions with many subscriptions that end, which are removed a few per turn.

use tacho_codec::{AckKind, QoS};

use crate::durable_broker::{Death, DurableBroker, Seen};
use crate::groups::payloads;

const QOS1: QoS = QoS::AtLeastOnce;

fn slowly(shards: usize) -> DurableBroker {
    DurableBroker::configured(shards, |raw| raw.limits.subscription_removals_per_turn_max = 1)
}

/// A session with subscriptions that ends with its connection, and does so now.
fn end_one(broker: &mut DurableBroker, filters: &[String]) {
    let mut client = broker.lasting("leaver");
    for filter in filters {
        broker.subscribe(&mut client, filter, QOS1);
    }
    client.peer.reset();
    broker.commit();
    let visitor = broker.visiting("leaver", false);
    broker.commit();
    visitor.peer.reset();
    (0..3).for_each(|_| broker.cluster.loops().turn(0));
    assert!(broker.cluster.held(0).ended_subscriptions > 10, "most are not removed yet");
}

fn filters() -> Vec<String> {
    let shared = (0..10).map(|number| format!("$share/g/jobs/{number}"));
    (0..20).map(|number| format!("t/{number}/+")).chain(shared).collect()
}

#[test]
fn the_end_of_a_session_is_journaled_before_its_subscriptions_are_removed() {
    for death in [Death::Killed, Death::PowerCut] {
        let mut broker = slowly(1);
        end_one(&mut broker, &filters());
        while broker.cluster.commit() {}
        assert!(broker.cluster.held(0).ended_subscriptions > 10);
        broker.restart(death);
        let held = broker.cluster.held(0);
        assert_eq!((held.sessions, held.subscriptions, held.groups), (0, 0, 0));
        let mut client = broker.visiting("leaver", false);
        broker.commit();
        client.expect(&[Seen::Connected { session_present: false }]);
    }
}

#[test]
fn a_group_that_is_joined_while_it_is_cleared_keeps_its_messages() {
    let mut broker = slowly(1);
    end_one(&mut broker, &filters());
    let mut member = broker.connecting("member", tacho_codec::Version::V5, |connect| {
        connect.clean_start = true;
    });
    (0..2).for_each(|_| broker.cluster.loops().turn(0));
    member.subscribe("$share/g/jobs/9", QOS1);
    member.subscribe("$share/g/jobs/0", QOS1);
    (0..2).for_each(|_| broker.cluster.loops().turn(0));
    assert!(broker.cluster.held(0).ended_subscriptions > 5, "they are being cleared");
    broker.commit();
    assert_eq!(broker.cluster.held(0).ended_subscriptions, 0);
    assert_eq!((broker.cluster.held(0).groups, member.all().len()), (2, 3));
    member.peer.reset();
    broker.commit();
    let mut publisher = broker.passing("publisher");
    for id in 1..=4 {
        publisher.publish(["jobs/9", "jobs/0"][usize::from(id % 2)], &id.to_string(), QOS1, id);
    }
    broker.commit();
    assert_eq!(publisher.all().len(), 4);
    broker.restart(Death::PowerCut);
    let mut member = broker.resumed("member");
    broker.commit();
    let mut got = payloads(&member.all());
    got.sort();
    assert_eq!(got, ["1", "2", "3", "4"]);
    for id in 1..=4 {
        member.acknowledge(AckKind::PubAck, id);
    }
    broker.commit();
    broker.restart(Death::PowerCut);
    let mut member = broker.resumed("member");
    broker.commit();
    member.expect_nothing();
}
