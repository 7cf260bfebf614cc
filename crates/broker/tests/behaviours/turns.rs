//! What one turn of a shard does is bounded, whatever was asked of it: on simulated loops, where
//! turns can be counted.

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{
    Connect, Direction, Packet, PacketId, Publish, QoS, ReasonCode, Subscribe, SubscribeFilter,
    SubscribeOptions, Version, split_frame,
};
use tacho_net::sim::{Faults, Peer};

use tacho_testkit::{connect, will};

pub(crate) const VERSION: Version = Version::V311;

/// A turn of a millisecond, what newcomers have beside it, and what its parts overrun their shares
/// by, 32 units each, when a unit takes a microsecond on average.
pub(crate) const LONGEST_TURN_NS: u64 = 4_000_000;

pub(crate) fn cluster(toml: &str) -> Cluster {
    cluster_with(toml, Faults::default())
}

/// The same where work takes time, so that turns are cut.
pub(crate) fn busy_cluster(toml: &str) -> Cluster {
    cluster_with(toml, Faults { unit_ns_max: 2_000, ..Faults::default() })
}

fn cluster_with(toml: &str, faults: Faults) -> Cluster {
    let raw: RawConfig = toml::from_str(toml).expect("a valid test configuration");
    let config = raw.resolve().expect("consistent");
    Cluster::new(&config, |loop_config| loop_config, 7, faults, 1).expect("starts")
}

pub(crate) fn send(peer: &Peer, packet: &Packet<'_>) {
    let mut bytes = Vec::new();
    packet.encode(VERSION, &mut bytes).unwrap();
    assert!(peer.send(&bytes), "the broker has closed");
    peer.arrive(usize::MAX);
}

/// Turns until no shard has anything to do.
pub(crate) fn settle(cluster: &mut Cluster) {
    for _ in 0..1_000_000 {
        if !cluster.loops().step() {
            return;
        }
    }
    panic!("the loops never come to rest");
}

pub(crate) fn connected(cluster: &mut Cluster, client_id: &str) -> Peer {
    let peer = cluster.connect(0);
    send(&peer, &Packet::Connect(connect(client_id, VERSION)));
    settle(cluster);
    let answer = peer.receive(usize::MAX);
    assert_eq!(answer, [0x20, 2, 0, 0], "CONNACK");
    peer
}

fn subscribe(peer: &Peer, filter: &str) {
    subscribe_at(peer, filter, QoS::AtMostOnce);
}

pub(crate) fn subscribe_at(peer: &Peer, filter: &str, qos: QoS) {
    let options = SubscribeOptions { qos, ..SubscribeOptions::default() };
    send(
        peer,
        &Packet::Subscribe(Subscribe {
            packet_id: PacketId::new(1).unwrap(),
            subscription_id: None,
            filters: vec![SubscribeFilter { filter, options }],
            user_properties: Default::default(),
        }),
    );
}

/// What a client has seen that pings in every turn.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) turns: usize,
    /// Writes with answers.
    writes: usize,
    /// The most turns between two of them.
    pub(crate) wait: usize,
}

/// Takes turns until the shard has nothing to do, while `other` pings in each.
pub(crate) fn turns_beside(cluster: &mut Cluster, other: &Peer) -> Beside {
    let (mut seen, mut waits) = (Beside::default(), 0);
    loop {
        send(other, &Packet::PingReq);
        cluster.loops().turn(0);
        seen.turns += 1;
        assert!(seen.turns < 100_000);
        let now_ns = cluster.now_ns();
        let is_over = cluster.loops().next_deadline_ns().is_none_or(|at_ns| at_ns > now_ns);
        waits += 1;
        seen.wait = seen.wait.max(waits);
        if !other.receive(usize::MAX).is_empty() {
            seen.writes += 1;
            waits = 0;
        }
        if is_over {
            return seen;
        }
    }
}

/// How many messages are in what a peer received.
fn publishes(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some(frame) = split_frame(bytes, u32::MAX).unwrap() {
        let packet = Packet::decode(&frame, VERSION, Direction::ToClient).unwrap();
        count += usize::from(matches!(packet, Packet::Publish(p) if p.retain));
        bytes = &bytes[frame.total_len..];
    }
    assert!(bytes.is_empty(), "whole packets only");
    count
}

