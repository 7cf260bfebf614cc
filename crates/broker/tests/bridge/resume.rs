//! Connections that are lost, other brokers that restart, and our own restart.

use std::collections::HashMap;

use tacho_codec::{ConnAckProperties, Packet, QoS, ReasonCode, Version};

use crate::other::Other;
use crate::wire::Wire;
use crate::{OUT, bridge, status, wait_empty, wait_up};
use tacho_testkit::{TestBroker, wait_until};

/// Waits until the bridge has noticed that it is cut off.
fn wait_cut(broker: &TestBroker) {
    wait_until("the bridge is down", || status(broker).connected == 0);
}

#[test]
fn unacknowledged_messages_are_sent_again_and_qos_2_continues() {
    let other = Other::new();
    let here = TestBroker::configured(&bridge(other.address, OUT));
    let mut link = other.accepted(false);
    wait_up(&here);
    let mut publisher = here.connected("p", Version::V5);
    for (payload, qos) in
        [("1", QoS::AtLeastOnce), ("2", QoS::ExactlyOnce), ("3", QoS::ExactlyOnce)]
    {
        publisher.publish("out/a", payload.as_bytes(), qos, false);
    }
    let sent = [link.publish(), link.publish(), link.publish()];
    link.pubrec(sent[1].packet_id, ReasonCode::SUCCESS);
    assert_eq!(Some(link.pubrel()), sent[1].packet_id);
    drop(link);
    // It has kept the session: the same identifiers, as repetitions, and PUBREL where that was.
    let mut link = other.accepted(true);
    let again = link.publish();
    assert!(again.dup && again.packet_id == sent[0].packet_id && again.payload == "1");
    assert_eq!(Some(link.pubrel()), sent[1].packet_id);
    let again = link.publish();
    assert!(again.dup && again.packet_id == sent[2].packet_id && again.payload == "3");
    drop(link);
    // It has lost the session: new messages. What it had answered with PUBREC it has.
    let mut link = other.accepted(false);
    let again = [link.publish(), link.publish()];
    assert!(again.iter().all(|message| !message.dup));
    assert_eq!([&*again[0].payload, &*again[1].payload], ["1", "3"]);
    link.puback(again[0].packet_id, ReasonCode::SUCCESS);
    link.pubrec(again[1].packet_id, ReasonCode::SUCCESS);
    let released = link.pubrel();
    link.pubcomp(released);
    wait_empty(&here);
    link.expect_nothing();
    let figures = status(&here).figures;
    assert_eq!((figures.reconnects, figures.dropped()), (2, 0));
}

#[test]
fn a_session_of_an_unknown_life_is_forgotten_first() {
    for version in ["5", "3.1.1"] {
        let other = Other::new();
        let keys = format!("version = '{version}'\n{OUT}");
        let here = TestBroker::configured(&bridge(other.address, &keys));
        let (mut link, asked) = other.accept();
        assert!(!asked.clean_start);
        link.greet(true, ConnAckProperties::default());
        let (mut link, asked) = other.accept();
        assert!(asked.clean_start);
        link.greet(false, ConnAckProperties::default());
        let mut link = match version {
            "5" => link,
            // There a clean session would end with this connection.
            _ => {
                let (mut link, asked) = other.accept();
                assert!(!asked.clean_start);
                link.greet(false, ConnAckProperties::default());
                link
            }
        };
        wait_up(&here);
        here.connected("p", Version::V5).publish("out/a", b"1", QoS::ExactlyOnce, false);
        assert_eq!(link.publish().payload, "1");
        // From now on it is a session that is known here.
        drop(link);
        let mut link = other.accepted(true);
        assert!(link.publish().dup);
    }
}

