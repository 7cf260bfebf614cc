//! Shared subscriptions.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tacho_codec::{Ack, Packet, QoS, ReasonCode, Version};

use tacho_testkit::{Client, PATIENCE, QUIET, TestBroker, each_broker};

/// Takes and acknowledges what comes to any of `clients` until that is so many messages, and makes
/// sure that no more come. Returns the last payload byte of each, by client.
fn take_all(clients: &mut [&mut Client], expected: usize) -> Vec<Vec<u8>> {
    let mut got = vec![Vec::new(); clients.len()];
    let deadline = Instant::now() + PATIENCE;
    while got.iter().map(Vec::len).sum::<usize>() < expected {
        assert!(Instant::now() < deadline, "only {got:?} of {expected}");
        for (client, got) in clients.iter_mut().zip(&mut got) {
            got.extend(take_one(client, Duration::from_millis(2)));
        }
    }
    for (client, got) in clients.iter_mut().zip(&mut got) {
        got.extend(take_one(client, QUIET / 3));
    }
    assert_eq!(got.iter().map(Vec::len).sum::<usize>(), expected, "{got:?}");
    got
}

/// The next message, if it is there in time, acknowledged as far as that goes at once.
fn take_one(client: &mut Client, patience: Duration) -> Option<u8> {
    while let Ok(frame) = client.frame_within(patience) {
        let frame = frame.expect("the broker closed");
        let id_at = 4 + usize::from(frame[3]);
        match frame[0] & 0xf6 {
            0x30 => {}
            0x32 => client.send_raw(&[0x40, 2, frame[id_at], frame[id_at + 1]]),
            0x34 => client.send_raw(&[0x50, 2, frame[id_at], frame[id_at + 1]]),
            _ => {
                client.send_raw(&[0x70, 2, frame[2], frame[3]]);
                continue;
            }
        }
        return frame.last().copied();
    }
    None
}

// 45
// [MQTT-4.8.2-3]
#[test]
fn one_member_of_each_group_gets_a_message_beside_normal_subscribers() {
    each_broker(|broker| {
        let mut clients: Vec<_> =
            (0..6).map(|i| broker.connected(&format!("c{i}"), Version::V5)).collect();
        for (i, client) in clients.iter_mut().enumerate() {
            let filter = match i {
                0 | 1 => "$share/one/t",
                2 | 3 => "$share/two/+",
                _ => "t",
            };
            let granted = client.subscribe(filter, QoS::try_from(i as u8 % 3).unwrap());
            assert_eq!(granted.value(), i as u8 % 3);
        }
        let mut publisher = broker.connected("pub", Version::V5);
        for i in 0..30_u8 {
            publisher.publish("t", &[i], QoS::ExactlyOnce, false);
        }
        let mut all: Vec<&mut Client> = clients.iter_mut().collect();
        let got = take_all(&mut all, 30 * 4);
        let all: Vec<u8> = (0..30).collect();
        for pair in [[0, 1], [2, 3]] {
            let mut both: Vec<u8> = pair.iter().flat_map(|&i| got[i].clone()).collect();
            both.sort();
            assert_eq!(both, all, "group of {pair:?}");
            assert!(pair.iter().all(|&i| !got[i].is_empty()), "both take part: {pair:?}");
        }
        assert_eq!((&got[4], &got[5]), (&all, &all));
    });
}

// 45
#[test]
fn messages_wait_for_a_member_and_connack_comes_first() {
    each_broker(|broker| {
        for name in ["a", "b", "c", "d"] {
            let mut client = broker.durable(name, Version::V5, Some(100));
            client.subscribe("$share/g/t", QoS::AtLeastOnce);
            client.disconnect();
            let mut publisher = broker.connected("pub", Version::V5);
            for i in 0..10 {
                publisher.publish("t", &[i], QoS::AtLeastOnce, false);
            }
            let mut client = broker.durable(name, Version::V5, Some(100));
            let mut got: Vec<u8> = (0..10).map(|_| client.receive_and_ack().payload[0]).collect();
            got.sort();
            assert_eq!(got, (0..10).collect::<Vec<_>>());
            client.unsubscribe("$share/g/t");
            client.ping();
        }
    });
}

