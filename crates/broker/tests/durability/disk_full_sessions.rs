//! A full disk, and the clients of durable sessions: who is there is served, what would have to be
//! kept is refused at once.

use tacho_codec::{AckKind, QoS, ReasonCode, Version, Will, WillProperties};
use tacho_journal::sim::Faults;
use tacho_net::sim::Faults as LoopFaults;

use crate::durable_broker::{Death, DurableBroker, Seen, message};

const QOS0: QoS = QoS::AtMostOnce;
const QOS1: QoS = QoS::AtLeastOnce;
const CONNECTED: Seen = Seen::Connected { session_present: true };
const REFUSED: Seen = Seen::Refused(ReasonCode::QUOTA_EXCEEDED);

#[test]
fn a_session_is_resumed_and_drained_while_the_disk_is_full() {
    let mut broker = DurableBroker::new(1);
    let mut away = broker.lasting("subscriber");
    broker.subscribe(&mut away, "kept", QOS1);
    away.peer.reset();
    broker.commit();
    let mut publisher = broker.passing("publisher");
    for (id, payload) in [(1, "one"), (2, "two"), (3, "three")] {
        publisher.publish("kept", payload, QOS1, id);
        broker.commit();
        publisher.expect_ack(AckKind::PubAck, id);
    }
    broker.fill();
    let mut subscriber = broker.resuming("subscriber");
    broker.settle();
    let [one, two, three] = [("one", 1), ("two", 2), ("three", 3)]
        .map(|(payload, id)| message("kept", payload, QOS1, id));
    subscriber.expect(&[CONNECTED, one, two, three]);
    for id in 1..=2 {
        subscriber.acknowledge(AckKind::PubAck, id);
    }
    broker.settle();
    // In another version and in the place of the connection that is there, too.
    let mut next = broker.connecting("subscriber", Version::V311, |_| {});
    broker.settle();
    let seen = next.all();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen[0], CONNECTED);
    assert!(matches!(&seen[1], Seen::Message { payload, dup: true, .. } if payload == "three"));
    next.acknowledge(AckKind::PubAck, 3);
    broker.settle();
    assert_eq!(broker.cluster.counter("journal_refused_connects_total"), 0);
    // What was put off is written down.
    broker.make_space();
    broker.restart(Death::PowerCut);
    let mut again = broker.resumed("subscriber");
    broker.commit();
    again.expect_nothing();
}

#[test]
fn a_broker_that_dies_with_its_disk_full_has_what_it_had_before() {
    let mut broker = DurableBroker::new(1);
    let mut away = broker.lasting("subscriber");
    broker.subscribe(&mut away, "kept", QOS1);
    away.peer.reset();
    let publisher = broker.passing("publisher");
    publisher.publish("kept", "one", QOS1, 1);
    broker.commit();
    broker.fill();
    let mut subscriber = broker.resuming("subscriber");
    broker.settle();
    subscriber.expect(&[CONNECTED, message("kept", "one", QOS1, 1)]);
    broker.restart(Death::PowerCut);
    let mut again = broker.resumed("subscriber");
    broker.commit();
    let seen = again.all();
    assert!(
        matches!(&seen[..], [Seen::Message { payload, .. }] if payload == "one"),
        "it was never acknowledged: {seen:?}"
    );
}

#[test]
fn a_session_that_would_be_made_or_begin_anew_is_refused_while_the_disk_is_full() {
    let mut broker = DurableBroker::new(1);
    let mut there = broker.lasting("there");
    broker.subscribe(&mut there, "kept", QOS1);
    let minute = |connect: &mut tacho_codec::Connect<'static>| {
        connect.properties.session_expiry_s = Some(60);
    };
    let mut short = broker.connecting("short", Version::V5, minute);
    broker.commit();
    short.expect(&[Seen::Connected { session_present: false }]);
    short.peer.reset();
    broker.fill();
    let mut new = broker.connecting("new", Version::V5, |_| {});
    let mut new_v3 = broker.connecting("new-v3", Version::V311, |_| {});
    let mut anew = broker.connecting("there", Version::V5, |connect| connect.clean_start = true);
    let mut ending = broker.visiting("there", true);
    let mut longer = broker.connecting("short", Version::V5, |_| {});
    broker.settle();
    new.expect(&[REFUSED]);
    new_v3.expect(&[Seen::Refused(ReasonCode::SERVER_UNAVAILABLE)]);
    anew.expect(&[REFUSED]);
    ending.expect(&[REFUSED]);
    longer.expect(&[REFUSED]);
    assert_eq!(broker.cluster.counter("journal_refused_connects_total"), 5);
    // Refused clients changed no state, and sessions without durability are created.
    let mut as_before = broker.connecting("short", Version::V5, minute);
    let passing = broker.passing("passing");
    passing.publish("kept", "for all", QOS0, 0);
    broker.settle();
    as_before.expect(&[CONNECTED]);
    there.expect(&[message("kept", "for all", QOS0, 0)]);
    broker.make_space();
    let mut new = broker.connecting("new", Version::V5, |_| {});
    broker.commit();
    new.expect(&[Seen::Connected { session_present: false }]);
}

