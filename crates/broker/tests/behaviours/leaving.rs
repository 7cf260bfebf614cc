//! Clients with many subscriptions leave at once: on simulated loops, where turns can be counted.

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{
    Packet, PacketId, Publish, QoS, Subscribe, SubscribeFilter, SubscribeOptions, split_frame,
};
use tacho_net::LoopConfig;
use tacho_net::sim::{Faults, Peer};
use tacho_testkit::connect;

use super::turns::{VERSION, cluster, connected, send, settle};

const LEAVERS: usize = 200;
const FILTERS: usize = 100;
const REMOVALS: u64 = 100;

/// SUBSCRIBE with all filters at once; nothing happens yet.
fn subscribe_all<'a>(peer: &Peer, filters: impl IntoIterator<Item = &'a String>) {
    let options = SubscribeOptions { qos: QoS::AtLeastOnce, ..SubscribeOptions::default() };
    let filters = filters.into_iter().map(|filter| SubscribeFilter { filter, options }).collect();
    let packet_id = PacketId::FIRST;
    let user_properties = Default::default();
    let subscribe = Subscribe { packet_id, subscription_id: None, filters, user_properties };
    send(peer, &Packet::Subscribe(subscribe));
}

fn publish(peer: &Peer, topic: &str, id: u16) {
    let qos = if id == 0 { QoS::AtMostOnce } else { QoS::AtLeastOnce };
    let packet_id = PacketId::new(id);
    send(peer, &Packet::Publish(Publish { topic, qos, packet_id, ..Publish::default() }));
}

/// DISCONNECT: the sessions of these tests end with it.
fn leave(peer: &Peer) {
    assert!(peer.send(&[0xe0, 0]));
    peer.arrive(usize::MAX);
}

fn turns(cluster: &mut Cluster, count: usize) {
    (0..count).for_each(|_| cluster.loops().turn(0));
}

/// The first bytes of all packets that a peer received.
fn kinds(peer: &Peer) -> Vec<u8> {
    let bytes = peer.receive(usize::MAX);
    let mut rest = &bytes[..];
    let mut kinds = Vec::new();
    while let Some(frame) = split_frame(rest, u32::MAX).unwrap() {
        kinds.push(rest[0] & 0xf6);
        rest = &rest[frame.total_len..];
    }
    assert!(rest.is_empty(), "whole packets only");
    kinds
}

#[test]
fn many_clients_with_many_subscriptions_leave_in_pieces_while_others_are_served() {
    for filter in ["c/f", "c/f/+", "f/+/c/#", "$share/g/c/f", "$share/c/f/t"] {
        let mut cluster = cluster(&format!(
            "shards = 1\n[limits]\nsubscription_removals_per_turn_max = {REMOVALS}"
        ));
        let cluster = &mut cluster;
        let [publisher, good] = ["publisher", "good"].map(|id| connected(cluster, id));
        subscribe_all(&good, &["good".to_owned()]);
        let leavers: Vec<Peer> =
            (0..LEAVERS).map(|client| connected(cluster, &format!("leaver-{client}"))).collect();
        for (client, peer) in leavers.iter().enumerate() {
            let name = |number: usize| {
                let text = filter.replace('c', &format!("c-{client}"));
                text.replace('f', &format!("f-{number}"))
            };
            subscribe_all(peer, &(0..FILTERS).map(name).collect::<Vec<_>>());
        }
        settle(cluster);
        let all = (LEAVERS * FILTERS) as u64;
        assert_eq!(cluster.counter("subscriptions"), all + 1, "{filter}");
        good.receive(usize::MAX);
        leavers.iter().for_each(leave);
        let (mut left, mut count) = (all, 0);
        while left > 0 {
            publish(&publisher, "good", 0);
            cluster.loops().turn(0);
            assert_eq!(kinds(&good), [0x30], "{filter}: delivered in the same turn");
            let ended = cluster.counter("subscriptions_ended");
            assert_eq!(ended, cluster.held(0).ended_subscriptions as u64);
            let before = left;
            left = cluster.counter("subscriptions") - 1 + ended;
            assert!(before - left <= REMOVALS, "{filter}: {} in one turn", before - left);
            count += 1;
            assert!(count < 100_000, "{filter}: {left} are never removed");
        }
        assert!(count >= all / REMOVALS);
        settle(cluster);
        let held = cluster.held(0);
        assert_eq!((held.sessions, held.subscriptions, held.groups), (2, 1, 0), "{filter}");
        assert_eq!(cluster.counter("subscriptions_bytes"), "good".len() as u64);
        assert_eq!(cluster.counter("shared_subscriptions"), 0);
        assert_eq!(cluster.totals().subscriptions, 1);
        assert_eq!(cluster.groups_len(), 0, "{filter}: groups that have ended are freed");
    }
}

#[test]
fn a_turn_without_time_removes_few() {
    let config = RawConfig { shards: Some(1), ..RawConfig::default() }.resolve().unwrap();
    let bounds = |config| LoopConfig { turn_ns_max: 1_000_000, ..config };
    let faults = Faults { unit_ns_max: 20_000, ..Faults::default() };
    let mut cluster = Cluster::new(&config, bounds, 7, faults, 1).unwrap();
    let cluster = &mut cluster;
    let leaver = connected(cluster, "leaver");
    let filters: Vec<String> = (0..1_000).map(|number| format!("t/{number}/+")).collect();
    subscribe_all(&leaver, &filters);
    settle(cluster);
    leave(&leaver);
    let (mut left, mut count) = (1_000, 0);
    while left > 0 {
        turns(cluster, 1);
        let before = left;
        left = cluster.counter("subscriptions") + cluster.counter("subscriptions_ended");
        assert!(before - left <= 128, "{} in one turn", before - left);
        count += 1;
        assert!(count < 1_000, "{left} are never removed");
    }
}