// 45
// [MQTT-4.8.2-4]
#[test]
fn qos_2_completes_with_its_member_on_resume() {
    each_broker(|broker| {
        let mut first = broker.durable("first", Version::V5, Some(100));
        first.subscribe("$share/g/t", QoS::ExactlyOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        publisher.publish("t", b"x", QoS::ExactlyOnce, false);
        let message = first.receive();
        let mut second = broker.durable("second", Version::V5, Some(100));
        second.subscribe("$share/g/t", QoS::ExactlyOnce);
        drop(first);
        second.expect_nothing();
        let mut first = broker.durable("first", Version::V5, Some(100));
        let again = first.receive_and_ack();
        assert_eq!((again.packet_id, again.dup), (message.packet_id, true));
        second.ping();
    });
}

// 45
// [MQTT-4.8.2-5]
#[test]
fn messages_of_an_ended_session_go_to_other_members_except_qos_2_in_flight() {
    each_broker(|broker| {
        // Members on all shards, so that the leaver is alone on its shard at times.
        for leaver in ["l1", "l2", "l3", "l4"] {
            let mut leaving = broker.durable(leaver, Version::V5, Some(2));
            leaving.subscribe("$share/g/t", QoS::ExactlyOnce);
            let mut publisher = broker.connected("pub", Version::V5);
            for (payload, qos) in [
                (0, QoS::ExactlyOnce),
                (1, QoS::AtLeastOnce),
                (2, QoS::ExactlyOnce),
                (3, QoS::AtLeastOnce),
            ] {
                publisher.publish("t", &[payload], qos, false);
            }
            assert_eq!((leaving.receive().payload[0], leaving.receive().payload[0]), (0, 1));
            let mut staying = broker.durable("staying", Version::V5, Some(100));
            staying.subscribe("$share/g/t", QoS::ExactlyOnce);
            // DISCONNECT with session expiry 0.
            leaving.send_notation("e0 | 00 [11 00000000]");
            leaving.expect_closed();
            let got = take_all(&mut [&mut staying], 3).remove(0);
            assert_eq!(BTreeSet::from_iter(got), BTreeSet::from([1, 2, 3]));
            staying.unsubscribe("$share/g/t");
        }
    });
}

// 45
// [MQTT-4.8.2-5]
#[test]
fn messages_in_flight_at_unsubscribe_go_to_other_members_once_the_session_ends() {
    each_broker(|broker| {
        // On all shards, so that the leaver's shard often has no other member.
        for leaver in ["l1", "l2", "l3", "l4", "l5", "l6"] {
            let mut leaving = broker.durable(leaver, Version::V5, Some(100));
            leaving.subscribe("$share/g/t", QoS::ExactlyOnce);
            let mut publisher = broker.connected("pub", Version::V5);
            for (payload, qos) in [(0, QoS::ExactlyOnce), (1, QoS::AtLeastOnce)] {
                publisher.publish("t", &[payload], qos, false);
            }
            assert_eq!((leaving.receive().payload[0], leaving.receive().payload[0]), (0, 1));
            let mut staying = broker.durable("staying", Version::V5, Some(100));
            staying.subscribe("$share/g/t", QoS::ExactlyOnce);
            assert_eq!(leaving.unsubscribe("$share/g/t"), Some(ReasonCode::SUCCESS));
            staying.ping();
            // DISCONNECT with session expiry 0. QoS 2 may have arrived.
            leaving.send_notation("e0 | 00 [11 00000000]");
            leaving.expect_closed();
            assert_eq!(take_all(&mut [&mut staying], 1), [[1]]);
            staying.unsubscribe("$share/g/t");
        }
    });
}

// 45
#[test]
fn queued_messages_of_a_member_that_unsubscribes_go_to_others_or_stay_if_there_are_none() {
    for shards in [1, 3] {
        // Binds messages to a member, so they wait in its session.
        let broker = TestBroker::configured(&format!(
            "shards = {shards}\nshared_subscription_strategy = 'hash_topic'"
        ));
        for (leaver, others) in
            ["l1", "l2", "l3", "l4"].iter().flat_map(|l| [(l, true), (l, false)])
        {
            let mut leaving = broker.durable(leaver, Version::V5, Some(1));
            leaving.subscribe("$share/g/t", QoS::AtLeastOnce);
            leaving.subscribe("$share/h/unused", QoS::AtLeastOnce);
            let mut publisher = broker.connected("pub", Version::V5);
            for i in 0..4 {
                publisher.publish("t", &[i], QoS::AtLeastOnce, false);
            }
            assert_eq!(leaving.receive().payload, [0]);
            let mut staying = broker.durable("staying", Version::V5, Some(100));
            if others {
                staying.subscribe("$share/g/t", QoS::AtLeastOnce);
            }
            leaving.unsubscribe("$share/g/t");
            staying.ping();
            drop(leaving);
            if others {
                assert_eq!(take_all(&mut [&mut staying], 3), [[1, 2, 3]]);
                staying.unsubscribe("$share/g/t");
            }
            let mut leaving = broker.durable(leaver, Version::V5, Some(1));
            let expected = if others { vec![0] } else { vec![0, 1, 2, 3] };
            assert_eq!(take_all(&mut [&mut leaving], expected.len()), [expected]);
            leaving.unsubscribe("$share/h/unused");
        }
    }
}

// 45
// [MQTT-3.10.4-1]
#[test]
fn leaving_a_group_needs_the_whole_name() {
    each_broker(|broker| {
        let mut client = broker.connected("c", Version::V5);
        client.subscribe("$share/g/t", QoS::AtMostOnce);
        assert_eq!(client.unsubscribe("t"), Some(ReasonCode::NO_SUBSCRIPTION_EXISTED));
        let mut publisher = broker.connected("pub", Version::V5);
        publisher.publish("t", b"x", QoS::AtMostOnce, false);
        client.receive();
        assert_eq!(client.unsubscribe("$share/g/t"), Some(ReasonCode::SUCCESS));
        publisher.publish("t", b"x", QoS::AtLeastOnce, false);
        client.ping();
    });
}

// 31, 45
#[test]
fn a_member_that_does_not_acknowledge_does_not_stop_the_group() {
    each_broker(|broker| {
        let mut stuck = broker.durable("stuck", Version::V5, Some(1));
        stuck.subscribe("$share/g/t", QoS::AtLeastOnce);
        let mut busy = broker.durable("busy", Version::V5, Some(100));
        busy.subscribe("$share/g/t", QoS::AtLeastOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        let mut got = 0;
        for i in 0..50 {
            publisher.publish("t", &[i], QoS::AtLeastOnce, false);
            got += usize::from(take_one(&mut busy, Duration::from_millis(1)).is_some());
        }
        let stuck_with = stuck.receive();
        let deadline = Instant::now() + PATIENCE;
        while got < 20 {
            assert!(Instant::now() < deadline, "the busy member got {got} of 50");
            got += usize::from(take_one(&mut busy, QUIET).is_some());
        }
        let ack = Ack::new(stuck_with.packet_id.unwrap(), ReasonCode::SUCCESS);
        stuck.send(&Packet::PubAck(ack));
        take_all(&mut [&mut stuck, &mut busy], 49 - got);
    });
}
