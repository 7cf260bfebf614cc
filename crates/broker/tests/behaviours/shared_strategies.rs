//! Shared subscriptions: the receiving member by strategy, room, and waiting messages.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tacho_broker::SharedStrategy;
use tacho_codec::{Ack, Connect, ConnectProperties, Packet, Publish, QoS, ReasonCode, Version};

use tacho_testkit::{Client, PATIENCE, Received, TestBroker, connect, wait_until};

/// A test with each strategy, on one shard and on two.
fn each_strategy(strategies: &[&str], test: impl Fn(&TestBroker, &str)) {
    for strategy in strategies {
        for shards in [1, 2] {
            let broker = with_strategy(strategy, shards, "");
            test(&broker, &format!("{strategy}, {shards} shards"));
        }
    }
}

fn with_strategy(strategy: &str, shards: usize, limits: &str) -> TestBroker {
    TestBroker::configured(&format!(
        "shards = {shards}\nshared_subscription_strategy = '{strategy}'\n[limits]\n{limits}"
    ))
}

fn member(broker: &TestBroker, name: &str, receive_maximum: u16) -> Client {
    let mut client = broker.client(Version::V5);
    let properties = ConnectProperties {
        session_expiry_s: Some(600),
        receive_maximum: Some(receive_maximum),
        ..Default::default()
    };
    client.connect(&Connect { clean_start: false, properties, ..connect(name, Version::V5) });
    client
}

fn members(broker: &TestBroker, count: usize, qos: QoS) -> Vec<Client> {
    let join = |i| {
        let mut client = member(broker, &format!("member-{i}"), 100);
        client.subscribe("$share/g/t/#", qos);
        client
    };
    (0..count).map(join).collect()
}

fn publishers(broker: &TestBroker, count: usize) -> Vec<Client> {
    (0..count).map(|i| broker.connected(&format!("publisher-{i}"), Version::V5)).collect()
}

