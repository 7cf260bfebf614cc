//! What one turn of a shard does is bounded, whatever was asked of it: on simulated loops, where
//! turns can be counted.

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{
    Direction, Packet, PacketId, Publish, QoS, Subscribe, SubscribeFilter, SubscribeOptions,
    Version, split_frame,
};
use tacho_net::sim::{Faults, Peer};

use tacho_testkit::connect;

const VERSION: Version = Version::V311;

fn cluster(toml: &str) -> Cluster {
    let raw: RawConfig = toml::from_str(toml).expect("a valid test configuration");
    let config = raw.resolve().expect("consistent");
    Cluster::new(&config, |loop_config| loop_config, 7, Faults::default(), 1).expect("starts")
}

fn send(peer: &Peer, packet: &Packet<'_>) {
    let mut bytes = Vec::new();
    packet.encode(VERSION, &mut bytes).unwrap();
    assert!(peer.send(&bytes), "the broker has closed");
    peer.arrive(usize::MAX);
}

/// Turns until no shard has anything to do.
fn settle(cluster: &mut Cluster) {
    for _ in 0..1_000_000 {
        if !cluster.loops().step() {
            return;
        }
    }
    panic!("the loops never come to rest");
}

fn connected(cluster: &mut Cluster, client_id: &str) -> Peer {
    let peer = cluster.connect(0);
    send(&peer, &Packet::Connect(connect(client_id, VERSION)));
    settle(cluster);
    let answer = peer.receive(usize::MAX);
    assert_eq!(answer, [0x20, 2, 0, 0], "CONNACK");
    peer
}

fn subscribe(peer: &Peer, filter: &str) {
    send(
        peer,
        &Packet::Subscribe(Subscribe {
            packet_id: PacketId::new(1).unwrap(),
            subscription_id: None,
            filters: vec![SubscribeFilter { filter, options: SubscribeOptions::default() }],
            user_properties: Default::default(),
        }),
    );
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
