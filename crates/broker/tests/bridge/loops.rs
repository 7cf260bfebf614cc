//! Messages that could come back.

use std::net::SocketAddr;
use std::time::Duration;

use tacho_codec::{ConnAckProperties, QoS, ReasonCode, Version};

use crate::other::Other;
use crate::wire::Wire;
use crate::{bridge, status, wait_up};
use tacho_testkit::{ALL_QOS, Client, Received, TestBroker, wait_until};

/// The same topics both ways.
const BOTH: &str = "[[bridges.egress]]\nfilter = 't/#'\n[[bridges.ingress]]\nfilter = 't/#'\n";

fn subscriber(broker: &TestBroker) -> Client {
    let mut client = broker.connected("s", Version::V5);
    client.subscribe("t/#", QoS::ExactlyOnce);
    client
}

#[test]
fn a_bridge_both_ways_on_the_same_topics_sends_nothing_back() {
    for (version, connections) in [("5", 1), ("3.1.1", 1), ("5", 3)] {
        let there = TestBroker::start(2);
        let keys = format!("version = '{version}'\nconnections = {connections}\n{BOTH}");
        let here = TestBroker::configured(&format!("shards = 2\n{}", bridge(there.address, &keys)));
        wait_up(&here);
        wait_until("it has subscribed", || there.counter("subscriptions") == 1);
        let (mut here_s, mut there_s) = (subscriber(&here), subscriber(&there));
        for qos in ALL_QOS {
            here.connected("p", Version::V5).publish("t/a", b"from here", qos, false);
            assert_eq!(there_s.receive_and_ack().payload, b"from here");
            assert_eq!(here_s.receive_and_ack().payload, b"from here");
            there.connected("p", Version::V5).publish("t/b", b"from there", qos, false);
            assert_eq!(there_s.receive_and_ack().payload, b"from there");
            assert_eq!(here_s.receive_and_ack().payload, b"from there");
        }
        // Time for a message to come back, which none may.
        std::thread::sleep(Duration::from_millis(100));
        there_s.expect_nothing();
        here_s.expect_nothing();
        assert_eq!(status(&here).figures.sent, 3, "{version}");
    }
}

#[test]
fn a_broker_that_knows_no_bridges_is_greeted_as_by_a_client() {
    let other = Other::new();
    let keys = format!("version = '3.1.1'\n{BOTH}");
    let here = TestBroker::configured(&bridge(other.address, &keys));
    let (mut link, asked) = other.accept();
    assert!(asked.says_bridge);
    link.refuse(ReasonCode::UNSUPPORTED_PROTOCOL_VERSION);
    let (mut link, asked) = other.accept();
    assert!(!asked.says_bridge);
    link.greet(false, ConnAckProperties::default());
    wait_up(&here);
    drop(link);
    let (link, asked) = other.accept();
    assert!(!asked.says_bridge, "it is known now");
    drop(link);
}

/// A broker that passes `t/#` on to `address`.
fn passes_on(address: SocketAddr, keys: &str) -> String {
    bridge(address, &format!("{keys}\n[[bridges.egress]]\nfilter = 't/#'\n"))
}

/// Waits until as many messages were dropped for circulating, and expects none after that.
fn wait_ended(brokers: &[&TestBroker], looped: u64) {
    let all = || brokers.iter().map(|broker| status(broker).figures.dropped_looped).sum::<u64>();
    wait_until("the message has ended", || all() == looped);
    // Time for another round, which there is not.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(all(), looped);
}

/// How often a message has passed a bridge, as its receiver sees.
fn hops(received: &Received) -> Option<&str> {
    let mut properties = received.user_properties.iter();
    properties.find(|(name, _)| name == "tacho-hops").map(|(_, value)| &**value)
}

