//! New access rules are applied to sessions with many subscriptions in pieces: on simulated loops,
//! where turns can be counted.

use std::fs;

use tacho_broker::AccessReloaded;
use tacho_broker::sim::Cluster;
use tacho_codec::{Connect, Packet, PacketId, Publish, QoS};
use tacho_net::sim::Peer;
use tacho_testkit::connect;
use tempfile::TempDir;

use super::requests::{assert_short_turns, filters, publish, received, subscribe_all};
use super::turns::{
    Beside, LONGEST_TURN_NS, VERSION, busy_cluster, connected, send, settle, turns_beside,
};

const FILTERS: usize = 10_000;
const BEFORE: &str = "topic readwrite t/#\ntopic readwrite u/#\n";
/// Nothing of `u` may be received any more.
const AFTER: &str = "topic readwrite t/#\ntopic write u/#\n";

struct Rules(TempDir);

impl Rules {
    fn new() -> Self {
        let rules = Self(tempfile::tempdir().unwrap());
        rules.set(BEFORE);
        rules
    }

    fn set(&self, text: &str) {
        fs::write(self.0.path().join("acl"), text).unwrap();
    }

    fn cluster(&self) -> Cluster {
        busy_cluster(&format!(
            "shards = 1\n[access]\nacl_file = {:?}\n\
             [limits]\nsubscriptions_per_session_max = 20000",
            self.0.path().join("acl")
        ))
    }

    /// They apply from the next turn on.
    fn change(&self, cluster: &Cluster) {
        self.set(AFTER);
        assert_eq!(cluster.access().reload(), AccessReloaded::New);
    }
}

/// Connects a client whose session lasts; says whether there was one.
fn lasting(cluster: &mut Cluster, client_id: &str) -> (Peer, bool) {
    let peer = cluster.connect(0);
    let lasting = Connect { clean_start: false, ..connect(client_id, VERSION) };
    send(&peer, &Packet::Connect(lasting));
    let mut answer = Vec::new();
    while answer.len() < 4 {
        cluster.loops().turn(0);
        answer.extend(peer.receive(4));
    }
    assert_eq!((answer[0], answer[3]), (0x20, 0), "CONNACK");
    (peer, answer[2] == 1)
}

/// A client with filters that stay, and with as many that the new rules deny.
fn with_both(cluster: &mut Cluster, client_id: &str) -> Peer {
    let (peer, _) = lasting(cluster, client_id);
    for (id, prefix) in [(1, "t"), (2, "u")] {
        subscribe_all(&peer, id, &filters(prefix, FILTERS / 2));
    }
    settle(cluster);
    assert_eq!(received(&peer).len(), 2);
    peer
}

#[test]
fn a_session_with_many_subscriptions_is_swept_in_many_short_turns_and_nothing_slips_through() {
    let rules = Rules::new();
    let mut cluster = rules.cluster();
    let cluster = &mut cluster;
    let [other, publisher] = ["other", "publisher"].map(|id| connected(cluster, id));
    let loser = with_both(cluster, "loser");
    let (keeper, _) = lasting(cluster, "keeper");
    subscribe_all(&keeper, 1, &filters("t", FILTERS));
    settle(cluster);
    received(&keeper);

    rules.change(cluster);
    let (mut turns, mut messages) = (0, 0);
    while !loser.is_closing() {
        publish(&publisher, "u/4999/x", false);
        publish(&publisher, "t/4999/x", false);
        cluster.loops().turn(0);
        let got = received(&loser);
        assert!(got.iter().all(|packet| packet == "publish t/4999/x"), "{got:?}");
        (turns, messages) = (turns + 1, messages + got.len());
        assert!(turns < 100_000, "it is never done");
    }
    assert!(turns > 20 && messages > 10, "{messages} messages in {turns} turns");
    let Beside { turns, wait, .. } = turns_beside(cluster, &other);
    assert!(turns > 5 && wait <= 2, "{turns} turns, {wait} between answers");
    assert!(!keeper.is_closing());
    assert_eq!(cluster.counter("ended_subscriptions_total"), FILTERS as u64 / 2);
    assert_eq!(cluster.counter("ended_by_rules_total"), 1);
    assert_eq!(cluster.counter("subscriptions"), (FILTERS / 2 + FILTERS) as u64);
    assert_short_turns(cluster);
}