#[test]
fn a_client_that_comes_back_meanwhile_is_new_and_counts_once() {
    // Room for the publisher and two others, and for the subscriptions of one.
    let mut cluster = cluster(
        "shards = 1\n[limits]\nsubscription_removals_per_turn_max = 1\nsessions_max = 3\n\
         subscriptions_max = 50",
    );
    let cluster = &mut cluster;
    let publisher = connected(cluster, "publisher");
    let first = connected(cluster, "client");
    let filters: Vec<String> = (0..50).map(|number| format!("t/{number}")).collect();
    subscribe_all(&first, &filters);
    settle(cluster);
    leave(&first);
    let [again, other] = ["client", "other"].map(|id| {
        let peer = cluster.connect(0);
        send(&peer, &Packet::Connect(connect(id, VERSION)));
        turns(cluster, 2);
        assert_eq!(peer.receive(usize::MAX), [0x20, 2, 0, 0], "CONNACK");
        peer
    });
    subscribe_all(&again, &filters[7..8]);
    turns(cluster, 1);
    assert_eq!(again.receive(usize::MAX), [0x90, 3, 0, 1, 1], "SUBACK");
    for round in 0..2 {
        for topic in &filters {
            publish(&publisher, topic, 0);
        }
        turns(cluster, 2);
        assert_eq!(kinds(&again), [0x30], "one of 50");
        assert_eq!(kinds(&other), [0; 0]);
        let ended = cluster.held(0).ended_subscriptions;
        assert_eq!(ended > 0, round == 0, "{ended} are left");
        assert_eq!((cluster.held(0).sessions, cluster.held(0).subscriptions), (3, 1));
        assert_eq!(cluster.totals().subscriptions, 1);
        if round == 0 {
            settle(cluster);
        }
    }
    leave(&again);
    turns(cluster, 1);
    // A SUBSCRIBE finds room for all, and removes what waits too long.
    subscribe_all(&other, &filters);
    turns(cluster, 1);
    let suback = other.receive(usize::MAX);
    assert_eq!(suback[4..], [1; 50], "all are granted");
    assert_eq!(cluster.counter("refused_subscriptions_total"), 0);
}

#[test]
fn what_waits_for_removal_does_not_pile_up() {
    let mut cluster = cluster(
        "shards = 1\n[limits]\nsubscription_removals_per_turn_max = 1\nsubscriptions_max = 800",
    );
    let cluster = &mut cluster;
    let filters: Vec<String> = (0..100).map(|number| format!("t/{number}/+")).collect();
    for round in 0..50 {
        let peer = cluster.connect(0);
        send(&peer, &Packet::Connect(connect("client", VERSION)));
        subscribe_all(&peer, &filters);
        turns(cluster, 3);
        assert_eq!(peer.receive(usize::MAX)[8..], [1; 100]);
        leave(&peer);
        turns(cluster, 1);
        let ended = cluster.held(0).ended_subscriptions;
        assert!(ended <= 800 / 8 + 100, "{ended} in round {round}");
    }
}

// 45
#[test]
fn members_that_have_ended_get_nothing_while_their_groups_are_cleared() {
    let mut cluster = cluster("shards = 1\n[limits]\nsubscription_removals_per_turn_max = 1");
    let cluster = &mut cluster;
    let [publisher, leaver, staying, newcomer] =
        ["publisher", "leaver", "staying", "newcomer"].map(|id| connected(cluster, id));
    let filters: Vec<String> = (0..50).map(|number| format!("$share/g/t/{number}")).collect();
    subscribe_all(&leaver, &filters);
    subscribe_all(&staying, &filters[7..8]);
    settle(cluster);
    staying.receive(usize::MAX);
    leave(&leaver);
    turns(cluster, 1);
    for number in 0..50 {
        publish(&publisher, &format!("t/{number}"), number + 1);
    }
    turns(cluster, 1);
    assert_eq!(kinds(&publisher), [0x40; 50]);
    assert_eq!(kinds(&staying), [0x32], "its own");
    assert_eq!(cluster.counter("shared_waiting"), 0, "there is no other member");
    // A group that is being cleared has a member again.
    subscribe_all(&newcomer, &filters[49..]);
    subscribe_all(&newcomer, &filters[..1]);
    turns(cluster, 1);
    assert!(cluster.held(0).ended_subscriptions > 0);
    assert_eq!(kinds(&newcomer), [0x90, 0x90], "nothing of what came before");
    for round in 0..2 {
        for number in 0..50 {
            publish(&publisher, &format!("t/{number}"), 0);
        }
        turns(cluster, 1);
        assert_eq!((kinds(&newcomer), kinds(&staying)), (vec![0x30; 2], vec![0x30]), "{round}");
        settle(cluster);
    }
    assert_eq!((cluster.held(0).groups, cluster.held(0).subscriptions), (3, 3));
}
