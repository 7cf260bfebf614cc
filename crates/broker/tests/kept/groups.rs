//! Shared subscriptions with lasting members.

use tacho_codec::{AckKind, QoS};
use tacho_journal::{Journal, MessageId, Options, QueueId, Visitor};
use tacho_topic::owner_shard;

use crate::station::{Client, Death, Seen, Station};

const QOS1: QoS = QoS::AtLeastOnce;
const QOS2: QoS = QoS::ExactlyOnce;
const FILTER: &str = "$share/group/jobs/#";

pub(crate) fn payloads(seen: &[Seen]) -> Vec<String> {
    let payload = |seen: &Seen| match seen {
        Seen::Message { payload, .. } => Some(payload.clone()),
        _ => None,
    };
    seen.iter().filter_map(payload).collect()
}

#[test]
fn what_no_member_can_take_waits_in_the_journal() {
    for shards in [1, 3] {
        for death in [Death::Killed, Death::PowerCut] {
            let mut station = Station::new(shards);
            for name in ["member-a", "member-b"] {
                let mut member = station.lasting(name);
                station.subscribe(&mut member, FILTER, QOS2);
                member.peer.reset();
            }
            station.commit();
            let mut publisher = station.passing("publisher");
            for id in 1..=5 {
                publisher.publish("jobs/x", &id.to_string(), QOS1, id);
            }
            station.settle();
            publisher.expect_nothing();
            station.commit();
            assert_eq!(publisher.all().len(), 5);
            station.restart(death);
            let mut member = station.resumed("member-b");
            station.commit();
            assert_eq!(payloads(&member.all()), ["1", "2", "3", "4", "5"], "{shards} shards");
            for id in 1..=5 {
                member.acknowledge(AckKind::PubAck, id);
            }
            station.commit();
            // Nothing is left.
            station.restart(death);
            for name in ["member-a", "member-b"] {
                let mut member = station.resumed(name);
                station.commit();
                member.expect_nothing();
            }
        }
    }
}

#[test]
fn a_members_message_is_acknowledged_after_its_commit_and_resumed() {
    for shards in [1, 3] {
        let mut station = Station::new(shards);
        let mut members: Vec<_> = ["member-a", "member-b", "member-c"]
            .into_iter()
            .map(|name| {
                let mut member = station.lasting(name);
                station.subscribe(&mut member, FILTER, QOS1);
                member
            })
            .collect();
        let mut publisher = station.passing("publisher");
        for id in 1..=6 {
            publisher.publish("jobs/x", &id.to_string(), QOS1, id);
        }
        station.settle();
        publisher.expect_nothing();
        station.commit();
        assert_eq!(publisher.all().len(), 6);
        let mut got: Vec<_> = members.iter_mut().flat_map(|m| payloads(&m.all())).collect();
        got.sort();
        assert_eq!(got, ["1", "2", "3", "4", "5", "6"], "{shards} shards");
        station.restart(Death::PowerCut);
        let mut again = Vec::new();
        for name in ["member-a", "member-b", "member-c"] {
            let mut member = station.resumed(name);
            station.commit();
            again.extend(payloads(&member.all()));
        }
        again.sort();
        assert_eq!(again, got);
    }
}

#[test]
fn what_a_member_leaves_goes_to_another_one_and_survives_on_the_way() {
    for shards in [1, 3] {
        let mut station = Station::new(shards);
        let mut first = station.lasting("member-a");
        station.subscribe(&mut first, FILTER, QOS1);
        let mut publisher = station.passing("publisher");
        for id in 1..=3 {
            publisher.publish("jobs/x", &id.to_string(), QOS1, id);
        }
        station.commit();
        assert_eq!(publisher.all().len(), 3);
        assert_eq!(payloads(&first.all()).len(), 3);
        let mut other = station.lasting("member-b");
        station.subscribe(&mut other, FILTER, QOS1);
        other.peer.reset();
        station.commit();
        // The first one's session ends for ever with these in flight.
        first.peer.reset();
        station.commit();
        let mut ends = station.visiting("member-a", true);
        station.commit();
        ends.expect(&[Seen::Connected { session_present: false }]);
        station.restart(Death::PowerCut);
        let mut other = station.resumed("member-b");
        station.commit();
        let mut got = payloads(&other.all());
        got.sort();
        assert_eq!(got, ["1", "2", "3"], "{shards} shards");
    }
}