/// Everything that comes to each member, acknowledged, while `work` goes on and until so much came.
fn collect(
    members: &mut [Client],
    expected: usize,
    work: impl FnOnce() + Send,
) -> Vec<Vec<Received>> {
    let (total, late) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let threads: Vec<_> = members
            .iter_mut()
            .map(|member| {
                let (total, late) = (&total, &late);
                scope.spawn(move || {
                    let mut got = Vec::new();
                    while total.load(Ordering::Relaxed) < expected && !late.load(Ordering::Relaxed)
                    {
                        if member.has_frame_within(Duration::from_millis(20)) {
                            got.push(member.receive_and_ack());
                            total.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    got
                })
            })
            .collect();
        work();
        let deadline = Instant::now() + PATIENCE;
        while total.load(Ordering::Relaxed) < expected && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        late.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Publishes so many messages from everyone to topics below `t/`, many on their way at a time.
fn publish_many(publishers: &mut [Client], each: usize, topics: usize, qos: QoS) {
    publish_in_batches(publishers, each, topics, qos, &|| {});
}

/// The same, with a look at something after each batch of 20.
fn publish_in_batches(
    publishers: &mut [Client],
    each: usize,
    topics: usize,
    qos: QoS,
    look: &(impl Fn() + Sync),
) {
    std::thread::scope(|scope| {
        for (number, publisher) in publishers.iter_mut().enumerate() {
            scope.spawn(move || {
                for start in (0..each).step_by(20) {
                    let batch = start..(start + 20).min(each);
                    for i in batch.clone() {
                        let topic = format!("t/{}", i % topics);
                        let payload = format!("{number}:{i}");
                        publisher.send_publish(&topic, payload.as_bytes(), qos);
                    }
                    match qos {
                        QoS::AtMostOnce => publisher.ping(),
                        _ => batch.for_each(|_| _ = publisher.expect_ack(0x40)),
                    }
                    look();
                }
            });
        }
    });
}

fn text(message: &Received) -> (usize, usize) {
    let text = String::from_utf8(message.payload.clone()).unwrap();
    let (publisher, number) = text.split_once(':').unwrap();
    (publisher.parse().unwrap(), number.parse().unwrap())
}

// 45
#[test]
fn equal_members_get_equal_shares() {
    let fair = ["least_inflight", "round_robin", "random"];
    each_strategy(&fair, |broker, what| {
        for (qos, each) in [(QoS::AtLeastOnce, 1_500), (QoS::AtMostOnce, 1_500)] {
            let mut members = members(broker, 5, qos);
            let mut publishers = publishers(broker, 4);
            let expected = 4 * each;
            // Equal as they are, some may not be given the processor for long.
            let settled = || broker.shared("$share/g/t/#").is_some_and(|s| s.inflight == 0);
            let got = collect(&mut members, expected, || {
                publish_in_batches(&mut publishers, each, 7, qos, &|| wait_until(what, settled));
            });
            let counts: Vec<usize> = got.iter().map(Vec::len).collect();
            println!("{what}, {qos:?}: {counts:?}");
            assert_eq!(counts.iter().sum::<usize>(), expected, "{what}: {counts:?}");
            let (busiest, idlest) = (counts.iter().max().unwrap(), counts.iter().min().unwrap());
            // 1.2 is promised; chance alone makes more of it than that once in many millions.
            assert!(*busiest as f64 <= 1.2 * *idlest as f64, "{what}, {qos:?}: {counts:?}");
            for member in &mut members {
                member.unsubscribe("$share/g/t/#");
            }
        }
    });
}

// 45
#[test]
fn every_message_goes_to_one_member_in_its_publishers_order() {
    each_strategy(&SharedStrategy::ALL.map(SharedStrategy::name), |broker, what| {
        let mut members = members(broker, 4, QoS::AtLeastOnce);
        let mut publishers = publishers(broker, 3);
        let got = collect(&mut members, 900, || {
            publish_many(&mut publishers, 300, 5, QoS::AtLeastOnce);
        });
        let mut all = BTreeSet::new();
        for messages in &got {
            let mut last = HashMap::new();
            for message in messages {
                let (publisher, number) = text(message);
                assert!(all.insert((publisher, number)), "{what}: twice {publisher}:{number}");
                let before = last.insert((publisher, message.topic.clone()), number);
                assert!(before < Some(number), "{what}: {before:?} before {number}");
            }
        }
        assert_eq!(all.len(), 900, "{what}");
    });
}

// 45
#[test]
fn hashes_choose_the_same_member_whichever_shard_publishes() {
    each_strategy(&["hash_topic", "hash_client_id"], |broker, what| {
        let mut members = members(broker, 4, QoS::AtLeastOnce);
        // Publishers on all shards, and again after every client has reconnected.
        let mut owners = HashMap::new();
        for _ in 0..2 {
            let mut publishers = publishers(broker, 24);
            let got = collect(&mut members, 24 * 60, || {
                publish_many(&mut publishers, 60, 30, QoS::AtLeastOnce);
            });
            assert!(got.iter().all(|messages| !messages.is_empty()), "{what}: all take part");
            for (member, messages) in got.iter().enumerate() {
                for message in messages {
                    let key = if what.starts_with("hash_topic") {
                        message.topic.clone()
                    } else {
                        text(message).0.to_string()
                    };
                    let owner = *owners.entry(key.clone()).or_insert(member);
                    assert_eq!(owner, member, "{what}: {key}");
                }
            }
        }
    });
}

// 45
#[test]
fn sticky_keeps_a_publishers_member_until_it_leaves() {
    each_strategy(&["sticky"], |broker, what| {
        let mut members = members(broker, 3, QoS::AtLeastOnce);
        let mut publishers = publishers(broker, 9);
        let mut member_of: HashMap<usize, usize> = HashMap::new();
        let mut round = |members: &mut [Client], left: Option<usize>| {
            let got = collect(members, 90, || {
                publish_many(&mut publishers, 10, 3, QoS::AtLeastOnce);
            });
            let mut now: HashMap<usize, BTreeSet<usize>> = HashMap::new();
            for (member, messages) in got.iter().enumerate() {
                for message in messages {
                    now.entry(text(message).0).or_default().insert(member);
                }
            }
            for (publisher, by) in now {
                assert_eq!(by.len(), 1, "{what}: {publisher} had {by:?}");
                let member = *by.first().unwrap();
                let before = member_of.insert(publisher, member);
                let kept = before.is_none_or(|before| before == member || Some(before) == left);
                assert!(kept, "{what}: {publisher} went from {before:?} to {member}");
            }
            member_of.values().copied().collect::<BTreeSet<usize>>()
        };
        let used = round(&mut members, None);
        assert!(used.len() > 1, "{what}: {used:?}");
        // A new member gets no messages of publishers that are already bound.
        let mut late = member(broker, "late", 100);
        late.subscribe("$share/g/t/#", QoS::AtLeastOnce);
        members.push(late);
        assert_eq!(round(&mut members, None), used, "{what}");
        let leaving = *used.first().unwrap();
        members[leaving].unsubscribe("$share/g/t/#");
        let after = round(&mut members, Some(leaving));
        assert!(!after.contains(&leaving), "{what}: {after:?}");
    });
}

// 31, 45
#[test]
fn a_full_member_gets_nothing_while_others_have_room() {
    each_strategy(&["least_inflight", "round_robin", "random"], |broker, what| {
        let names = ["full-1", "full-2"];
        let mut full: Vec<Client> = names.iter().map(|name| member(broker, name, 3)).collect();
        let mut open = member(broker, "open", 1_000);
        for client in full.iter_mut().chain([&mut open]) {
            client.subscribe("$share/g/t/#", QoS::AtLeastOnce);
        }
        let mut publishers = publishers(broker, 2);
        publish_many(&mut publishers, 100, 3, QoS::AtLeastOnce);
        // No member acknowledges; still every message is with a member.
        for client in &mut full {
            (0..3).for_each(|_| drop(client.receive()));
        }
        (0..194).for_each(|_| drop(open.receive()));
        wait_until(what, || broker.shared("$share/g/t/#").unwrap().inflight == 200);
        let shared = broker.shared("$share/g/t/#").unwrap();
        assert_eq!((shared.connected, shared.waiting, shared.free_credit), (3, 0, 806), "{what}");
    });
}

// 31, 45
#[test]
fn with_all_members_full_messages_are_queued_bounded_and_in_order() {
    for strategy in ["least_inflight", "round_robin", "random"] {
        for shards in [1, 2] {
            let what = &format!("{strategy}, {shards} shards");
            let broker = with_strategy(
                strategy,
                shards,
                "shared_queue_len_max = 20\nshared_queue_full = 'drop_newest'",
            );
            let mut members: Vec<Client> =
                (0..2).map(|i| member(&broker, &format!("member-{i}"), 2)).collect();
            for client in &mut members {
                client.subscribe("$share/g/t/#", QoS::AtLeastOnce);
            }
            let mut publisher = broker.connected("publisher", Version::V5);
            for i in 0..30_u8 {
                publisher.publish("t/x", &[i], QoS::AtLeastOnce, false);
            }
            // Four are with the members, twenty wait, six had no room.
            let dropped = || broker.counter("dropped_shared_queue_full_total");
            wait_until(what, || (broker.counter("shared_waiting"), dropped()) == (20, 6));
            assert_eq!(broker.shared("$share/g/t/#").unwrap().waiting, 20, "{what}");
            assert!(broker.counter("shared_waiting_bytes") >= 20 * 4);
            let got = collect(&mut members, 24, || {});
            let mut all = BTreeSet::new();
            for messages in got {
                let numbers: Vec<u8> = messages.iter().map(|m| m.payload[0]).collect();
                assert!(numbers.is_sorted(), "{what}: {numbers:?}");
                all.extend(numbers);
            }
            assert_eq!(all, (0..24).collect(), "{what}");
            wait_until(what, || broker.shared("$share/g/t/#").unwrap().free_credit == 4);
            let idle = broker.shared("$share/g/t/#").unwrap();
            assert_eq!((idle.waiting, idle.inflight), (0, 0), "{what}");
            assert_eq!(broker.counter("shared_waiting"), 0);
            assert_eq!(broker.counter("shared_waiting_bytes"), 0);
        }
    }
}

// 38, 45
#[test]
fn waiting_messages_expire() {
    let broker = with_strategy(
        "least_inflight",
        2,
        "shared_queue_len_max = 2\nshared_queue_full = 'drop_newest'",
    );
    let mut client = member(&broker, "member", 10);
    client.subscribe("$share/g/t", QoS::AtLeastOnce);
    client.disconnect();
    let mut publisher = broker.connected("publisher", Version::V5);
    for (payload, message_expiry_s) in [(b"1", Some(1)), (b"2", Some(1)), (b"3", None)] {
        let properties = tacho_codec::PublishProperties { message_expiry_s, ..Default::default() };
        let (topic, qos) = ("t", QoS::AtLeastOnce);
        let packet_id = tacho_codec::PacketId::new(1);
        let publish = Publish { topic, qos, packet_id, payload, properties, ..Publish::default() };
        if payload == b"3" {
            // The two before it have filled the queue. Past their expiry interval they make room,
            // when it is needed.
            std::thread::sleep(Duration::from_millis(1_100));
        }
        publisher.publish_packet(&publish);
    }
    let mut client = member(&broker, "member", 10);
    assert_eq!(client.receive_and_ack().payload, b"3");
    client.ping();
    assert_eq!(broker.counter("dropped_expired_total"), 2);
}

// 45
#[test]
fn unsent_messages_of_a_lost_member_go_to_other_members_at_once() {
    // These bind messages to a member, so they wait in its session.
    each_strategy(&["hash_topic", "hash_client_id", "sticky"], |broker, what| {
        let mut first = member(broker, "first", 2);
        first.subscribe("$share/g/t/#", QoS::AtLeastOnce);
        let mut publisher = broker.connected("publisher", Version::V5);
        for i in 0..10_u8 {
            publisher.publish("t/x", &[i], QoS::AtLeastOnce, false);
        }
        let sent = [first.receive(), first.receive()];
        let mut second = member(broker, "second", 100);
        second.subscribe("$share/g/t/#", QoS::AtLeastOnce);
        second.expect_nothing();
        drop(first);
        let got: Vec<u8> = (0..8).map(|_| second.receive_and_ack().payload[0]).collect();
        assert_eq!(got, (2..10).collect::<Vec<u8>>(), "{what}");
        assert_eq!(broker.counter("shared_redelivered_total"), 8, "{what}");
        // What was sent is the first one's own until its session ends.
        second.expect_nothing();
        let mut first = member(broker, "first", 100);
        for message in sent {
            let again = first.receive_and_ack();
            assert_eq!((again.payload, again.dup), (message.payload, true), "{what}");
        }
        first.ping();
    });
}

// 45
// [MQTT-4.8.2-6]
#[test]
fn message_refused_by_a_member_goes_to_no_other_member() {
    each_strategy(&SharedStrategy::ALL.map(SharedStrategy::name), |broker, what| {
        let mut members = members(broker, 2, QoS::ExactlyOnce);
        let mut publisher = broker.connected("publisher", Version::V5);
        for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
            publisher.publish("t/x", b"x", qos, false);
            let got = members.iter_mut().position(|m| m.has_frame_within(PATIENCE / 600));
            let got = got.or_else(|| members.iter_mut().position(|m| m.has_frame_within(PATIENCE)));
            let at = got.expect(what);
            let mut taker = members.remove(at);
            let id = taker.receive().packet_id.unwrap();
            let refusal = Ack::new(id, ReasonCode::QUOTA_EXCEEDED);
            taker.send(&match qos {
                QoS::AtLeastOnce => Packet::PubAck(refusal),
                _ => Packet::PubRec(refusal),
            });
            taker.disconnect();
            members.insert(at, member(broker, &format!("member-{at}"), 100));
            members.iter_mut().for_each(Client::expect_nothing);
        }
    });
}

// 45
#[test]
fn counters_of_room_come_back_to_what_they_were() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    each_strategy(&SharedStrategy::ALL.map(SharedStrategy::name), |broker, what| {
        let mut random = fastrand::Rng::with_seed(seed);
        let filters = ["$share/g/t/#", "$share/h/t/+"];
        let mut publishers = publishers(broker, 2);
        let name = |i: usize| format!("member-{i}");
        let mut clients: Vec<Option<Client>> = (0..5).map(|_| None).collect();
        for _ in 0..250 {
            let at = random.usize(0..clients.len());
            match (random.u8(0..10), &mut clients[at]) {
                (_, slot @ None) => {
                    let mut client = member(broker, &name(at), random.u16(1..6));
                    client.send_subscribe(filters[random.usize(0..2)], QoS::AtLeastOnce);
                    *slot = Some(client);
                }
                (0, Some(client)) => client.send_subscribe(filters[0], QoS::AtMostOnce),
                (1, Some(client)) => client.send_subscribe(filters[1], QoS::ExactlyOnce),
                (2, Some(client)) => client.send_unsubscribe(filters[random.usize(0..2)]),
                (3, slot) => *slot = None,
                (4, Some(client)) => client.acknowledge_what_came(),
                _ => {
                    let publisher = &mut publishers[random.usize(0..2)];
                    let qos = [QoS::AtMostOnce, QoS::AtLeastOnce][random.usize(0..2)];
                    for i in 0..random.usize(1..8) {
                        publisher.publish(&format!("t/{i}"), b"x", qos, false);
                    }
                }
            }
        }
        // Every member reads and acknowledges to the end: the whole window is free again.
        for (i, client) in clients.iter_mut().enumerate() {
            *client = None;
            let mut again = member(broker, &name(i), 50);
            for filter in filters {
                again.send_subscribe(filter, QoS::AtLeastOnce);
            }
            *client = Some(again);
        }
        wait_until(&format!("{what}, seed {seed}"), || {
            clients.iter_mut().flatten().for_each(Client::acknowledge_what_came);
            filters.iter().all(|filter| {
                broker.shared(filter).is_some_and(|s| {
                    (s.connected, s.free_credit, s.inflight, s.waiting) == (5, 250, 0, 0)
                })
            })
        });
        // Without connected members nothing is left.
        clients.clear();
        wait_until(&format!("{what}, seed {seed}"), || {
            filters.iter().all(|filter| {
                let shared = broker.shared(filter).unwrap();
                (shared.connected, shared.free_credit, shared.inflight) == (0, 0, 0)
            })
        });
    });
}
