//! Shared subscriptions with lasting members.

use tacho_codec::{AckKind, QoS};
use tacho_journal::{Journal, MessageId, Options, QueueId, Visitor};
use tacho_topic::owner_shard;

use crate::durable_broker::{Client, Death, DurableBroker, Seen};

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
fn messages_without_an_available_member_wait_in_the_journal() {
    for shards in [1, 3] {
        for death in [Death::Killed, Death::PowerCut] {
            let mut broker = DurableBroker::new(shards);
            for name in ["member-a", "member-b"] {
                let mut member = broker.lasting(name);
                broker.subscribe(&mut member, FILTER, QOS2);
                member.peer.reset();
            }
            broker.commit();
            let mut publisher = broker.passing("publisher");
            for id in 1..=5 {
                publisher.publish("jobs/x", &id.to_string(), QOS1, id);
            }
            broker.settle();
            publisher.expect_nothing();
            broker.commit();
            assert_eq!(publisher.all().len(), 5);
            broker.restart(death);
            let mut member = broker.resumed("member-b");
            broker.commit();
            assert_eq!(payloads(&member.all()), ["1", "2", "3", "4", "5"], "{shards} shards");
            for id in 1..=5 {
                member.acknowledge(AckKind::PubAck, id);
            }
            broker.commit();
            // Nothing is left.
            broker.restart(death);
            for name in ["member-a", "member-b"] {
                let mut member = broker.resumed(name);
                broker.commit();
                member.expect_nothing();
            }
        }
    }
}

#[test]
fn a_members_message_is_acknowledged_after_its_commit_and_resumed() {
    for shards in [1, 3] {
        let mut broker = DurableBroker::new(shards);
        let mut members: Vec<_> = ["member-a", "member-b", "member-c"]
            .into_iter()
            .map(|name| {
                let mut member = broker.lasting(name);
                broker.subscribe(&mut member, FILTER, QOS1);
                member
            })
            .collect();
        let mut publisher = broker.passing("publisher");
        for id in 1..=6 {
            publisher.publish("jobs/x", &id.to_string(), QOS1, id);
        }
        broker.settle();
        publisher.expect_nothing();
        broker.commit();
        assert_eq!(publisher.all().len(), 6);
        let mut got: Vec<_> = members.iter_mut().flat_map(|m| payloads(&m.all())).collect();
        got.sort();
        assert_eq!(got, ["1", "2", "3", "4", "5", "6"], "{shards} shards");
        broker.restart(Death::PowerCut);
        let mut again = Vec::new();
        for name in ["member-a", "member-b", "member-c"] {
            let mut member = broker.resumed(name);
            broker.commit();
            again.extend(payloads(&member.all()));
        }
        again.sort();
        assert_eq!(again, got);
    }
}

#[test]
fn messages_of_a_leaving_member_move_to_another_and_survive_a_crash_in_between() {
    for shards in [1, 3] {
        let mut broker = DurableBroker::new(shards);
        let mut first = broker.lasting("member-a");
        broker.subscribe(&mut first, FILTER, QOS1);
        let mut publisher = broker.passing("publisher");
        for id in 1..=3 {
            publisher.publish("jobs/x", &id.to_string(), QOS1, id);
        }
        broker.commit();
        assert_eq!(publisher.all().len(), 3);
        assert_eq!(payloads(&first.all()).len(), 3);
        let mut other = broker.lasting("member-b");
        broker.subscribe(&mut other, FILTER, QOS1);
        other.peer.reset();
        broker.commit();
        // The first one's session ends for ever with these in flight.
        first.peer.reset();
        broker.commit();
        let mut ends = broker.visiting("member-a", true);
        broker.commit();
        ends.expect(&[Seen::Connected { session_present: false }]);
        broker.restart(Death::PowerCut);
        let mut other = broker.resumed("member-b");
        broker.commit();
        let mut got = payloads(&other.all());
        got.sort();
        assert_eq!(got, ["1", "2", "3"], "{shards} shards");
    }
}