/// A group with a lasting member that is away and a passing one, and the publisher.
fn mixed_group(station: &mut Station, qos: QoS) -> (Client, Client) {
    let mut lasting = station.lasting("lasting");
    station.subscribe(&mut lasting, FILTER, qos);
    lasting.peer.reset();
    station.commit();
    let mut passing = station.passing("passing");
    station.subscribe(&mut passing, FILTER, qos);
    (passing, station.passing("publisher"))
}

#[test]
fn what_a_passing_member_has_not_acknowledged_survives_the_broker() {
    for shards in [1, 3] {
        for death in [Death::Killed, Death::PowerCut] {
            let mut station = Station::new(shards);
            let (mut passing, mut publisher) = mixed_group(&mut station, QOS1);
            for id in 1..=4 {
                publisher.publish("jobs/x", &id.to_string(), QOS1, id);
            }
            station.settle();
            publisher.expect_nothing();
            station.commit();
            assert_eq!(publisher.all().len(), 4);
            let got = passing.all();
            assert_eq!(payloads(&got), ["1", "2", "3", "4"], "{shards} shards");
            // The first two are done with, and this is on the disk with what others wait for.
            passing.acknowledge(AckKind::PubAck, 1);
            passing.acknowledge(AckKind::PubAck, 2);
            let mut other = station.lasting("other");
            station.subscribe(&mut other, "other", QOS1);
            publisher.publish("other", "5", QOS1, 5);
            station.commit();
            station.restart(death);
            let mut lasting = station.resumed("lasting");
            station.commit();
            assert_eq!(payloads(&lasting.all()), ["3", "4"], "{shards} shards, {death:?}");
            lasting.acknowledge(AckKind::PubAck, 1);
            lasting.acknowledge(AckKind::PubAck, 2);
            station.commit();
            station.restart(death);
            let mut lasting = station.resumed("lasting");
            station.commit();
            lasting.expect_nothing();
        }
    }
}

#[test]
fn what_a_passing_member_leaves_is_kept_on_its_way_and_comes_once() {
    for shards in [1, 3] {
        let mut station = Station::new(shards);
        let (mut passing, mut publisher) = mixed_group(&mut station, QOS1);
        for id in 1..=3 {
            publisher.publish("jobs/x", &id.to_string(), QOS1, id);
        }
        station.commit();
        assert_eq!(publisher.all().len(), 3);
        assert_eq!(payloads(&passing.all()), ["1", "2", "3"]);
        passing.peer.reset();
        station.commit();
        // They wait now; a member that comes and goes gets them too.
        let mut passing = station.passing("passing-too");
        passing.subscribe(FILTER, QOS1);
        station.commit();
        assert_eq!(payloads(&passing.all()), ["1", "2", "3"]);
        station.restart(Death::PowerCut);
        let mut lasting = station.resumed("lasting");
        station.commit();
        assert_eq!(payloads(&lasting.all()), ["1", "2", "3"], "{shards} shards");
    }
}

/// [MQTT-4.8.2-5]: its session has ended with the broker.
#[test]
fn qos_2_sent_to_a_member_in_memory_goes_to_no_other_member() {
    for shards in [1, 3] {
        for death in [Death::Killed, Death::PowerCut] {
            let mut station = Station::new(shards);
            let (mut passing, publisher) = mixed_group(&mut station, QOS2);
            publisher.publish("jobs/x", "1", QOS2, 1);
            station.settle();
            passing.expect_nothing();
            station.commit();
            assert_eq!(payloads(&passing.all()), ["1"]);
            station.restart(death);
            let mut lasting = station.resumed("lasting");
            station.commit();
            lasting.expect_nothing();
        }
    }
}

#[test]
fn a_group_of_passing_members_costs_the_journal_nothing() {
    let mut station = Station::new(2);
    let mut member = station.passing("member-a");
    member.subscribe(FILTER, QOS1);
    station.settle();
    let _ = member.all();
    let mut publisher = station.passing("publisher");
    let before = station.cluster.counter("journal_records_total");
    publisher.publish("jobs/x", "1", QOS1, 1);
    station.settle();
    publisher.expect_ack(AckKind::PubAck, 1);
    assert_eq!(payloads(&member.all()), ["1"]);
    assert_eq!(station.cluster.counter("journal_records_total"), before);
}

/// What the journal says of queues of shared subscriptions.
#[derive(Default)]
struct Queues(usize);