// 37, 58
#[test]
fn replays_of_many_sessions_share_a_turn_budget_and_delay_no_other_client() {
    const TOPICS: usize = 2_000;
    const STEPS: usize = 50;
    const SESSIONS: usize = 8;
    for filter in ["#", "+/+"] {
        let mut cluster =
            cluster(&format!("shards = 1\n[limits]\nretained_steps_per_turn_max = {STEPS}"));
        let publisher = connected(&mut cluster, "publisher");
        for i in 0..TOPICS {
            let (topic, payload) = (format!("t/{i}"), b"x");
            let publish = Publish { topic: &topic, payload, retain: true, ..Publish::default() };
            send(&publisher, &Packet::Publish(publish));
            cluster.loops().turn(0);
        }
        settle(&mut cluster);
        assert_eq!(cluster.counter("retained"), TOPICS as u64);
        let other = connected(&mut cluster, "other");
        let subscribers: Vec<Peer> =
            (0..SESSIONS).map(|i| connected(&mut cluster, &format!("subscriber-{i}"))).collect();
        subscribers.iter().for_each(|peer| subscribe(peer, filter));
        let (mut got, mut turns) = (0, 0);
        while got < SESSIONS * TOPICS {
            assert!(turns < 100_000, "{filter}: {got} after {turns} turns");
            turns += 1;
            send(&other, &Packet::PingReq);
            cluster.loops().turn(0);
            assert_eq!(other.receive(usize::MAX), [0xd0, 0], "answered in the same turn");
            let in_turn: usize =
                subscribers.iter().map(|peer| publishes(&peer.receive(usize::MAX))).sum();
            assert!(in_turn <= STEPS, "{filter}: {in_turn} in one turn");
            got += in_turn;
        }
        println!("{filter}: {turns} turns");
        assert!(turns >= SESSIONS * TOPICS / STEPS);
        settle(&mut cluster);
        assert!(subscribers.iter().all(|peer| peer.waiting() == 0), "{filter}: nothing twice");
    }
}

// 37
#[test]
fn looking_at_topics_that_do_not_match_is_bounded_too() {
    const TOPICS: usize = 2_000;
    let mut cluster = cluster("shards = 1\n[limits]\nretained_steps_per_turn_max = 20");
    let publisher = connected(&mut cluster, "publisher");
    for i in 0..TOPICS {
        let topic = format!("t/{i}");
        let last = if i == 1_500 { format!("{topic}/found") } else { topic };
        let publish = Publish { topic: &last, payload: b"x", retain: true, ..Publish::default() };
        send(&publisher, &Packet::Publish(publish));
        cluster.loops().turn(0);
    }
    let subscriber = connected(&mut cluster, "subscriber");
    subscribe(&subscriber, "+/+/found");
    let (mut turns, mut found) = (0, 0);
    while found == 0 {
        assert!(turns < 10_000);
        turns += 1;
        cluster.loops().turn(0);
        found = publishes(&subscriber.receive(usize::MAX));
    }
    assert!(turns > 25, "found in turn {turns} of 100");
}

// 45
#[test]
fn a_group_with_thousands_of_members_serves_each_once_per_round() {
    const MEMBERS: usize = 1_500;
    let mut cluster = cluster("shards = 1");
    let members: Vec<Peer> =
        (0..MEMBERS).map(|i| connected(&mut cluster, &format!("member-{i}"))).collect();
    members.iter().for_each(|peer| subscribe(peer, "$share/g/t"));
    settle(&mut cluster);
    members.iter().for_each(|peer| drop(peer.receive(usize::MAX)));
    let publisher = connected(&mut cluster, "publisher");
    for _ in 0..2 * MEMBERS {
        let (topic, qos) = ("t", QoS::AtMostOnce);
        let publish = Publish { topic, qos, payload: b"x", ..Publish::default() };
        send(&publisher, &Packet::Publish(publish));
    }
    settle(&mut cluster);
    let len = 2 + 2 + 1 + 1;
    assert!(members.iter().all(|peer| peer.receive(usize::MAX).len() == 2 * len));
}

