//! SUBSCRIBE and UNSUBSCRIBE with many filters are handled in pieces: on simulated loops, where
//! turns can be counted.

use tacho_broker::sim::Cluster;
use tacho_codec::{
    Direction, Packet, PacketId, Publish, QoS, ReasonCode, Subscribe, SubscribeFilter,
    SubscribeOptions, Unsubscribe, split_frame,
};
use tacho_net::sim::Peer;

use super::turns::{
    Beside, LONGEST_TURN_NS, VERSION, busy_cluster, connected, send, settle, turns_beside,
};

const FILTERS: usize = 1_000;
const LARGE: usize = 10_000;
/// Units of work in a turn of a millisecond, and in what its parts overrun their shares by.
const TURN_UNITS: u64 = 1_500;

pub(crate) fn filters(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}/{number}/+")).collect()
}

fn packet_id(number: u16) -> PacketId {
    PacketId::new(number).unwrap()
}

pub(crate) fn subscribe_all(peer: &Peer, number: u16, filters: &[String]) {
    let options = SubscribeOptions { qos: QoS::AtLeastOnce, ..SubscribeOptions::default() };
    let filters = filters.iter().map(|filter| SubscribeFilter { filter, options }).collect();
    let (packet_id, user_properties) = (packet_id(number), Default::default());
    let subscribe = Subscribe { packet_id, subscription_id: None, filters, user_properties };
    send(peer, &Packet::Subscribe(subscribe));
}

fn unsubscribe_all(peer: &Peer, number: u16, filters: &[String]) {
    let filters = filters.iter().map(String::as_str).collect();
    let (packet_id, user_properties) = (packet_id(number), Default::default());
    send(peer, &Packet::Unsubscribe(Unsubscribe { packet_id, filters, user_properties }));
}

pub(crate) fn publish(peer: &Peer, topic: &str, retain: bool) {
    send(peer, &Packet::Publish(Publish { topic, retain, payload: b"x", ..Publish::default() }));
}

/// What a peer received: a word for each packet, with its topic or its number of codes.
pub(crate) fn received(peer: &Peer) -> Vec<String> {
    let bytes = peer.receive(usize::MAX);
    let (mut rest, mut all) = (&bytes[..], Vec::new());
    while let Some(frame) = split_frame(rest, u32::MAX).unwrap() {
        all.push(match Packet::decode(&frame, VERSION, Direction::ToClient).unwrap() {
            Packet::SubAck(ack) => {
                assert!(ack.reasons.iter().all(|&code| code == ReasonCode::GRANTED_QOS_1));
                format!("suback {} of {}", ack.packet_id.get(), ack.reasons.len())
            }
            Packet::UnsubAck(ack) => format!("unsuback {}", ack.packet_id.get()),
            Packet::Publish(publish) => format!("publish {}", publish.topic),
            Packet::PingResp => "pingresp".to_owned(),
            other => format!("{other:?}"),
        });
        rest = &rest[frame.total_len..];
    }
    assert!(rest.is_empty(), "whole packets only");
    all
}

pub(crate) fn assert_short_turns(cluster: &Cluster) {
    let (units, longest_ns) = (cluster.counter("turn_units_max"), cluster.counter("turn_ns_max"));
    assert!(units < TURN_UNITS, "{units} units in one turn");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}

// [MQTT-3.8.4-1] [MQTT-3.10.4-4]
#[test]
fn many_filters_in_a_packet_take_many_short_turns_and_one_answer_in_order() {
    for (count, turns_min) in [(FILTERS, 3), (LARGE, 30)] {
        let toml = format!("shards = 1\n[limits]\nsubscriptions_per_session_max = {LARGE}");
        let mut cluster = busy_cluster(&toml);
        let cluster = &mut cluster;
        let [other, client] = ["other", "client"].map(|id| connected(cluster, id));
        let filters = filters("t", count);

        subscribe_all(&client, 7, &filters);
        publish(&client, "t/5/own", false);
        send(&client, &Packet::PingReq);
        let Beside { turns, wait, .. } = turns_beside(cluster, &other);
        assert!(turns >= turns_min && wait <= 2, "{turns} turns, {wait} between answers");
        let suback = format!("suback 7 of {count}");
        // What is behind the packet waits for it; PINGRESP and PUBLISH are of the same turn.
        let mut got = received(&client);
        assert_eq!(got.remove(0), suback);
        got.sort();
        assert_eq!(got, ["pingresp", "publish t/5/own"]);
        assert_eq!(cluster.counter("subscriptions"), count as u64);
        assert_eq!(cluster.counter("subscribes_total"), 1);
        publish(&other, &format!("t/{}/last", count - 1), false);
        settle(cluster);
        assert_eq!(received(&client), [format!("publish t/{}/last", count - 1)]);
        other.receive(usize::MAX);

        unsubscribe_all(&client, 8, &filters);
        send(&client, &Packet::PingReq);
        let Beside { turns, wait, .. } = turns_beside(cluster, &other);
        assert!(turns >= turns_min && wait <= 2, "{turns} turns, {wait} between answers");
        assert_eq!(received(&client), ["unsuback 8", "pingresp"]);
        assert_eq!((cluster.counter("subscriptions"), cluster.held(0).requests), (0, 0));
        // 2 CONNECTs, SUBSCRIBE, 2 PUBLISHes, UNSUBSCRIBE and pings: each is one packet.
        let pings = cluster.counter("pings_total");
        assert_eq!(cluster.counter("packets_in_total") - pings, 6);
        assert_short_turns(cluster);
    }
}

