//! The checker reports every kind of finding, and no false ones.

use std::collections::BTreeMap;

use tacho_codec::QoS;

use super::{Ending, Kind, Ledger, Message, Viewer};
use crate::cast::TOPICS;
use crate::wire::{self, Received};

const ONE: QoS = QoS::AtLeastOnce;
const TWO: QoS = QoS::ExactlyOnce;
const READER: Viewer = Viewer { client: 1, epoch: 1 };
const OTHER: Viewer = Viewer { client: 2, epoch: 1 };
/// `t/#`, a shared subscription, and a topic of each.
const FILTER: usize = 0;
const TOPIC: usize = 0;
const GROUP: usize = 7;
const GROUP_TOPIC: usize = 10;
const RETAINED_TOPIC: usize = 7;

fn ledger() -> Ledger {
    let names = ["publisher", "reader", "other"].map(str::to_owned).to_vec();
    let mut ledger = Ledger { names, ..Ledger::default() };
    let span = ledger.subscribing(READER, FILTER);
    ledger.subscribed(span);
    ledger
}

fn send(ledger: &mut Ledger, topic: usize, qos: QoS) -> u64 {
    let id = ledger.published(Message::new(0, topic, qos));
    ledger.sent(id);
    id
}

/// Publishes a message that is acknowledged.
fn acked(ledger: &mut Ledger, topic: usize, qos: QoS) -> u64 {
    let id = send(ledger, topic, qos);
    ledger.acknowledged(id, false);
    id
}

fn got(topic: usize, qos: QoS, id: u64) -> Received {
    let payload = wire::payload(id, wire::PAYLOAD_LEN_MIN);
    Received { topic: TOPICS[topic].to_owned(), qos, retain: false, packet_id: None, payload }
}