/// A PUBLISH at QoS 1.
fn publish(peer: &Peer, topic: &str, packet_id: u16) {
    let packet_id = PacketId::new(packet_id);
    let qos = QoS::AtLeastOnce;
    send(peer, &Packet::Publish(Publish { topic, qos, packet_id, ..Default::default() }));
}

/// How many turns it takes until `peer` gets something.
fn turns_until_served(cluster: &mut Cluster, peer: &Peer) -> usize {
    for turns in 1..10_000 {
        cluster.loops().step();
        if !peer.receive(usize::MAX).is_empty() {
            return turns;
        }
    }
    panic!("nothing comes");
}

// 30
// [MQTT-4.6.0-2] [MQTT-4.6.0-6]
#[test]
fn a_small_message_passes_a_long_fan_out_unless_topic_or_publisher_are_the_same() {
    const RECEIVERS: usize = 400;
    let mut cluster = cluster("shards = 1\n[limits]\ndeliveries_per_turn_max = 2");
    let receivers: Vec<Peer> =
        (0..RECEIVERS).map(|i| connected(&mut cluster, &format!("r{i}"))).collect();
    receivers.iter().for_each(|peer| subscribe(peer, "all"));
    let single = connected(&mut cluster, "single");
    subscribe(&single, "one");
    let [first, second, third] = ["first", "second", "third"].map(|id| connected(&mut cluster, id));
    settle(&mut cluster);
    for peer in receivers.iter().chain([&single]) {
        assert_eq!(peer.receive(usize::MAX)[0], 0x90, "SUBACK");
    }
    let last = receivers.last().unwrap();

    publish(&first, "all", 1);
    cluster.loops().step();
    publish(&first, "two", 2); // Its publisher is owed an acknowledgement for the one before.
    publish(&second, "all", 1); // Its topic is under way.
    publish(&third, "one", 1); // Nothing holds it back.
    let turns = turns_until_served(&mut cluster, &single);
    assert!(turns < RECEIVERS / 4, "passes the fan-out: {turns} turns");
    assert!(last.receive(usize::MAX).is_empty(), "the fan-out is still under way");
    assert_eq!(third.receive(usize::MAX), [0x40, 2, 0, 1]);
    assert!(first.receive(usize::MAX).is_empty());
    settle(&mut cluster);
    assert_eq!(first.receive(usize::MAX), [0x40, 2, 0, 1, 0x40, 2, 0, 2], "in order");
    assert_eq!(second.receive(usize::MAX), [0x40, 2, 0, 1]);
    let both = [0x30, 5, 0, 3, b'a', b'l', b'l'].repeat(2);
    assert_eq!(last.receive(usize::MAX), both);
}

// [MQTT-3.1.2-22]
#[test]
fn clients_whose_pings_lie_in_their_sockets_survive_a_pause_of_the_process() {
    const CLIENTS: usize = 200;
    const PAUSE_NS: u64 = 60_000_000_000;
    for mut cluster in [cluster("shards = 1"), busy_cluster("shards = 1")] {
        let clients: Vec<Peer> = (0..CLIENTS)
            .map(|i| {
                let peer = cluster.connect(0);
                let id = format!("c{i}");
                let keep_alive_s = if i == 0 { 0 } else { 10 };
                send(&peer, &Packet::Connect(Connect { keep_alive_s, ..connect(&id, VERSION) }));
                settle(&mut cluster);
                assert_eq!(peer.receive(usize::MAX), [0x20, 2, 0, 0], "CONNACK");
                peer
            })
            .collect();
        // The process is stopped; all but the last speak in time.
        let (silent, living) = clients.split_last().unwrap();
        living.iter().for_each(|peer| send(peer, &Packet::PingReq));
        cluster.loops().advance(PAUSE_NS);
        settle(&mut cluster);
        assert!(living.iter().all(|peer| peer.receive(usize::MAX) == [0xd0, 0]));
        assert!(silent.receive(usize::MAX).is_empty() && silent.is_closing());
        assert_eq!(cluster.counter("sessions_connected"), CLIENTS as u64 - 1);
        // The next time is as ever.
        cluster.loops().advance(10_000_000_000);
        settle(&mut cluster);
        assert_eq!(cluster.counter("sessions_connected"), CLIENTS as u64 - 1);
        cluster.loops().advance(5_100_000_000);
        settle(&mut cluster);
        assert_eq!(cluster.counter("sessions_connected"), 1);
    }
}