#[test]
fn a_subscription_that_would_be_kept_is_refused_while_the_disk_is_full() {
    let mut broker = DurableBroker::new(1);
    let mut there = broker.lasting("there");
    broker.subscribe(&mut there, "kept", QOS1);
    let mut old = broker.connecting("old", Version::V311, |_| {});
    broker.commit();
    old.expect(&[Seen::Connected { session_present: false }]);
    broker.fill();
    there.subscribe("more", QOS1);
    old.subscribe("more", QOS1);
    broker.settle();
    there.expect(&[Seen::NotSubscribed(vec![ReasonCode::QUOTA_EXCEEDED])]);
    old.expect(&[Seen::NotSubscribed(vec![ReasonCode::UNSPECIFIED_ERROR])]);
    assert_eq!(broker.cluster.counter("journal_refused_subscriptions_total"), 2);
    let mut passing = broker.passing("passing");
    passing.subscribe("more", QOS0);
    broker.settle();
    passing.expect(&[Seen::SubAck]);
    for topic in ["more", "kept"] {
        passing.publish(topic, "all", QOS0, 0);
    }
    broker.settle();
    passing.expect(&[message("more", "all", QOS0, 0)]);
    there.expect(&[message("kept", "all", QOS0, 0)]);
    old.expect_nothing();
    // It ends at once and is confirmed once it is committed; refusals do not wait behind it.
    there.unsubscribe("kept");
    passing.publish("kept", "gone", QOS0, 0);
    there.subscribe("more", QOS1);
    broker.settle();
    there.expect(&[Seen::NotSubscribed(vec![ReasonCode::QUOTA_EXCEEDED])]);
    broker.make_space();
    assert!(matches!(there.next(), Seen::Other(text) if text.starts_with("UnsubAck")));
    broker.subscribe(&mut old, "more", QOS1);
    broker.restart(Death::PowerCut);
    let publisher = broker.passing("publisher");
    publisher.publish("kept", "gone", QOS1, 1);
    publisher.publish("more", "there", QOS1, 2);
    let mut there = broker.resumed("there");
    let mut old = broker.connecting("old", Version::V311, |_| {});
    broker.commit();
    there.expect_nothing();
    old.expect(&[CONNECTED, message("more", "there", QOS1, 1)]);
}

#[test]
fn records_of_resumed_sessions_are_bounded_and_written_once_there_is_space() {
    const WILL_BYTES: usize = 50_000;
    let payload: &[u8] = Box::leak(vec![b'x'; WILL_BYTES].into_boxed_slice());
    let properties = WillProperties { delay_s: Some(5), ..WillProperties::default() };
    let will = Will { topic: "will", payload, qos: QOS1, retain: false, properties };
    let mut broker = DurableBroker::new(1);
    let mut heir = broker.lasting("heir");
    broker.subscribe(&mut heir, "will", QOS1);
    heir.peer.reset();
    drop(broker.lasting("there"));
    broker.commit();
    broker.fill();
    let mut resumed = 0;
    let last = loop {
        let will = Some(will);
        let mut there = broker.connecting("there", Version::V5, |connect| connect.will = will);
        broker.settle();
        match &there.all()[..] {
            [CONNECTED] => resumed += 1,
            [seen] if *seen == REFUSED => break resumed,
            other => panic!("{other:?}"),
        }
        assert!(resumed < 1_000, "everything is taken");
    };
    assert!(last > 10 && last < 200, "{last} wills of {WILL_BYTES} bytes");
    broker.make_space();
    broker.restart(Death::PowerCut);
    broker.sleep(6);
    broker.commit();
    let mut heir = broker.resumed("heir");
    broker.commit();
    let seen = heir.all();
    assert!(matches!(&seen[..], [Seen::Message { topic, .. }] if topic == "will"), "{seen:?}");
}