fn found(ledger: &Ledger) -> Vec<(Kind, u64)> {
    let all = [
        Kind::Lost,
        Kind::Twice,
        Kind::Disorder,
        Kind::Damaged,
        Kind::Unasked,
        Kind::Refused,
        Kind::Session,
        Kind::Retained,
        Kind::Will,
    ];
    let counts = all.map(|kind| (kind, ledger.findings.count(kind)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn messages_in_order_are_no_finding() {
    let mut ledger = ledger();
    for qos in [ONE, TWO, ONE, TWO] {
        let id = acked(&mut ledger, TOPIC, qos);
        ledger.delivered(READER, &got(TOPIC, qos, id));
    }
    assert_eq!(ledger.missing(), 0);
    ledger.settle();
    assert_eq!(found(&ledger), []);
    assert_eq!((ledger.totals.acknowledged, ledger.totals.delivered), (4, 4));
}

#[test]
fn an_acknowledged_message_that_does_not_arrive_is_lost() {
    let mut ledger = ledger();
    let (first, second) = (acked(&mut ledger, TOPIC, ONE), acked(&mut ledger, TOPIC, TWO));
    ledger.delivered(READER, &got(TOPIC, ONE, first));
    assert_eq!(ledger.missing(), 1);
    ledger.settle();
    assert_eq!(found(&ledger), [(Kind::Lost, 1)]);
    let told = &ledger.findings.texts()[0];
    assert!(told.contains(&format!("message {second} of publisher to t/0")), "{told}");
    assert!(told.contains(&format!("for reader; last received: {first}")), "{told}");
}

#[test]
fn an_unacknowledged_message_may_be_lost() {
    let mut ledger = ledger();
    send(&mut ledger, TOPIC, TWO);
    assert_eq!(ledger.missing(), 0);
}

#[test]
fn messages_before_suback_or_after_unsubscribe_are_not_missing() {
    let mut ledger = ledger();
    let span = ledger.subscribing(OTHER, FILTER);
    let early = acked(&mut ledger, TOPIC, TWO);
    ledger.delivered(READER, &got(TOPIC, TWO, early));
    ledger.subscribed(span);
    let spans = ledger.unsubscribing(READER, FILTER);
    ledger.unsubscribed(&spans);
    let late = acked(&mut ledger, TOPIC, TWO);
    assert_eq!(ledger.missing(), 1, "only for the other client");
    ledger.delivered(OTHER, &got(TOPIC, TWO, late));
    assert_eq!(ledger.missing(), 0);
    assert_eq!(found(&ledger), []);
    ledger.delivered(READER, &got(TOPIC, TWO, late));
    assert_eq!(found(&ledger), [(Kind::Unasked, 1)]);
}

#[test]
fn a_message_acknowledged_before_a_subscribe_must_not_arrive() {
    let mut ledger = ledger();
    let id = acked(&mut ledger, TOPIC, TWO);
    ledger.subscribing(OTHER, FILTER);
    ledger.delivered(OTHER, &got(TOPIC, TWO, id));
    assert_eq!(found(&ledger), [(Kind::Unasked, 1)]);
}

#[test]
fn a_duplicate_at_qos_2_is_reported() {
    let mut ledger = ledger();
    let id = acked(&mut ledger, TOPIC, TWO);
    ledger.delivered(READER, &got(TOPIC, TWO, id));
    ledger.delivered(READER, &got(TOPIC, TWO, id));
    assert_eq!(found(&ledger), [(Kind::Twice, 1)]);
}

#[test]
fn a_late_duplicate_at_qos_2_is_reported() {
    let mut ledger = ledger();
    let id = acked(&mut ledger, TOPIC, TWO);
    ledger.delivered(READER, &got(TOPIC, TWO, id));
    (0..2).for_each(|_| ledger.settle());
    assert!(ledger.message(id).is_none(), "the message is no longer kept");
    ledger.delivered(READER, &got(TOPIC, TWO, id));
    assert_eq!(found(&ledger), [(Kind::Twice, 1)]);
}

#[test]
fn a_qos_1_publish_sent_twice_may_arrive_twice() {
    let mut ledger = ledger();
    let id = send(&mut ledger, TOPIC, ONE);
    ledger.sent(id);
    let span = ledger.subscribing(OTHER, FILTER);
    ledger.subscribed(span);
    for _ in 0..2 {
        ledger.delivered(READER, &got(TOPIC, ONE, id));
    }
    assert_eq!(found(&ledger), []);
    assert_eq!(ledger.totals.again_qos_1, 1);
}

#[test]
fn a_message_after_a_later_one_is_out_of_order() {
    let mut ledger = ledger();
    let (first, second) = (acked(&mut ledger, TOPIC, TWO), acked(&mut ledger, TOPIC, TWO));
    ledger.delivered(READER, &got(TOPIC, TWO, second));
    ledger.delivered(READER, &got(TOPIC, TWO, first));
    assert_eq!(found(&ledger), [(Kind::Disorder, 1)]);
}

#[test]
fn order_is_checked_per_qos_and_for_first_copies() {
    let mut ledger = ledger();
    let (one, two) = (acked(&mut ledger, TOPIC, ONE), acked(&mut ledger, TOPIC, TWO));
    ledger.delivered(READER, &got(TOPIC, TWO, two));
    ledger.delivered(READER, &got(TOPIC, ONE, one));
    let later = acked(&mut ledger, TOPIC, ONE);
    ledger.delivered(READER, &got(TOPIC, ONE, later));
    ledger.delivered(READER, &got(TOPIC, ONE, one));
    assert_eq!(found(&ledger), []);
}

#[test]
fn an_altered_payload_is_damage() {
    let mut ledger = ledger();
    let id = acked(&mut ledger, TOPIC, TWO);
    let mut other = got(TOPIC, TWO, id);
    other.payload.push(0);
    ledger.delivered(READER, &other);
    assert_eq!(found(&ledger), [(Kind::Damaged, 1)]);
}

#[test]
fn one_member_of_a_group_gets_each_message() {
    let mut ledger = ledger();
    for member in [READER, OTHER] {
        let span = ledger.subscribing(member, GROUP);
        ledger.subscribed(span);
    }
    let id = acked(&mut ledger, GROUP_TOPIC, TWO);
    assert_eq!(ledger.missing(), 1);
    ledger.delivered(OTHER, &got(GROUP_TOPIC, TWO, id));
    assert_eq!((ledger.missing(), found(&ledger)), (0, vec![]));
    ledger.delivered(READER, &got(GROUP_TOPIC, TWO, id));
    assert_eq!(found(&ledger), [(Kind::Twice, 1)]);
    acked(&mut ledger, GROUP_TOPIC, ONE);
    ledger.settle();
    assert_eq!(found(&ledger), [(Kind::Lost, 1), (Kind::Twice, 1)]);
}

#[test]
fn a_lost_session_loses_its_acknowledged_messages() {
    let mut ledger = ledger();
    acked(&mut ledger, TOPIC, TWO);
    ledger.session_lost(READER);
    assert_eq!(found(&ledger), [(Kind::Lost, 1), (Kind::Session, 1)]);
    assert_eq!(ledger.missing(), 0, "it is counted once");
}

fn retain(ledger: &mut Ledger, len: usize) -> u64 {
    let message = Message { retain: true, len, ..Message::new(0, RETAINED_TOPIC, TWO) };
    let id = ledger.published(message);
    ledger.sent(id);
    id
}

#[test]
fn the_retained_message_is_the_last_acknowledged_or_a_later_one() {
    let mut ledger = ledger();
    let old = retain(&mut ledger, 8);
    ledger.acknowledged(old, false);
    let last = retain(&mut ledger, 8);
    ledger.acknowledged(last, false);
    let open = retain(&mut ledger, 8);
    assert!(!ledger.retained_is_complete(&BTreeMap::new()));
    let see = |id| BTreeMap::from([(RETAINED_TOPIC, id)]);
    for (seen, wrong) in [(last, 0), (open, 0), (old, 1)] {
        let mut ledger = Ledger { retained: ledger.retained.clone(), ..Ledger::default() };
        ledger.check_retained(&see(seen));
        assert_eq!(ledger.findings.count(Kind::Retained), wrong, "{seen}");
    }
    ledger.check_retained(&see(open));
    ledger.check_retained(&see(last));
    assert_eq!(
        found(&ledger),
        [(Kind::Retained, 1)],
        "a retained message that was received must stay"
    );
}

#[test]
fn a_deleted_retained_message_stays_deleted() {
    let mut ledger = ledger();
    let id = retain(&mut ledger, 8);
    ledger.acknowledged(id, false);
    let gone = retain(&mut ledger, 0);
    ledger.acknowledged(gone, false);
    ledger.check_retained(&BTreeMap::new());
    assert_eq!(found(&ledger), []);
    ledger.check_retained(&BTreeMap::from([(RETAINED_TOPIC, id)]));
    assert_eq!(found(&ledger), [(Kind::Retained, 1)]);
}

fn will(ledger: &mut Ledger, delay_s: u32) -> u64 {
    let id = ledger.published(Message { is_will: true, ..Message::new(0, 13, TWO) });
    ledger.sent(id);
    ledger.wills.armed(id, 0, delay_s, true);
    id
}

#[test]
fn the_will_of_a_lost_connection_is_published_once() {
    let mut ledger = ledger();
    let (first, second) = (will(&mut ledger, 0), will(&mut ledger, 2));
    for id in [first, second] {
        ledger.wills.ended(id, Ending::Lost { since_ms: 5 });
    }
    assert_eq!(ledger.wills.missing(), 2);
    ledger.will_seen(first);
    ledger.check_wills();
    assert_eq!(found(&ledger), [(Kind::Will, 1)], "the second will is missing");
    ledger.will_seen(first);
    assert_eq!(found(&ledger), [(Kind::Will, 2)], "the first will was published twice");
}

#[test]
fn no_will_after_disconnect_or_a_resume_in_time() {
    let mut ledger = ledger();
    let (polite, resumed) = (will(&mut ledger, 0), will(&mut ledger, 2));
    ledger.wills.ended(polite, Ending::Polite { at_ms: 1_000 });
    ledger.wills.ended(resumed, Ending::Lost { since_ms: 1_000 });
    ledger.wills.connecting(0, 2_000);
    ledger.wills.resumed(0, 2_500, false);
    assert_eq!(ledger.wills.missing(), 0);
    ledger.will_seen(polite);
    ledger.will_seen(resumed);
    assert_eq!(found(&ledger), [(Kind::Will, 2)]);
}

#[test]
fn a_will_deletion_is_durable_after_the_commit_delay() {
    let mut ledger = ledger();
    let (fresh, firm) = (will(&mut ledger, 0), will(&mut ledger, 0));
    ledger.wills.ended(fresh, Ending::Polite { at_ms: 1_900 });
    ledger.wills.ended(firm, Ending::Polite { at_ms: 500 });
    ledger.wills.killed(2_000, false);
    ledger.will_seen(fresh);
    assert_eq!(found(&ledger), []);
    ledger.will_seen(firm);
    assert_eq!(found(&ledger), [(Kind::Will, 1)]);
}

#[test]
fn a_resume_that_is_late_or_in_doubt_leaves_a_will_open() {
    let mut ledger = ledger();
    let (late, doubtful) = (will(&mut ledger, 1), will(&mut ledger, 1));
    ledger.wills.ended(late, Ending::Lost { since_ms: 0 });
    ledger.wills.resumed(0, 1_500, false);
    ledger.wills.ended(doubtful, Ending::Lost { since_ms: 2_000 });
    ledger.wills.perhaps_resumed(0);
    ledger.will_seen(late);
    ledger.check_wills();
    assert_eq!(found(&ledger), []);
}

#[test]
fn a_resume_on_a_failing_disk_leaves_wills_open_only_if_the_broker_dies() {
    for dies in [false, true] {
        let mut ledger = ledger();
        let (before, of_resume) = (will(&mut ledger, 2), will(&mut ledger, 0));
        ledger.wills.ended(before, Ending::Lost { since_ms: 1_000 });
        ledger.wills.resumed(0, 1_500, true);
        ledger.wills.stored_later(of_resume);
        ledger.wills.ended(of_resume, Ending::Lost { since_ms: 2_000 });
        assert_eq!(ledger.wills.missing(), 1);
        if dies {
            ledger.wills.killed(2_500, true);
        }
        ledger.will_seen(before);
        ledger.check_wills();
        let wanted: &[_] = if dies { &[] } else { &[(Kind::Will, 2)] };
        assert_eq!(found(&ledger), wanted);
    }
}