#[test]
fn subscriptions_are_made_again_whenever_the_other_broker_has_forgotten_them() {
    let ingress = "[[bridges.ingress]]\nfilter = 'in/#'\n";
    for (version, is_asked_on_resume) in [("5", true), ("3.1.1", false)] {
        let other = Other::new();
        let keys = format!("version = '{version}'\n{ingress}");
        let _here = TestBroker::configured(&bridge(other.address, &keys));
        for (session_present, expected) in
            [(false, true), (true, is_asked_on_resume), (false, true)]
        {
            let mut link = other.accepted(session_present);
            match expected {
                true => drop(link.subscribe(ReasonCode::GRANTED_QOS_2)),
                false => link.expect_nothing(),
            }
        }
    }
}

#[test]
fn a_subscription_that_was_not_answered_is_made_again() {
    for version in ["5", "3.1.1"] {
        let other = Other::new();
        let keys = format!("version = '{version}'\n[[bridges.ingress]]\nfilter = 'in/#'\n");
        let _here = TestBroker::configured(&bridge(other.address, &keys));
        let mut link = other.accepted(false);
        link.expect(|packet| assert!(matches!(packet, Packet::Subscribe(_)), "{packet:?}"));
        // Whether it has the subscription is unknown.
        drop(link);
        let mut link = other.accepted(true);
        assert_eq!(link.subscribe(ReasonCode::GRANTED_QOS_2), ["in/#"]);
    }
}

#[test]
fn rules_that_another_connection_has_after_a_restart_bring_nothing_twice() {
    let there = TestBroker::start(2);
    let rule = |filter: &str| format!("[[bridges.ingress]]\nfilter = '{filter}'\n");
    let here = |connections: usize, filters: [&str; 3]| {
        let rules = filters.map(rule).concat();
        let toml = bridge(there.address, &format!("connections = {connections}\n{rules}"));
        let broker = TestBroker::configured(&format!("shards = 2\n{toml}"));
        wait_up(&broker);
        broker
    };
    let mut publisher = there.connected("p", Version::V5);
    for (connections, filters) in
        [(2, ["a/#", "b/#", "c/#"]), (2, ["c/#", "a/#", "b/#"]), (3, ["c/#", "a/#", "b/#"])]
    {
        let asked = there.counter("subscribes_total");
        let mut broker = here(connections, filters);
        wait_until("all have asked", || {
            there.counter("subscribes_total") >= asked + connections as u64
        });
        // Whatever the sessions over there had.
        wait_until("nothing is subscribed twice", || there.counter("subscriptions") == 3);
        let mut subscriber = broker.connected("s", Version::V5);
        subscriber.subscribe("#", QoS::ExactlyOnce);
        for topic in ["a/1", "b/1", "c/1"] {
            publisher.publish(topic, b"1", QoS::ExactlyOnce, false);
            assert_eq!(subscriber.receive_and_ack().topic, topic);
        }
        subscriber.expect_nothing();
        broker.stop();
    }
}

/// Publishes `count` messages to each of a few topics while `between` is called now and then.
fn publish_through(
    broker: &TestBroker,
    (first, count): (u8, u8),
    qos: QoS,
    mut between: impl FnMut(u8),
) {
    let mut publisher = broker.connected("p", Version::V5);
    for number in first..first + count {
        for topic in 0..TOPICS {
            publisher.publish(&format!("out/{topic}"), &[number], qos, false);
        }
        between(number);
    }
    publisher.disconnect();
}

const TOPICS: u8 = 5;

/// A subscriber of the other broker whose session outlives its connections.
struct Taker {
    next: HashMap<String, u8>,
    repeated: usize,
}

impl Taker {
    fn new() -> Self {
        Self { next: HashMap::new(), repeated: 0 }
    }

    fn attach(broker: &TestBroker) -> tacho_testkit::Client {
        let mut client = broker.durable("taker", Version::V5, None);
        client.subscribe("from/#", QoS::ExactlyOnce);
        client
    }

    fn attach_again(broker: &TestBroker) -> tacho_testkit::Client {
        broker.durable("taker", Version::V5, None)
    }

