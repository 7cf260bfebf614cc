//! From another broker to here.

use tacho_codec::{QoS, ReasonCode, Version};

use crate::bridge;
use crate::other::Other;
use crate::{status, wait_up};
use tacho_testkit::{ALL_QOS, TestBroker, wait_until};

const IN: &str = "[[bridges.ingress]]\nfilter = 'in/#'\ntopic = 'there/${topic}'\n";

/// Waits until the other broker has all subscriptions of the bridge.
fn wait_subscribed(there: &TestBroker, subscriptions: u64) {
    wait_until("the bridge has subscribed", || there.counter("subscriptions") == subscriptions);
}

#[test]
fn messages_of_every_qos_arrive_here_under_their_new_topic() {
    for (shards, connections, version) in [(1, 1, "3.1.1"), (3, 4, "5")] {
        let there = TestBroker::start(shards);
        let keys = format!("connections = {connections}\nversion = '{version}'\n");
        let toml = bridge(there.address, &format!("{keys}{IN}"));
        let here = TestBroker::configured(&format!("shards = {shards}\n{toml}"));
        wait_up(&here);
        wait_subscribed(&there, 1);
        let mut subscriber = here.connected("s", Version::V5);
        subscriber.subscribe("#", QoS::ExactlyOnce);
        let mut publisher = there.connected("p", Version::V5);
        for qos in ALL_QOS {
            publisher.publish("in/a", &[qos as u8], qos, false);
            publisher.publish("out/a", b"stays", qos, false);
            let got = subscriber.receive_and_ack();
            assert_eq!((&*got.topic, &*got.payload), ("there/in/a", &[qos as u8][..]));
            assert_eq!(got.qos, qos);
        }
        subscriber.expect_nothing();
        assert_eq!(status(&here).figures.received, 3);
    }
}

#[test]
fn retained_messages_come_with_the_subscription_and_are_retained_here() {
    let there = TestBroker::start(1);
    let mut publisher = there.connected("p", Version::V5);
    publisher.publish("in/old", b"1", QoS::AtLeastOnce, true);
    let here = TestBroker::configured(&bridge(there.address, IN));
    wait_up(&here);
    wait_subscribed(&there, 1);
    publisher.publish("in/new", b"2", QoS::AtLeastOnce, true);
    wait_until("both are here", || here.counter("retained") == 2);
    let mut subscriber = here.connected("s", Version::V5);
    subscriber.subscribe("there/#", QoS::ExactlyOnce);
    let mut got = [subscriber.receive_and_ack(), subscriber.receive_and_ack()];
    got.sort_by(|a, b| a.topic.cmp(&b.topic));
    assert!(got.iter().all(|message| message.retain));
    assert_eq!(got.map(|message| message.topic), ["there/in/new", "there/in/old"]);
}

#[test]
fn rules_change_what_comes_and_each_filter_is_subscribed_by_one_connection() {
    let there = TestBroker::start(2);
    let rules = "connections = 3\n[[bridges.ingress]]\nfilter = 'a/+'\ntopic = 'x'\n\
                 payload = '${topic}=${payload}'\nqos = 0\nretain = true\n\
                 [[bridges.ingress]]\nfilter = 'b'\nqos = 1\n\
                 [[bridges.ingress]]\nfilter = '$share/g/c'\n\
                 [[bridges.ingress]]\nfilter = 'd'\n";
    let here = TestBroker::configured(&bridge(there.address, rules));
    wait_up(&here);
    wait_subscribed(&there, 4);
    let mut subscriber = here.connected("s", Version::V5);
    subscriber.subscribe("#", QoS::ExactlyOnce);
    let mut publisher = there.connected("p", Version::V5);
    for (topic, expected, qos) in [
        ("a/1", ("x", "a/1=p"), QoS::AtMostOnce),
        ("b", ("b", "p"), QoS::AtLeastOnce),
        ("c", ("c", "p"), QoS::ExactlyOnce),
        ("d", ("d", "p"), QoS::ExactlyOnce),
    ] {
        publisher.publish(topic, b"p", QoS::ExactlyOnce, false);
        let got = subscriber.receive_and_ack();
        assert_eq!((&*got.topic, &*String::from_utf8(got.payload).unwrap()), expected);
        assert_eq!(got.qos, qos, "{topic}");
    }
    subscriber.expect_nothing();
    assert_eq!(here.counter("retained"), 1);
}

#[test]
fn a_refused_subscription_is_said_and_the_rest_works() {
    let other = Other::new();
    let here = TestBroker::configured(&bridge(other.address, IN));
    let mut link = other.accepted(false);
    assert_eq!(link.subscribe(ReasonCode::NOT_AUTHORIZED), ["in/#"]);
    wait_until("the refusal is told", || {
        let problem = status(&here).links.remove(0).problem;
        problem.is_some_and(|problem| problem.contains("`in/#`"))
    });
    wait_up(&here);
}

#[test]
fn a_message_of_qos_2_comes_once_however_often_it_is_sent() {
    let other = Other::new();
    let here = TestBroker::configured(&bridge(other.address, IN));
    let mut subscriber = here.connected("s", Version::V5);
    subscriber.subscribe("#", QoS::ExactlyOnce);
    let mut link = other.accepted(false);
    link.subscribe(ReasonCode::GRANTED_QOS_2);
    link.send_qos2("in/a", b"1", 7, false);
    assert_eq!(subscriber.receive_and_ack().payload, b"1");
    link.send_qos2("in/a", b"1", 7, true);
    drop(link);
    // The same session goes on: still the same message.
    let mut link = other.accepted(true);
    link.subscribe(ReasonCode::GRANTED_QOS_2);
    link.send_qos2("in/a", b"1", 7, true);
    subscriber.expect_nothing();
    drop(link);
    // A new session there: the identifier means another message, and subscriptions are gone.
    let mut link = other.accepted(false);
    assert_eq!(link.subscribe(ReasonCode::GRANTED_QOS_2), ["in/#"]);
    link.send_qos2("in/a", b"2", 7, false);
    assert_eq!(subscriber.receive_and_ack().payload, b"2");
    assert_eq!(status(&here).figures.received, 4);
}

#[test]
fn messages_without_a_matching_rule_are_acknowledged_dropped_and_counted() {
    let other = Other::new();
    let rules = "[[bridges.ingress]]\nfilter = 'in/#'\ntopic = '${topic}/${topic}'\n";
    let here = TestBroker::configured(&bridge(other.address, rules));
    let mut link = other.accepted(false);
    link.subscribe(ReasonCode::GRANTED_QOS_2);
    link.send_qos2("elsewhere", b"1", 1, false);
    link.send_qos2(&format!("in/{}", "l".repeat(40_000)), b"2", 2, false);
    wait_until("both are counted", || status(&here).figures.dropped_unmapped == 2);
}