/// Its CONNECT has a bit that the specification does not know, and could not be read again: the
/// connection was closed without a word.
#[test]
fn a_bridge_that_waited_for_a_commit_when_the_disk_began_to_fail_is_told_too() {
    let mut broker = DurableBroker::new(1);
    broker.disk.set_faults(Faults { write_error: 1.0, ..Faults::default() });
    let mut bridge = broker.bridging("bridge");
    broker.settle();
    assert!(!broker.cluster.commit());
    broker.settle();
    bridge.expect_nothing();
    for _ in 0..5 {
        broker.sleep(1);
    }
    bridge.expect(&[Seen::Refused(ReasonCode::SERVER_UNAVAILABLE)]);
    assert_eq!(broker.cluster.counter("journal_refused_connects_total"), 1);
}

/// What was on its way to the journal when the disk began to fail waited for as long as it failed.
#[test]
fn clients_waiting_for_a_failing_commit_are_answered_within_seconds() {
    let mut broker = DurableBroker::new(1);
    let mut there = broker.lasting("there");
    broker.subscribe(&mut there, "kept", QOS1);
    let mut leaver = broker.lasting("leaver");
    broker.subscribe(&mut leaver, "kept", QOS1);
    drop(broker.lasting("away"));
    let [mut old, mut old_leaver] = ["old", "old-leaver"].map(|name| {
        let mut client = broker.connecting(name, Version::V311, |_| {});
        broker.commit();
        client.expect(&[Seen::Connected { session_present: false }]);
        broker.subscribe(&mut client, "old", QOS1);
        client
    });
    broker.disk.set_faults(Faults { write_error: 1.0, ..Faults::default() });
    there.subscribe("more", QOS1);
    there.subscribe("kept", QOS0);
    old.subscribe("more", QOS1);
    leaver.unsubscribe("kept");
    leaver.unsubscribe("never there");
    old_leaver.unsubscribe("old");
    let mut new = broker.connecting("new", Version::V5, |_| {});
    let mut away = broker.connecting("away", Version::V311, |_| {});
    broker.settle();
    assert!(!broker.cluster.commit());
    assert_ne!(broker.cluster.journal().unwrap().condition(), tacho_journal::Condition::Fine);
    broker.settle();
    for client in [&mut there, &mut old, &mut leaver, &mut old_leaver, &mut new, &mut away] {
        client.expect_nothing();
    }
    for _ in 0..5 {
        broker.sleep(1);
    }
    let refused = || Seen::NotSubscribed(vec![ReasonCode::QUOTA_EXCEEDED]);
    there.expect(&[refused(), refused()]);
    old.expect(&[Seen::NotSubscribed(vec![ReasonCode::UNSPECIFIED_ERROR])]);
    let said = leaver.all();
    let is_unconfirmed = |seen: &Seen, code: ReasonCode| {
        let code = format!("{code:?}");
        matches!(seen, Seen::Other(text) if text.starts_with("UnsubAck") && text.contains(&code))
    };
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(is_unconfirmed(&said[0], ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR), "{said:?}");
    assert!(is_unconfirmed(&said[1], ReasonCode::NO_SUBSCRIPTION_EXISTED), "{said:?}");
    old_leaver.expect_nothing();
    assert!(old_leaver.peer.is_over(), "3.x has no word for it");
    new.expect(&[REFUSED]);
    away.expect(&[Seen::Refused(ReasonCode::SERVER_UNAVAILABLE)]);
    for (counter, count) in [
        ("journal_refused_subscriptions_total", 3),
        ("journal_unconfirmed_unsubscribes_total", 2),
        ("journal_refused_connects_total", 2),
    ] {
        assert_eq!(broker.cluster.counter(counter), count, "{counter}");
    }
    // All of it is as they were told, now and once it could be written.
    let passing = broker.passing("passing");
    for topic in ["more", "kept"] {
        passing.publish(topic, "now", QOS0, 0);
    }
    broker.settle();
    there.expect(&[message("kept", "now", QOS0, 0)]);
    old.expect_nothing();
    leaver.expect_nothing();
    broker.disk.set_faults(Faults::default());
    broker.make_space();
    broker.restart(Death::PowerCut);
    let publisher = broker.passing("publisher");
    for (id, topic) in [(1, "more"), (2, "kept"), (3, "old")] {
        publisher.publish(topic, "later", QOS1, id);
    }
    let mut there = broker.resumed("there");
    let mut leaver = broker.resumed("leaver");
    let mut old = broker.connecting("old", Version::V311, |_| {});
    let mut away = broker.connecting("away", Version::V5, |_| {});
    let mut new = broker.connecting("new", Version::V5, |_| {});
    broker.commit();
    there.expect(&[message("kept", "later", QOS1, 1)]);
    leaver.expect_nothing();
    old.expect(&[CONNECTED, message("old", "later", QOS1, 1)]);
    away.expect(&[CONNECTED]);
    new.expect(&[Seen::Connected { session_present: false }]);
}

