//! Topic aliases towards another broker.

use tacho_codec::{ConnAckProperties, QoS, ReasonCode, Version};

use crate::other::{Link, Other};
use crate::{OUT, bridge, status, wait_empty, wait_up};
use tacho_testkit::TestBroker;

fn taking(aliases: u16) -> ConnAckProperties<'static> {
    ConnAckProperties { topic_alias_maximum: Some(aliases), ..ConnAckProperties::default() }
}

/// The topics and aliases of the next messages, which are acknowledged.
fn came<const N: usize>(link: &mut Link) -> [(String, Option<u16>); N] {
    [(); N].map(|()| {
        let came = link.publish();
        link.puback(came.packet_id, ReasonCode::SUCCESS);
        (came.topic, came.alias)
    })
}

#[test]
fn a_topic_is_said_once_per_connection_and_there_are_no_more_aliases_than_the_other_takes() {
    let other = Other::new();
    let here = TestBroker::configured(&bridge(other.address, OUT));
    let mut link = other.accepted_with(false, taking(2));
    wait_up(&here);
    let mut publisher = here.connected("p", Version::V5);
    for topic in ["out/a", "out/a", "out/b", "out/c", "out/a", "out/b"] {
        publisher.publish(topic, b"m", QoS::AtLeastOnce, false);
    }
    let whole = |topic: &str, alias| (topic.to_owned(), alias);
    let expected = [
        whole("from/out/a", Some(1)),
        whole("", Some(1)),
        whole("from/out/b", Some(2)),
        whole("from/out/c", None),
        whole("", Some(1)),
        whole("", Some(2)),
    ];
    assert_eq!(came(&mut link), expected);
    wait_empty(&here);
    assert_eq!(here.counter("publishes_aliased_out_total"), 3);
    drop(link);
    // What it has learnt is forgotten with the connection, also for what comes again.
    publisher.publish("out/a", b"m", QoS::AtLeastOnce, false);
    let mut link = other.accepted_with(true, taking(1));
    let first = link.publish();
    assert_eq!((&*first.topic, first.alias), ("from/out/a", Some(1)));
    drop(link);
    let mut link = other.accepted_with(true, taking(0));
    assert_eq!(came(&mut link), [whole("from/out/a", None)]);
    publisher.publish("out/a", b"m", QoS::AtLeastOnce, false);
    assert_eq!(came(&mut link), [whole("from/out/a", None)]);
}

#[test]
fn a_topic_that_depends_on_more_than_the_topic_has_no_alias() {
    let other = Other::new();
    let rules = "[[bridges.egress]]\nfilter = 'out/#'\ntopic = 'q${qos}/${topic}'\n";
    let here = TestBroker::configured(&bridge(other.address, rules));
    let mut link = other.accepted_with(false, taking(9));
    wait_up(&here);
    let mut publisher = here.connected("p", Version::V5);
    for qos in [QoS::AtLeastOnce, QoS::AtMostOnce] {
        publisher.publish("out/a", b"m", qos, false);
    }
    for topic in ["q1/out/a", "q0/out/a"] {
        let message = link.publish();
        assert_eq!((&*message.topic, message.alias), (topic, None));
    }
}

#[test]
fn an_alias_must_fit_into_the_largest_packet_of_the_other() {
    let other = Other::new();
    let here = TestBroker::configured(&bridge(other.address, OUT));
    // PUBLISH with this topic, QoS 1 and one byte: 2 + 2 + 10 + 2 + 1 + 1 bytes, 3 less than with
    // an alias.
    let properties = ConnAckProperties { packet_size_max: Some(18), ..taking(9) };
    let mut link = other.accepted_with(false, properties);
    wait_up(&here);
    let mut publisher = here.connected("p", Version::V5);
    for _ in 0..2 {
        publisher.publish("out/a", b"m", QoS::AtLeastOnce, false);
        assert_eq!(came(&mut link), [("from/out/a".to_owned(), None)]);
    }
    assert_eq!(status(&here).figures.dropped(), 0);
}

#[test]
fn our_own_broker_takes_aliases_over_changing_topics() {
    const TOPICS: usize = 50;
    let there = TestBroker::start(2);
    let keys = format!("connections = 2\n{OUT}");
    let here = TestBroker::configured(&format!("shards = 2\n{}", bridge(there.address, &keys)));
    wait_up(&here);
    let mut subscriber = there.connected("s", Version::V5);
    subscriber.subscribe("from/#", QoS::ExactlyOnce);
    let mut publisher = here.connected("p", Version::V5);
    for round in 0..6_usize {
        for at in 0..TOPICS {
            // Which topics are frequent changes, so that aliases change hands.
            let topic = format!("out/{}", if at % 2 == 0 { at } else { round * 7 + at % 5 });
            let qos = if at % 3 == 0 { QoS::ExactlyOnce } else { QoS::AtLeastOnce };
            publisher.publish(&topic, topic.as_bytes(), qos, false);
        }
    }
    for _ in 0..6 * TOPICS {
        let got = subscriber.receive_and_ack();
        assert_eq!(got.topic.as_bytes(), [b"from/", &*got.payload].concat());
    }
    wait_empty(&here);
    assert!(here.counter("publishes_aliased_out_total") > 50);
    assert_eq!(status(&here).figures.dropped(), 0);
}