/// A group with a lasting member that is away and a passing one, and the publisher.
fn mixed_group(broker: &mut DurableBroker, qos: QoS) -> (Client, Client) {
    let mut lasting = broker.lasting("lasting");
    broker.subscribe(&mut lasting, FILTER, qos);
    lasting.peer.reset();
    broker.commit();
    let mut passing = broker.passing("passing");
    broker.subscribe(&mut passing, FILTER, qos);
    (passing, broker.passing("publisher"))
}

#[test]
fn messages_unacknowledged_by_a_transient_member_survive_a_crash() {
    for shards in [1, 3] {
        for death in [Death::Killed, Death::PowerCut] {
            let mut broker = DurableBroker::new(shards);
            let (mut passing, mut publisher) = mixed_group(&mut broker, QOS1);
            for id in 1..=4 {
                publisher.publish("jobs/x", &id.to_string(), QOS1, id);
            }
            broker.settle();
            publisher.expect_nothing();
            broker.commit();
            assert_eq!(publisher.all().len(), 4);
            let got = passing.all();
            assert_eq!(payloads(&got), ["1", "2", "3", "4"], "{shards} shards");
            // The first two are done with, and this is on the disk with what others wait for.
            passing.acknowledge(AckKind::PubAck, 1);
            passing.acknowledge(AckKind::PubAck, 2);
            let mut other = broker.lasting("other");
            broker.subscribe(&mut other, "other", QOS1);
            publisher.publish("other", "5", QOS1, 5);
            broker.commit();
            broker.restart(death);
            let mut lasting = broker.resumed("lasting");
            broker.commit();
            assert_eq!(payloads(&lasting.all()), ["3", "4"], "{shards} shards, {death:?}");
            lasting.acknowledge(AckKind::PubAck, 1);
            lasting.acknowledge(AckKind::PubAck, 2);
            broker.commit();
            broker.restart(death);
            let mut lasting = broker.resumed("lasting");
            broker.commit();
            lasting.expect_nothing();
        }
    }
}

#[test]
fn messages_of_a_leaving_transient_member_arrive_once_after_a_crash() {
    for shards in [1, 3] {
        let mut broker = DurableBroker::new(shards);
        let (mut passing, mut publisher) = mixed_group(&mut broker, QOS1);
        for id in 1..=3 {
            publisher.publish("jobs/x", &id.to_string(), QOS1, id);
        }
        broker.commit();
        assert_eq!(publisher.all().len(), 3);
        assert_eq!(payloads(&passing.all()), ["1", "2", "3"]);
        passing.peer.reset();
        broker.commit();
        // They wait now; a member that comes and goes gets them too.
        let mut passing = broker.passing("passing-too");
        passing.subscribe(FILTER, QOS1);
        broker.commit();
        assert_eq!(payloads(&passing.all()), ["1", "2", "3"]);
        broker.restart(Death::PowerCut);
        let mut lasting = broker.resumed("lasting");
        broker.commit();
        assert_eq!(payloads(&lasting.all()), ["1", "2", "3"], "{shards} shards");
    }
}

/// [MQTT-4.8.2-5]: its session has ended with the broker.
#[test]
fn qos_2_sent_to_a_member_in_memory_goes_to_no_other_member() {
    for shards in [1, 3] {
        for death in [Death::Killed, Death::PowerCut] {
            let mut broker = DurableBroker::new(shards);
            let (mut passing, publisher) = mixed_group(&mut broker, QOS2);
            publisher.publish("jobs/x", "1", QOS2, 1);
            broker.settle();
            passing.expect_nothing();
            broker.commit();
            assert_eq!(payloads(&passing.all()), ["1"]);
            broker.restart(death);
            let mut lasting = broker.resumed("lasting");
            broker.commit();
            lasting.expect_nothing();
        }
    }
}

