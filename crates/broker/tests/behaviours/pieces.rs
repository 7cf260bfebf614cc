//! Shared groups and long queues are worked off in pieces: on simulated loops, where turns can be
//! counted.

use std::ops::RangeInclusive;

use tacho_codec::{Connect, Direction, Packet, PacketId, Publish, QoS, split_frame};
use tacho_net::sim::Peer;
use tacho_testkit::connect;

use super::turns::{
    Beside, LONGEST_TURN_NS, VERSION, busy_cluster, connected, send, settle, subscribe_at,
    turns_beside,
};

/// Messages at QoS 1, numbered, in one write.
fn publish_numbered(peer: &Peer, topic: &str, numbers: RangeInclusive<u16>) {
    let mut bytes = Vec::new();
    for number in numbers {
        let (payload, packet_id) = (number.to_be_bytes(), PacketId::new(number));
        let qos = QoS::AtLeastOnce;
        let publish = Publish { topic, qos, packet_id, payload: &payload, ..Publish::default() };
        Packet::Publish(publish).encode(VERSION, &mut bytes).unwrap();
    }
    assert!(peer.send(&bytes));
    peer.arrive(usize::MAX);
}

/// The numbers of the messages that a peer received.
fn numbers(peer: &Peer) -> Vec<u16> {
    let bytes = peer.receive(usize::MAX);
    let (mut rest, mut numbers) = (&bytes[..], Vec::new());
    while let Some(frame) = split_frame(rest, u32::MAX).unwrap() {
        if let Packet::Publish(publish) =
            Packet::decode(&frame, VERSION, Direction::ToClient).unwrap()
        {
            numbers.push(u16::from_be_bytes(publish.payload.try_into().unwrap()));
        }
        rest = &rest[frame.total_len..];
    }
    assert!(rest.is_empty(), "whole packets only");
    numbers
}

#[test]
fn a_message_for_thousands_of_groups_reaches_each_once_in_many_short_turns() {
    const GROUPS: usize = 4_000;
    let toml = "shards = 1\n[limits]\nsubscriptions_per_session_max = 10000";
    let mut cluster = busy_cluster(toml);
    let cluster = &mut cluster;
    let [other, publisher, member] =
        ["other", "publisher", "member"].map(|id| connected(cluster, id));
    for number in 0..GROUPS {
        subscribe_at(&member, &format!("$share/g{number}/t"), QoS::AtMostOnce);
        settle(cluster);
    }
    subscribe_at(&other, "t", QoS::AtMostOnce);
    settle(cluster);
    for peer in [&member, &other] {
        peer.receive(usize::MAX);
    }
    // The second message is behind the first one in each group.
    publish_numbered(&publisher, "t", 1..=2);
    let Beside { turns, wait, .. } = turns_beside(cluster, &other);
    assert!(turns > 8 && wait <= 2, "{turns} turns, {wait} between answers");
    let got = numbers(&member);
    assert_eq!(got[..GROUPS], [1; GROUPS]);
    assert_eq!(got[GROUPS..], [2; GROUPS]);
    let acknowledged = publisher.receive(usize::MAX);
    assert_eq!(acknowledged, [0x40, 2, 0, 1, 0x40, 2, 0, 2], "once all have it");
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}

#[test]
fn what_a_member_leaves_behind_goes_to_others_in_many_short_turns_and_in_order() {
    const MESSAGES: u16 = 9_000;
    const WINDOW: u16 = 1_024;
    let toml = "shards = 1\nshared_subscription_strategy = 'hash_topic'";
    let mut cluster = busy_cluster(toml);
    let cluster = &mut cluster;
    let [other, publisher, leaver, heir] =
        ["other", "publisher", "leaver", "heir"].map(|id| connected(cluster, id));
    subscribe_at(&leaver, "$share/g/t", QoS::AtLeastOnce);
    settle(cluster);
    publish_numbered(&publisher, "t", 1..=MESSAGES);
    settle(cluster);
    assert_eq!(numbers(&leaver), (1..=WINDOW).collect::<Vec<_>>(), "none is acknowledged");
    subscribe_at(&heir, "$share/g/t", QoS::AtLeastOnce);
    settle(cluster);
    assert!(leaver.send(&[0xe0, 0]));
    leaver.arrive(usize::MAX);
    let Beside { turns, wait, .. } = turns_beside(cluster, &other);
    assert!(turns > 8 && wait <= 2, "{turns} turns, {wait} between answers");
    assert_eq!(cluster.counter("shared_redelivered_total"), u64::from(MESSAGES));
    assert_eq!(numbers(&heir), (1..=WINDOW).collect::<Vec<_>>(), "in order");
    assert_eq!(cluster.counter("waiting"), u64::from(MESSAGES), "the rest waits in its session");
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}

#[test]
fn newer_messages_wait_behind_what_a_member_leaves_behind() {
    const MESSAGES: u16 = 1_000;
    const NEWER: u16 = 10;
    let toml = "shards = 1\nshared_subscription_strategy = 'hash_topic'";
    let mut cluster = busy_cluster(toml);
    let cluster = &mut cluster;
    let [publisher, leaver, heir] =
        ["publisher", "leaver", "heir"].map(|id| connected(cluster, id));
    subscribe_at(&leaver, "$share/g/t", QoS::AtLeastOnce);
    settle(cluster);
    publish_numbered(&publisher, "t", 1..=MESSAGES);
    settle(cluster);
    subscribe_at(&heir, "$share/g/t", QoS::AtLeastOnce);
    settle(cluster);
    assert!(leaver.send(&[0xe0, 0]));
    leaver.arrive(usize::MAX);
    while cluster.counter("shared_redelivered_total") == 0 {
        cluster.loops().turn(0);
    }
    publish_numbered(&publisher, "t", MESSAGES + 1..=MESSAGES + NEWER);
    settle(cluster);
    assert_eq!(numbers(&heir), (1..=MESSAGES + NEWER).collect::<Vec<_>>());
}

#[test]
fn a_long_queue_leaves_in_many_short_turns_and_in_order() {
    const MESSAGES: u16 = 9_000;
    let toml = "shards = 1\n[limits]\nqueue_qos0_offline = true";
    let mut cluster = busy_cluster(toml);
    let cluster = &mut cluster;
    let [other, publisher] = ["other", "publisher"].map(|id| connected(cluster, id));
    let lasting = || Connect { clean_start: false, ..connect("absent", VERSION) };
    let absent = cluster.connect(0);
    send(&absent, &Packet::Connect(lasting()));
    settle(cluster);
    subscribe_at(&absent, "t", QoS::AtMostOnce);
    settle(cluster);
    drop(absent);
    settle(cluster);
    publish_numbered(&publisher, "t", 1..=MESSAGES);
    settle(cluster);
    assert_eq!(cluster.counter("waiting"), u64::from(MESSAGES));
    let back = cluster.connect(0);
    send(&back, &Packet::Connect(lasting()));
    let Beside { turns, wait, .. } = turns_beside(cluster, &other);
    assert!(turns > 8 && wait <= 2, "{turns} turns, {wait} between answers");
    assert_eq!(numbers(&back), (1..=MESSAGES).collect::<Vec<_>>());
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}