impl Visitor for Queues {
    fn key(&mut self, _: QueueId, key: &[u8], _: u64, _: &[u8], _: Option<(MessageId, &[u8])>) {
        self.0 += usize::from(key.starts_with(b"g$share/"));
    }

    fn entry(&mut self, _: QueueId, _: u64, _: Option<MessageId>, _: u32, _: &[u8]) {}

    fn open(&mut self, _: MessageId, _: &[u8], _: &[u8], _: &[QueueId]) {}
}

fn queues_kept(station: &Station) -> usize {
    let mut opened = Journal::open_on(station.disk.copy(1), Options::default()).unwrap();
    let mut queues = Queues::default();
    opened.recovered.visit(&mut queues).unwrap();
    queues.0
}

/// The queue's name was kept with a version above 0, so it has to be forgotten with a greater one.
#[test]
fn the_queue_of_a_group_whose_members_all_went_with_the_broker_is_forgotten() {
    let mut station = Station::new(2);
    let mut passing = station.passing("passing");
    station.subscribe(&mut passing, FILTER, QOS1);
    let mut member = station.lasting("member");
    station.subscribe(&mut member, FILTER, QOS1);
    // The lasting one leaves, the others remain members until the broker dies.
    member.unsubscribe(FILTER);
    station.commit();
    assert_eq!(queues_kept(&station), 1);
    station.restart(Death::Killed);
    assert_eq!(queues_kept(&station), 0);
    // And it comes again with its first lasting member.
    let mut member = station.resumed("member");
    station.subscribe(&mut member, FILTER, QOS1);
    station.commit();
    assert_eq!(queues_kept(&station), 1);
    station.restart(Death::PowerCut);
    assert_eq!(queues_kept(&station), 1);
}

/// An identifier whose session, or a client's, is on that shard of two.
pub(crate) fn name_on(shard: usize, what: &str) -> String {
    name_among(2, shard, what)
}

/// A name of which the owner is this one of so many shards.
pub(crate) fn name_among(shards: usize, shard: usize, what: &str) -> String {
    let mut names = (0..).map(|i| format!("{what}-{i}"));
    names.find(|name| owner_shard(0, name.as_bytes(), shards) == shard).unwrap()
}

/// The group's shard has no members, so it forgets the group whenever nothing waits there. It must
/// not give a place again that a message on its way to a member has still.
#[test]
fn a_place_that_is_on_its_way_is_not_given_to_another_message() {
    let owner = owner_shard(0, FILTER.as_bytes(), 2);
    let mut station = Station::configured(2, |raw| raw.limits.inflight_max = 1);
    let member = name_on(1 - owner, "member");
    let mut away = station.lasting(&member);
    station.subscribe(&mut away, FILTER, QOS1);
    away.peer.reset();
    station.commit();
    let mut publisher = station.passing(&name_on(owner, "publisher"));
    publisher.publish("jobs/x", "1", QOS1, 1);
    station.commit();
    publisher.expect_ack(AckKind::PubAck, 1);
    // The member comes: its shard tells the owner, which sends the message there, with its place.
    let back = station.resuming(&member);
    let waiting = |station: &Station| station.cluster.counter("shared_waiting");
    for _ in 0..20 {
        station.cluster.loops().turn(1 - owner);
        station.cluster.commit();
    }
    assert_eq!(waiting(&station), 1);
    for _ in 0..20 {
        if waiting(&station) == 0 {
            break;
        }
        station.cluster.loops().turn(owner);
    }
    // Before that shard has it, another message has to wait.
    publisher.publish("jobs/x", "2", QOS1, 2);
    for _ in 0..20 {
        if waiting(&station) == 1 {
            break;
        }
        station.cluster.loops().turn(owner);
    }
    assert_eq!(waiting(&station), 1, "it does not wait");
    station.cluster.commit();
    station.commit();
    publisher.expect_ack(AckKind::PubAck, 2);
    drop(back);
    station.restart(Death::PowerCut);
    let mut member = station.resumed(&member);
    let mut got = Vec::new();
    for _ in 0..3 {
        for seen in member.all() {
            if let Seen::Message { payload, id, .. } = seen {
                got.push(payload);
                member.acknowledge(AckKind::PubAck, id);
            }
        }
        station.commit();
    }
    assert_eq!(got, ["1", "2"]);
}
