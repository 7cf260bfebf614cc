//! Messages that could come back.

use std::time::Duration;

use tacho_codec::{ConnAckProperties, QoS, ReasonCode, Version};

use crate::other::Other;
use crate::wire::Wire;
use crate::{bridge, status, wait_up};
use tacho_testkit::{ALL_QOS, Client, TestBroker, wait_until};

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

/// Each of two brokers has a bridge to the other for the same topics.
#[test]
fn two_bridges_that_know_each_other_do_not_send_messages_round_and_round() {
    for connections in [1, 2] {
        // Where it leads is known once both are there.
        let to_one = Wire::to(([127, 0, 0, 1], 9).into());
        to_one.unplug();
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