    /// Takes messages until each topic has had `count` of them.
    fn take(&mut self, client: &mut tacho_testkit::Client, count: u8) {
        let is_done = |next: &HashMap<String, u8>| {
            next.len() == usize::from(TOPICS) && next.values().all(|next| *next == count)
        };
        while !is_done(&self.next) {
            let got = client.receive_and_ack();
            let next = self.next.entry(got.topic.clone()).or_default();
            if got.payload[0] < *next {
                self.repeated += 1;
                continue;
            }
            assert_eq!(got.payload, [*next], "in order, none missing, on {}", got.topic);
            *next += 1;
        }
    }
}

#[test]
fn cut_again_and_again_nothing_is_lost_and_qos_2_comes_once() {
    for (qos, connections) in [(QoS::ExactlyOnce, 3), (QoS::AtLeastOnce, 1)] {
        let there = TestBroker::start(2);
        let wire = Wire::to(there.address);
        let keys = format!("connections = {connections}\ninflight = 3\n{OUT}");
        let here = TestBroker::configured(&format!("shards = 2\n{}", bridge(wire.address, &keys)));
        wait_up(&here);
        let mut taker = Taker::new();
        let mut client = Taker::attach(&there);
        publish_through(&here, (0, 40), qos, |number| {
            if number % 13 == 5 {
                wire.cut();
            }
        });
        taker.take(&mut client, 40);
        wait_empty(&here);
        client.expect_nothing();
        if qos == QoS::ExactlyOnce {
            assert_eq!(taker.repeated, 0);
        }
        assert!(status(&here).figures.reconnects > 0);
    }
}

#[test]
fn messages_published_during_an_outage_arrive_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let kept = format!("data_dir = '{}'\nshards = 2\n", directory.path().display());
    let mut there = TestBroker::configured(&kept);
    let wire = Wire::to(there.address);
    let keys = format!("connections = 2\n{OUT}");
    let here = TestBroker::configured(&format!("shards = 2\n{}", bridge(wire.address, &keys)));
    wait_up(&here);
    let mut taker = Taker::new();
    drop(Taker::attach(&there));
    publish_through(&here, (0, 5), QoS::ExactlyOnce, |_| {});
    wire.unplug();
    there.stop();
    wait_cut(&here);
    publish_through(&here, (5, 10), QoS::ExactlyOnce, |_| {});
    let there = TestBroker::configured(&kept);
    wire.plug(there.address);
    let mut client = Taker::attach_again(&there);
    taker.take(&mut client, 15);
    wait_empty(&here);
    client.expect_nothing();
    assert_eq!(taker.repeated, 0);
}

#[test]
fn our_own_restart_loses_nothing_whatever_the_number_of_shards_and_connections() {
    let directory = tempfile::tempdir().unwrap();
    let there = TestBroker::start(2);
    let wire = Wire::to(there.address);
    let here = |shards: usize, connections: usize| {
        let directory = directory.path().display();
        let keys = format!("connections = {connections}\n{OUT}");
        let rest = bridge(wire.address, &keys);
        TestBroker::configured(&format!("data_dir = '{directory}'\nshards = {shards}\n{rest}"))
    };
    let mut taker = Taker::new();
    let mut client = Taker::attach(&there);
    let mut broker = here(2, 3);
    wait_up(&broker);
    publish_through(&broker, (0, 3), QoS::ExactlyOnce, |_| {});
    taker.take(&mut client, 3);
    wait_empty(&broker);
    wire.unplug();
    wait_cut(&broker);
    publish_through(&broker, (3, 4), QoS::ExactlyOnce, |_| {});
    // Twice, as what was restored has to be restored again.
    for shards in [1, 3] {
        broker.stop();
        broker = here(shards, 3);
        wait_until("everything is there again", || {
            let figures = status(&broker).figures;
            figures.buffered_messages + figures.inflight == 4 * u64::from(TOPICS)
        });
    }
    // A smaller pool: links beyond it first deliver what they hold.
    broker.stop();
    let broker = here(2, 1);
    wire.plug(there.address);
    let mut got: Vec<(String, u8)> = (0..4 * TOPICS)
        .map(|_| client.receive_and_ack())
        .map(|message| (message.topic, message.payload[0]))
        .collect();
    client.expect_nothing();
    got.sort();
    let expected = (0..TOPICS).flat_map(|t| (3..7).map(move |n| (format!("from/out/{t}"), n)));
    assert_eq!(got, expected.collect::<Vec<_>>());
    wait_empty(&broker);
    wait_until("the old connections are gone", || there.counter("sessions_connected") == 2);
}