#[test]
fn clients_with_wills_that_vanish_at_once_take_many_short_turns() {
    const CLIENTS: usize = 2_000;
    let mut cluster = busy_cluster("shards = 1");
    let other = connected(&mut cluster, "other");
    let heir = connected(&mut cluster, "heir");
    subscribe(&heir, "will/+");
    let clients: Vec<Peer> = (0..CLIENTS)
        .map(|i| {
            let peer = cluster.connect(0);
            let (id, topic) = (format!("c{i}"), format!("will/{i}"));
            let will = Some(will(&topic, b"gone"));
            send(&peer, &Packet::Connect(Connect { will, ..connect(&id, VERSION) }));
            settle(&mut cluster);
            peer
        })
        .collect();
    heir.receive(usize::MAX);
    drop(clients);
    let Beside { turns, wait, .. } = turns_beside(&mut cluster, &other);
    assert!(turns > 10, "{turns} turns");
    // Behind the sockets that ended before it spoke.
    assert!(wait < 30, "{wait} turns");
    assert_eq!(cluster.counter("sessions"), 2);
    let mut wills = heir.receive(usize::MAX);
    let mut count = 0;
    while let Some(frame) = split_frame(&wills, u32::MAX).unwrap() {
        count += 1;
        wills.drain(..frame.total_len);
    }
    assert_eq!(count, CLIENTS);
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}

#[test]
fn sessions_that_expire_at_once_take_many_short_turns() {
    const CLIENTS: usize = 2_000;
    let mut cluster = busy_cluster("shards = 1\n[limits]\nsession_expiry_max_s = 60");
    let other = connected(&mut cluster, "other");
    for i in 0..CLIENTS {
        let (id, peer) = (format!("c{i}"), cluster.connect(0));
        let lasting = Connect { clean_start: false, ..connect(&id, VERSION) };
        send(&peer, &Packet::Connect(lasting));
        settle(&mut cluster);
        subscribe(&peer, "some/topic");
        settle(&mut cluster);
    }
    settle(&mut cluster);
    assert_eq!(cluster.counter("sessions"), CLIENTS as u64 + 1);
    cluster.loops().advance(61_000_000_000);
    let Beside { turns, wait, .. } = turns_beside(&mut cluster, &other);
    assert!(turns > 5, "{turns} turns");
    assert!(wait <= 2, "{wait} turns");
    assert_eq!(cluster.counter("sessions"), 1);
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}

#[test]
fn a_shard_that_stops_tells_all_its_clients_however_many_turns_that_takes() {
    const CLIENTS: usize = 1_000;
    let mut cluster = busy_cluster("shards = 1");
    let clients: Vec<Peer> =
        (0..CLIENTS).map(|i| connected(&mut cluster, &format!("c{i}"))).collect();
    let turns_before = cluster.counter("turns_total");
    cluster.stop();
    while cluster.runs(0) {
        assert!(cluster.loops().step(), "it ends without waiting for its deadline");
        clients.iter().filter(|peer| peer.is_closing()).for_each(Peer::finish);
        clients.iter().for_each(|peer| peer.arrive(usize::MAX));
    }
    assert!(clients.iter().all(Peer::is_closing));
    let turns = cluster.counter("turns_total") - turns_before;
    assert!(turns > 5, "{turns} turns");
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}