#[test]
fn retained_messages_follow_the_answer_once_each_and_live_ones_need_not_wait() {
    let mut cluster = busy_cluster("shards = 1");
    let cluster = &mut cluster;
    let [publisher, client] = ["publisher", "client"].map(|id| connected(cluster, id));
    for number in 0..FILTERS {
        publish(&publisher, &format!("t/{number}/kept"), true);
        settle(cluster);
    }
    subscribe_all(&client, 1, &filters("t", FILTERS));
    while cluster.counter("subscriptions") == 0 {
        cluster.loops().turn(0);
    }
    assert_eq!(cluster.held(0).requests, 1, "it is not finished");
    publish(&publisher, "t/0/live", false);
    let mut got = Vec::new();
    while !got.iter().any(|packet: &String| packet.starts_with("suback")) {
        cluster.loops().turn(0);
        got.extend(received(&client));
    }
    assert_eq!(got[..2], ["publish t/0/live".to_owned(), format!("suback 1 of {FILTERS}")]);
    settle(cluster);
    got.extend(received(&client));
    let mut kept = got.split_off(2);
    kept.sort();
    let mut expected: Vec<_> = (0..FILTERS).map(|n| format!("publish t/{n}/kept")).collect();
    expected.sort();
    assert!(kept == expected, "{} retained messages", kept.len());
}

#[test]
fn many_clients_that_subscribe_at_once_have_few_requests_open_and_all_are_answered() {
    const CLIENTS: usize = 60;
    let mut cluster = busy_cluster("shards = 1");
    let cluster = &mut cluster;
    let [other, small] = ["other", "small"].map(|id| connected(cluster, id));
    let clients: Vec<Peer> =
        (0..CLIENTS).map(|number| connected(cluster, &format!("c{number}"))).collect();
    for (number, client) in clients.iter().enumerate() {
        subscribe_all(client, 1, &filters(&format!("c{number}"), FILTERS));
    }
    let (mut open_max, mut turns, mut answered) = (0, 0, 0);
    while answered < CLIENTS {
        if turns == 100 {
            subscribe_all(&small, 2, &filters("small", 1));
        }
        if turns == 116 {
            assert_eq!(received(&small), ["suback 2 of 1"], "a small one waits for nothing");
            assert!(answered < CLIENTS / 2, "{answered}");
        }
        cluster.loops().turn(0);
        (open_max, turns) = (open_max.max(cluster.held(0).requests), turns + 1);
        assert!(turns < 100_000, "{answered} are answered");
        for client in &clients {
            let got = received(client);
            assert!(got.is_empty() || got == [format!("suback 1 of {FILTERS}")], "{got:?}");
            answered += got.len();
        }
    }
    assert!((2..=16).contains(&open_max), "{open_max} at once");
    assert_eq!(cluster.counter("subscriptions"), (CLIENTS * FILTERS) as u64 + 1);
    assert!(turns_beside(cluster, &other).wait <= 2);
    assert_short_turns(cluster);
}

#[test]
fn a_request_whose_client_leaves_ends_and_makes_place_for_others() {
    const LEAVERS: usize = 20;
    let mut cluster = busy_cluster("shards = 1");
    let cluster = &mut cluster;
    for number in 0..LEAVERS {
        let leaver = connected(cluster, &format!("leaver-{number}"));
        subscribe_all(&leaver, 1, &filters("t", FILTERS));
        let before = cluster.counter("subscribes_total");
        while cluster.held(0).requests == 0 {
            cluster.loops().turn(0);
        }
        drop(leaver);
        let again = connected(cluster, &format!("leaver-{number}"));
        assert_eq!(cluster.held(0).requests, 0);
        assert_eq!(cluster.counter("subscribes_total"), before, "it was never finished");
        assert_eq!(cluster.held(0).subscriptions, 0);
        drop(again);
        settle(cluster);
    }
    let client = connected(cluster, "client");
    subscribe_all(&client, 1, &filters("t", FILTERS));
    settle(cluster);
    assert_eq!(received(&client), [format!("suback 1 of {FILTERS}")]);
    assert_eq!(cluster.counter("subscriptions"), FILTERS as u64);
}

#[test]
fn a_malformed_filter_at_the_end_of_many_ends_the_connection_before_any_takes_effect() {
    let mut cluster = busy_cluster("shards = 1");
    let cluster = &mut cluster;
    let client = connected(cluster, "client");
    let mut all = filters("t", FILTERS);
    all.push("t/#/t".to_owned());
    subscribe_all(&client, 1, &all);
    for _ in 0..100 {
        cluster.loops().turn(0);
        assert_eq!(cluster.counter("subscriptions"), 0);
    }
    assert!(client.is_closing());
}