#[test]
fn a_bridge_that_is_not_configured_any_more_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let other = Other::new();
    let kept = format!("data_dir = '{}'\nshards = 1\n", directory.path().display());
    let mut here = TestBroker::configured(&format!("{kept}{}", bridge(other.address, OUT)));
    here.connected("p", Version::V5).publish("out/a", b"1", QoS::AtLeastOnce, false);
    here.stop();
    let mut here = TestBroker::configured(&kept);
    assert!(here.bridges().is_empty());
    wait_until("the session is over", || here.counter("waiting") == 0);
    here.stop();
    // Configured again it begins anew.
    drop(other.accept());
    let here = TestBroker::configured(&format!("{kept}{}", bridge(other.address, OUT)));
    drop(other.accept());
    let figures = status(&here).figures;
    assert_eq!(figures.buffered_messages + figures.inflight, 0);
}

#[test]
fn a_broker_that_stops_says_goodbye() {
    let other = Other::new();
    let mut here = TestBroker::configured(&bridge(other.address, OUT));
    let mut link = other.accepted(false);
    wait_up(&here);
    here.stop();
    assert_eq!(link.frame().unwrap()[0], 0xe0, "DISCONNECT");
    assert_eq!(link.frame(), None);
}

#[test]
fn another_broker_that_says_nothing_any_more_is_given_up() {
    let other = Other::new();
    let keys = format!("health_check_s = 1\n{OUT}");
    let here = TestBroker::configured(&bridge(other.address, &keys));
    let mut link = other.accepted(false);
    wait_up(&here);
    assert_eq!(link.frame().unwrap(), [0xc0, 0x00], "PINGREQ");
    // No answer.
    wait_cut(&here);
    let _link = other.accepted(true);
    wait_up(&here);
}

#[test]
fn another_broker_that_answers_and_acknowledges_nothing_is_left_and_gets_it_again() {
    let other = Other::new();
    let keys = format!("ack_timeout_s = 3\nhealth_check_s = 1\n{OUT}");
    let here = TestBroker::configured(&bridge(other.address, &keys));
    let mut link = other.accepted(false);
    wait_up(&here);
    let mut publisher = here.connected("p", Version::V5);
    publisher.publish("out/a", b"1", QoS::AtLeastOnce, false);
    publisher.publish("out/a", b"2", QoS::ExactlyOnce, false);
    let sent = [link.publish(), link.publish()];
    link.pubrec(sent[1].packet_id, ReasonCode::SUCCESS);
    assert_eq!(Some(link.pubrel()), sent[1].packet_id);
    link.answer_pings_only();
    wait_cut(&here);
    let problem = status(&here).links[0].problem.clone().unwrap_or_default();
    assert!(problem.contains("ack_timeout_s"), "{problem}");
    let mut link = other.accepted(true);
    let again = link.publish();
    assert!(again.dup && again.packet_id == sent[0].packet_id && again.payload == "1");
    assert_eq!(Some(link.pubrel()), sent[1].packet_id);
    link.puback(again.packet_id, ReasonCode::SUCCESS);
    link.pubcomp(sent[1].packet_id.unwrap());
    wait_empty(&here);
    assert_eq!(status(&here).figures.ack_timeouts, 1);
}

#[test]
fn another_brokers_name_is_looked_up() {
    let there = TestBroker::start(1);
    let port = there.address.port();
    let toml = bridge(there.address, OUT)
        .replace(&there.address.to_string(), &format!("localhost:{port}"));
    let here = TestBroker::configured(&toml);
    wait_up(&here);
}
