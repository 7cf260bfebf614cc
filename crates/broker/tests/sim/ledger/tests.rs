//! What the ledger concludes where a promise has an end, and that it has one only there.

use tacho_codec::{QoS, Version};

use super::{Accepted, Ending, Ledger, Message, NEVER, Viewer, Wills};
use crate::setup::{TOPICS, WILL, Wish};
use crate::wire::{Received, WillWish};

/// `p/0`, and the filter for it.
const TOPIC: usize = 0;

fn message() -> Message {
    Message {
        publisher: 0,
        epoch: 1,
        topic: TOPIC,
        qos: QoS::AtLeastOnce,
        retain: false,
        len: 4,
        expiry_s: None,
        is_will: false,
        first_sent: NEVER,
        done: NEVER,
        refused: false,
        sends: 0,
        refusals_before: 0,
        comes_late: false,
    }
}

const VIEWER: Viewer = Viewer { client: 1, epoch: 1, version: Version::V5 };

/// A client has subscribed to the topic.
fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    let wish = Wish { qos: QoS::AtLeastOnce, no_local: false, retain_as_published: false, id: 0 };
    let subscribing =
        ledger.subscribing((VIEWER.client, VIEWER.epoch), TOPIC, wish, (false, false));
    ledger.subscribed(subscribing);
    ledger
}

/// That subscriber gets a message.
fn delivered(ledger: &mut Ledger, id: u32) {
    let got = Received {
        topic: TOPICS[TOPIC].to_owned(),
        alias: None,
        qos: QoS::AtLeastOnce,
        retain: false,
        dup: false,
        packet_id: None,
        subscription_ids: Vec::new(),
        expiry_s: None,
        payload: vec![0; 4],
    };
    ledger.delivered(VIEWER, id, TOPICS[TOPIC], &got);
}

/// A publisher sends two messages, and the first one again when the broker has refused so many; a
/// subscriber gets the second one first.
fn repeated_behind_a_newer_one(refusals: u64) {
    let mut ledger = ledger();
    ledger.published(message());
    ledger.published(message());
    ledger.sent(0, 3);
    ledger.sent(1, 3 + refusals);
    ledger.sent(0, 3 + refusals);
    delivered(&mut ledger, 1);
    delivered(&mut ledger, 0);
}

#[test]
fn a_message_refused_at_first_may_arrive_behind_newer_ones() {
    repeated_behind_a_newer_one(1);
}

#[test]
#[should_panic(expected = "it came after 1")]
fn a_repeated_message_that_was_not_refused_keeps_its_place() {
    repeated_behind_a_newer_one(0);
}

/// A message is sent `sends` times and arrives in `copies` copies, with one crash in between.
fn comes_again_after_a_crash(sends: u32, copies: u32) {
    let mut ledger = ledger();
    ledger.published(message());
    (0..sends).for_each(|_| ledger.sent(0, 0));
    (0..sends).for_each(|_| delivered(&mut ledger, 0));
    ledger.crashed();
    (sends..copies).for_each(|_| delivered(&mut ledger, 0));
}

#[test]
fn each_message_that_one_was_taken_for_may_come_again_after_a_crash() {
    comes_again_after_a_crash(1, 2);
    comes_again_after_a_crash(2, 4);
}

#[test]
#[should_panic(expected = "copy 3, 2 allowed")]
fn a_message_that_was_sent_once_comes_again_once() {
    comes_again_after_a_crash(1, 3);
}

#[test]
#[should_panic(expected = "copy 5, 4 allowed")]
fn a_message_that_was_sent_twice_comes_again_twice() {
    comes_again_after_a_crash(2, 5);
}

/// A session is resumed with a will, there are so many commits, and then the broker dies. Returns
/// how many wills are missing if no client sees it.
fn missing_after_a_crash(unkept: bool, commits: u32) -> u64 {
    let mut wills = Wills::default();
    let qos = QoS::ExactlyOnce;
    wills.armed(WillWish { id: 7, topic: WILL, qos, retain: false, delay_s: 2 }, 0, true);
    wills.connecting(0);
    wills.connected(0, Some(7), Accepted { session_present: true, lasted: true, unkept }, 0);
    (0..commits).for_each(|_| wills.committed());
    wills.ended(7, Ending::Lost { since_ns: 0, session_ends: false });
    wills.crashed();
    wills.delays_over();
    wills.verdict(|_| 0, 0)
}

#[test]
fn a_will_is_promised_once_it_is_kept() {
    assert_eq!(missing_after_a_crash(false, 0), 1, "CONNACK has said that it is kept");
    assert_eq!(missing_after_a_crash(true, 0), 0);
    assert_eq!(missing_after_a_crash(true, 1), 0, "that was what had waited for the disk before");
    assert_eq!(missing_after_a_crash(true, 2), 1, "there was space since");
}

/// The same with a will that the resumption deletes, and that is seen after all.
fn seen_after_a_crash(unkept: bool, commits: u32) -> u64 {
    let mut wills = Wills::default();
    let qos = QoS::ExactlyOnce;
    wills.armed(WillWish { id: 7, topic: WILL, qos, retain: false, delay_s: 2 }, 0, true);
    wills.ended(7, Ending::Lost { since_ns: 0, session_ends: false });
    wills.connecting(0);
    wills.connected(0, None, Accepted { session_present: true, lasted: true, unkept }, 1);
    (0..commits).for_each(|_| wills.committed());
    wills.crashed();
    wills.verdict(|_| 1, 0)
}

#[test]
fn a_will_may_come_until_it_is_kept_that_it_is_deleted() {
    assert_eq!((seen_after_a_crash(true, 0), seen_after_a_crash(true, 1)), (0, 0));
}

#[test]
#[should_panic(expected = "was published")]
fn a_deleted_will_does_not_come_once_there_was_space() {
    seen_after_a_crash(true, 2);
}

#[test]
#[should_panic(expected = "was published")]
fn a_will_that_a_kept_resumption_deletes_does_not_come() {
    seen_after_a_crash(false, 0);
}

/// A client disconnects, the broker makes this number of commits and dies, and the will is seen.
fn seen_after_a_goodbye(stuck: bool, commits: u32) {
    let mut wills = Wills::default();
    let qos = QoS::ExactlyOnce;
    wills.armed(WillWish { id: 7, topic: WILL, qos, retain: false, delay_s: 0 }, 0, true);
    wills.ended(7, Ending::Polite { stuck });
    (0..commits).for_each(|_| wills.committed());
    wills.crashed();
    wills.verdict(|_| 1, 0);
}

#[test]
fn a_goodbye_may_not_count_until_it_is_kept() {
    seen_after_a_goodbye(false, 0);
    seen_after_a_goodbye(true, 1);
}

#[test]
#[should_panic(expected = "was published")]
fn a_goodbye_that_is_kept_counts() {
    seen_after_a_goodbye(false, 1);
}

#[test]
#[should_panic(expected = "was published")]
fn a_goodbye_on_a_full_disk_counts_once_there_was_space() {
    seen_after_a_goodbye(true, 2);
}