#[test]
fn a_group_of_passing_members_costs_the_journal_nothing() {
    let mut broker = DurableBroker::new(2);
    let mut member = broker.passing("member-a");
    member.subscribe(FILTER, QOS1);
    broker.settle();
    let _ = member.all();
    let mut publisher = broker.passing("publisher");
    let before = broker.cluster.counter("journal_records_total");
    publisher.publish("jobs/x", "1", QOS1, 1);
    broker.settle();
    publisher.expect_ack(AckKind::PubAck, 1);
    assert_eq!(payloads(&member.all()), ["1"]);
    assert_eq!(broker.cluster.counter("journal_records_total"), before);
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

fn queues_kept(broker: &DurableBroker) -> usize {
    let mut opened = Journal::open_on(broker.disk.copy(1), Options::default()).unwrap();
    let mut queues = Queues::default();
    opened.recovered.visit(&mut queues).unwrap();
    queues.0
}

/// The queue's name was kept with a version above 0, so it has to be forgotten with a greater one.
#[test]
fn the_queue_of_a_group_whose_members_all_went_with_the_broker_is_forgotten() {
    let mut broker = DurableBroker::new(2);
    let mut passing = broker.passing("passing");
    broker.subscribe(&mut passing, FILTER, QOS1);
    let mut member = broker.lasting("member");
    broker.subscribe(&mut member, FILTER, QOS1);
    // The lasting one leaves, the others remain members until the broker dies.
    member.unsubscribe(FILTER);
    broker.commit();
    assert_eq!(queues_kept(&broker), 1);
    broker.restart(Death::Killed);
    assert_eq!(queues_kept(&broker), 0);
    // And it comes again with its first lasting member.
    let mut member = broker.resumed("member");
    broker.subscribe(&mut member, FILTER, QOS1);
    broker.commit();
    assert_eq!(queues_kept(&broker), 1);
    broker.restart(Death::PowerCut);
    assert_eq!(queues_kept(&broker), 1);
}

/// An identifier whose session, or a client's, is on that shard of two.
pub(crate) fn name_on(shard: usize, what: &str) -> String {
    name_among(2, shard, what)
}

/// A group name that is owned by this one of `shards` shards.
pub(crate) fn name_among(shards: usize, shard: usize, what: &str) -> String {
    let mut names = (0..).map(|i| format!("{what}-{i}"));
    names.find(|name| owner_shard(0, name.as_bytes(), shards) == shard).unwrap()
}

/// The group's shard has no members, so it forgets the group whenever nothing waits there. It must
/// not give a place again that a message on its way to a member has still.
#[test]
fn a_place_that_is_on_its_way_is_not_given_to_another_message() {
    let owner = owner_shard(0, FILTER.as_bytes(), 2);
    let mut broker = DurableBroker::configured(2, |raw| raw.limits.inflight_max = 1);
    let member = name_on(1 - owner, "member");
    let mut away = broker.lasting(&member);
    broker.subscribe(&mut away, FILTER, QOS1);
    away.peer.reset();
    broker.commit();
    let mut publisher = broker.passing(&name_on(owner, "publisher"));
    publisher.publish("jobs/x", "1", QOS1, 1);
    broker.commit();
    publisher.expect_ack(AckKind::PubAck, 1);
    // The member comes: its shard tells the owner, which sends the message there, with its place.
    let back = broker.resuming(&member);
    let waiting = |broker: &DurableBroker| broker.cluster.counter("shared_waiting");
    for _ in 0..20 {
        broker.cluster.loops().turn(1 - owner);
        broker.cluster.commit();
    }
    assert_eq!(waiting(&broker), 1);
    for _ in 0..20 {
        if waiting(&broker) == 0 {
            break;
        }
        broker.cluster.loops().turn(owner);
    }
    // Before that shard has it, another message has to wait.
    publisher.publish("jobs/x", "2", QOS1, 2);
    for _ in 0..20 {
        if waiting(&broker) == 1 {
            break;
        }
        broker.cluster.loops().turn(owner);
    }
    assert_eq!(waiting(&broker), 1, "it does not wait");
    broker.cluster.commit();
    broker.commit();
    publisher.expect_ack(AckKind::PubAck, 2);
    drop(back);
    broker.restart(Death::PowerCut);
    let mut member = broker.resumed(&member);
    let mut got = Vec::new();
    for _ in 0..3 {
        for seen in member.all() {
            if let Seen::Message { payload, id, .. } = seen {
                got.push(payload);
                member.acknowledge(AckKind::PubAck, id);
            }
        }
        broker.commit();
    }
    assert_eq!(got, ["1", "2"]);
}