#[test]
fn a_message_goes_round_three_brokers_a_bounded_number_of_times() {
    let to_one = Wire::unplugged();
    let three = TestBroker::configured(&passes_on(to_one.address, ""));
    let two = TestBroker::configured(&passes_on(three.address, ""));
    let one = TestBroker::configured(&passes_on(two.address, ""));
    to_one.plug(one.address);
    [&one, &two, &three].into_iter().for_each(wait_up);
    let mut subscribers = [&one, &two, &three].map(subscriber);
    for qos in ALL_QOS {
        one.connected("p", Version::V5).publish("t/a", b"round", qos, false);
        // At the first broker it has passed none, then four in all.
        for (at, expected) in
            [(0, None), (1, Some("1")), (2, Some("2")), (0, Some("3")), (1, Some("4"))]
        {
            let received = subscribers[at].receive_and_ack();
            assert_eq!((&*received.payload, hops(&received)), (&b"round"[..], expected));
        }
        subscribers.iter_mut().for_each(Client::expect_nothing);
    }
    wait_ended(&[&one, &two, &three], 3);
    assert_eq!(status(&two).figures.dropped(), 3, "there it had passed four");
}

#[test]
fn a_bridge_to_the_broker_itself_and_one_of_pulling_brokers_end_too() {
    // By itself, and with another limit.
    let to_self = Wire::unplugged();
    let alone = TestBroker::configured(&passes_on(to_self.address, "hops_max = 2"));
    to_self.plug(alone.address);
    wait_up(&alone);
    let mut client = subscriber(&alone);
    alone.connected("p", Version::V5).publish("t/a", b"x", QoS::AtLeastOnce, false);
    for expected in [None, Some("1"), Some("2")] {
        assert_eq!(hops(&client.receive_and_ack()), expected);
    }
    wait_ended(&[&alone], 1);
    // Each subscribes at the one before it.
    let pulls = |address| {
        let keys = "[[bridges.ingress]]\nfilter = 't/#'\n";
        TestBroker::configured(&bridge(address, keys))
    };
    let to_three = Wire::unplugged();
    let one = pulls(to_three.address);
    let two = pulls(one.address);
    let three = pulls(two.address);
    to_three.plug(three.address);
    for broker in [&one, &two, &three] {
        wait_up(broker);
        wait_until("it is subscribed to", || broker.counter("subscriptions") == 1);
    }
    let mut client = subscriber(&three);
    one.connected("p", Version::V5).publish("t/a", b"x", QoS::AtLeastOnce, false);
    assert_eq!(hops(&client.receive_and_ack()), Some("2"));
    wait_ended(&[&one, &two, &three], 1);
    client.expect_nothing();
}

#[test]
fn between_two_brokers_nothing_is_added_to_a_message() {
    let there = TestBroker::start(1);
    let here = TestBroker::configured(&passes_on(there.address, ""));
    wait_up(&here);
    let mut client = subscriber(&there);
    here.connected("p", Version::V5).publish("t/a", b"x", QoS::AtLeastOnce, false);
    assert!(client.receive_and_ack().user_properties.is_empty());
}

/// Each of two brokers has a bridge to the other for the same topics.
#[test]
fn two_bridges_that_know_each_other_do_not_send_messages_round_and_round() {
    for connections in [1, 2] {
        // Where it leads is known once both are there.
        let to_one = Wire::unplugged();
        let end = |address, client_id: &str, counterpart: &str| {
            format!(
                "shards = 2\n[[bridges]]\nname = 'b'\naddress = 'mqtt://{address}'\n\
                 client_id = '{client_id}'\ncounterpart = '{counterpart}'\nretry_longest_s = 1\n\
                 connections = {connections}\n[[bridges.egress]]\nfilter = 't/#'\n"
            )
        };
        let two = TestBroker::configured(&end(to_one.address, "from-two", "from-one"));
        let one = TestBroker::configured(&end(two.address, "from-one", "from-two"));
        to_one.plug(one.address);
        wait_up(&one);
        wait_up(&two);
        let (mut one_s, mut two_s) = (subscriber(&one), subscriber(&two));
        for qos in ALL_QOS {
            for topic in ["t/a", "t/b", "t/c"] {
                for (at, name) in [(&one, "one"), (&two, "two")] {
                    at.connected("p", Version::V5).publish(topic, name.as_bytes(), qos, false);
                    assert_eq!(one_s.receive_and_ack().payload, name.as_bytes());
                    assert_eq!(two_s.receive_and_ack().payload, name.as_bytes());
                }
            }
        }
        // Time for a message to come back, which none may.
        std::thread::sleep(Duration::from_millis(100));
        one_s.expect_nothing();
        two_s.expect_nothing();
        assert_eq!((status(&one).figures.sent, status(&two).figures.sent), (9, 9));
    }
}