#[test]
fn a_long_subscribe_is_refused_as_a_whole_when_the_disk_fails_in_the_middle_of_it() {
    const FILTERS: usize = 5_000;
    let slow = LoopFaults { unit_ns_max: 2_000, ..LoopFaults::default() };
    let mut broker = DurableBroker::with_faults(1, 1, slow, |raw| {
        raw.limits.subscriptions_per_session_max = FILTERS;
    });
    let mut there = broker.lasting("there");
    broker.disk.set_faults(Faults { write_error: 1.0, ..Faults::default() });
    there.subscribe("f/0", QOS1);
    let filters: Vec<String> = (0..FILTERS).map(|number| format!("f/{number}")).collect();
    there.subscribe_all(filters.iter().map(String::as_str), QOS1);
    while broker.cluster.held(0).requests == 0 {
        broker.cluster.loops().turn(0);
    }
    assert!(!broker.cluster.commit());
    assert_ne!(broker.cluster.journal().unwrap().condition(), tacho_journal::Condition::Fine);
    for _ in 0..4 {
        broker.cluster.loops().advance(1_000_000_000);
        broker.cluster.loops().turn(0);
    }
    // The first one has waited for long enough: what it has made is no more.
    let refused = |count| Seen::NotSubscribed(vec![ReasonCode::QUOTA_EXCEEDED; count]);
    there.expect(&[refused(1)]);
    assert_eq!(broker.cluster.held(0).requests, 1, "the other one is not done");
    broker.settle();
    there.expect(&[refused(FILTERS)]);
    assert_eq!(broker.cluster.held(0).subscriptions, 0);
    let refused = broker.cluster.counter("journal_refused_subscriptions_total");
    assert_eq!(refused, FILTERS as u64 + 1);
    // As they were told, once it could be written, too.
    broker.disk.set_faults(Faults::default());
    broker.make_space();
    broker.restart(Death::PowerCut);
    assert_eq!(broker.cluster.held(0).subscriptions, 0);
    let mut there = broker.resumed("there");
    there.expect_nothing();
}

#[test]
fn a_long_subscribe_is_answered_once_the_last_of_it_is_committed() {
    const FILTERS: usize = 1_000;
    let slow = LoopFaults { unit_ns_max: 2_000, ..LoopFaults::default() };
    let mut broker = DurableBroker::with_faults(1, 1, slow, |_| {});
    let mut there = broker.lasting("there");
    let filters: Vec<String> = (0..FILTERS).map(|number| format!("f/{number}")).collect();
    there.subscribe_all(filters.iter().map(String::as_str), QOS1);
    let mut commits = 0;
    while broker.cluster.held(0).subscriptions < FILTERS {
        there.expect_nothing();
        broker.cluster.loops().turn(0);
        commits += u32::from(broker.cluster.commit());
    }
    assert!(commits > 2, "{commits} commits");
    broker.commit();
    there.expect(&[Seen::SubAck]);
    broker.restart(Death::PowerCut);
    assert_eq!(broker.cluster.held(0).subscriptions, FILTERS);
}