#[test]
fn what_a_client_subscribes_to_waits_until_its_session_is_swept() {
    let rules = Rules::new();
    let mut cluster = rules.cluster();
    let cluster = &mut cluster;
    let (keeper, _) = lasting(cluster, "keeper");
    subscribe_all(&keeper, 1, &filters("t", FILTERS));
    settle(cluster);
    received(&keeper);
    rules.change(cluster);
    cluster.loops().turn(0);
    subscribe_all(&keeper, 2, &filters("t/more", 1));
    send(&keeper, &Packet::Publish(Publish { topic: "t/more/0/x", ..Publish::default() }));
    for _ in 0..5 {
        cluster.loops().turn(0);
        assert!(received(&keeper).is_empty());
    }
    settle(cluster);
    assert_eq!(received(&keeper), ["suback 2 of 1", "publish t/more/0/x"]);
    assert_eq!(cluster.counter("subscriptions"), FILTERS as u64 + 1);
    // A reload in the middle of one: by the newest rules, from the beginning.
    rules.set(BEFORE);
    assert_eq!(cluster.access().reload(), AccessReloaded::New);
    cluster.loops().turn(0);
    rules.set("topic readwrite t/more/#\n");
    assert_eq!(cluster.access().reload(), AccessReloaded::New);
    settle(cluster);
    assert!(keeper.is_closing());
    assert_eq!(cluster.counter("subscriptions"), 1);
}

#[test]
fn a_client_that_comes_back_while_its_session_is_swept_loses_what_it_may_not_have() {
    let rules = Rules::new();
    let mut cluster = rules.cluster();
    let cluster = &mut cluster;
    drop(with_both(cluster, "first"));
    drop(with_both(cluster, "away"));
    settle(cluster);
    rules.change(cluster);
    cluster.loops().turn(0);
    // The sweep is at the first session, or at the one that comes back.
    let (early, is_present) = lasting(cluster, "away");
    assert!(is_present);
    settle(cluster);
    let ended = cluster.counter("ended_subscriptions_total");
    assert_eq!(ended, FILTERS as u64, "of both");
    let publisher = connected(cluster, "publisher");
    drop(early);
    let (late, is_present) = lasting(cluster, "away");
    assert!(is_present);
    for topic in ["u/1/x", "t/1/x"] {
        publish(&publisher, topic, false);
    }
    settle(cluster);
    assert_eq!(received(&late), ["publish t/1/x"]);
    assert!(!late.is_closing());
    // One with what newcomers have beside it.
    let longest_ns = cluster.counter("turn_ns_max");
    assert!(longest_ns < LONGEST_TURN_NS, "{longest_ns} ns");
}

/// A message of a shared group that a member may not have any more goes to another one.
#[test]
fn a_group_loses_nothing_while_the_right_of_a_member_ends() {
    const BEFORE: &str = "[[rules]]\nallow = ['publish', 'subscribe']\ntopics = ['#']\n";
    const AFTER: &str = "[[rules]]\nallow = ['publish', 'subscribe']\ntopics = ['t/#']\n\
        [[rules]]\nallow = 'publish'\ntopics = ['u/#']\n\
        [[rules]]\nallow = 'subscribe'\ntopics = ['u/#']\nclient_ids = ['keeper']\n";
    const MESSAGES: u16 = 10;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.toml");
    fs::write(&file, BEFORE).unwrap();
    let mut cluster = busy_cluster(&format!(
        "shards = 1\n[access]\nrules_file = {file:?}\n\
         [limits]\nsubscriptions_per_session_max = 20000"
    ));
    let cluster = &mut cluster;
    // It is swept before the members, in many turns.
    let (first, _) = lasting(cluster, "first");
    subscribe_all(&first, 1, &filters("t", FILTERS));
    let [loser, keeper] = ["loser", "keeper"].map(|id| lasting(cluster, id).0);
    for member in [&loser, &keeper] {
        subscribe_all(member, 1, &["$share/g/u/#".to_owned()]);
    }
    let publisher = connected(cluster, "publisher");
    settle(cluster);
    for peer in [&first, &loser, &keeper] {
        received(peer);
    }

    fs::write(&file, AFTER).unwrap();
    assert_eq!(cluster.access().reload(), AccessReloaded::New);
    for number in 1..=MESSAGES {
        let message = Publish {
            topic: "u/1",
            qos: QoS::AtLeastOnce,
            packet_id: PacketId::new(number),
            ..Publish::default()
        };
        send(&publisher, &Packet::Publish(message));
        cluster.loops().turn(0);
        assert!(!loser.is_closing(), "it is swept already");
    }
    assert!(cluster.counter("denied_deliveries_total") > 0);
    settle(cluster);
    let got = received(&keeper);
    assert_eq!(got, vec!["publish u/1"; usize::from(MESSAGES)]);
    assert!(loser.is_closing() && !received(&loser).iter().any(|packet| packet.contains("u/1")));
}