#[test]
fn one_read_with_thousands_of_packets_takes_several_turns_in_order() {
    const MESSAGES: usize = 3_000;
    let mut cluster = busy_cluster("shards = 1");
    let other = connected(&mut cluster, "other");
    let [publisher, subscriber] = ["publisher", "subscriber"].map(|id| connected(&mut cluster, id));
    subscribe(&subscriber, "t");
    settle(&mut cluster);
    subscriber.receive(usize::MAX);
    let mut bytes = Vec::new();
    for i in 0..MESSAGES {
        let payload = (i as u32).to_be_bytes();
        let publish = Publish { topic: "t", payload: &payload, ..Publish::default() };
        Packet::Publish(publish).encode(VERSION, &mut bytes).unwrap();
    }
    assert!(publisher.send(&bytes));
    publisher.arrive(usize::MAX);
    let Beside { turns, wait, .. } = turns_beside(&mut cluster, &other);
    assert!(turns > 3 && wait <= 2, "{turns} turns, {wait} between answers");
    assert_eq!(subscriber.receive(usize::MAX), bytes, "each once and in order");
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}

#[test]
fn the_longer_the_backlog_of_fan_outs_the_more_messages_leave_with_one_write() {
    const RECEIVERS: usize = 1_000;
    let writes_per_delivery = |messages: usize| {
        let mut cluster = busy_cluster("shards = 1");
        let receivers: Vec<Peer> =
            (0..RECEIVERS).map(|i| connected(&mut cluster, &format!("r{i}"))).collect();
        receivers.iter().for_each(|peer| subscribe_at(peer, "all", QoS::AtLeastOnce));
        let other = connected(&mut cluster, "other");
        let publisher = connected(&mut cluster, "publisher");
        settle(&mut cluster);
        receivers.iter().for_each(|peer| drop(peer.receive(usize::MAX)));
        for packet_id in 1..=messages as u16 {
            publish(&publisher, "all", packet_id);
        }
        let before = cluster.counter("writes_total");
        let beside = turns_beside(&mut cluster, &other);
        assert!(beside.wait <= 2, "{} turns between answers", beside.wait);
        let writes = cluster.counter("writes_total") - before - beside.writes as u64;
        assert_eq!(publisher.receive(usize::MAX).len(), 4 * messages, "all acknowledged");
        let mut expected = None;
        for receiver in &receivers {
            let got = receiver.receive(usize::MAX);
            assert_eq!(got.len(), (2 + 2 + 3 + 2) * messages);
            assert!(expected.get_or_insert_with(|| got.clone()) == &got, "in the same order");
        }
        let longest_ns = cluster.counter("turn_ns_max");
        assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
        writes as f64 / (RECEIVERS * messages) as f64
    };
    let [one, four, sixteen] = [1, 4, 16].map(writes_per_delivery);
    assert!((0.9..1.1).contains(&one), "{one}");
    assert!(four < 0.7 * one && sixteen < 0.7 * four, "{one}, {four}, {sixteen}");
}

/// A search through all sessions is made of pieces that other clients do not notice.
#[test]
fn a_search_through_many_sessions_leaves_turns_short() {
    const SESSIONS: usize = 20_000;
    let mut cluster = busy_cluster("shards = 1");
    for i in 0..SESSIONS {
        let peer = cluster.connect(0);
        let client_id = format!("{}-{i}", if i % 1_000 == 0 { "rare" } else { "c" });
        let mut away = connect(&client_id, VERSION);
        away.clean_start = false;
        send(&peer, &Packet::Connect(away));
        // Each has a session, and few have a connection.
        send(&peer, &Packet::Disconnect(tacho_codec::Disconnect::new(ReasonCode::SUCCESS)));
        settle(&mut cluster);
    }
    assert_eq!(cluster.counter("sessions"), SESSIONS as u64);
    let other = connected(&mut cluster, "other");
    let (mut found, mut from, mut pieces) = (Vec::new(), Some(0), 0);
    while let Some(place) = from {
        let mut search = cluster.search(0, place, "rare-");
        let (mut answer, mut turns) = (None, 0);
        while answer.is_none() {
            send(&other, &Packet::PingReq);
            cluster.loops().turn(0);
            turns += 1;
            assert!(turns < 10, "it answers in one of its next turns");
            answer = search.take();
        }
        let (names, next) = answer.expect("is there");
        found.extend(names);
        (from, pieces) = (next, pieces + 1);
    }
    assert_eq!(found.len(), SESSIONS / 1_000);
    assert!(pieces >= SESSIONS / 1_024, "{pieces}");
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}
