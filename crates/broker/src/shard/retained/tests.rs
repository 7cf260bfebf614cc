use std::sync::Arc;

use tacho_codec::{Publish, PublishProperties, QoS};
use tacho_topic::{RetainedCursor, TopicFilter};

use super::replays::Owner;
use super::replays::Replays;
use super::*;
use crate::keys::{ClientKey, TenantId};
use crate::message::{Intake, Source};

mod races;

fn totals(retained_count_max: usize, retained_bytes_max: u64) -> Arc<RetainedTotals> {
    let limits = Limits { retained_count_max, retained_bytes_max, ..Limits::default() };
    Arc::new(RetainedTotals::new(&limits))
}

/// The store of a shard, in these totals.
fn store_in(totals: &Arc<RetainedTotals>) -> RetainedStore {
    RetainedStore::new(RetainedCounts::new(Arc::clone(totals), Arc::default()))
}

/// A store whose limits allow 100 messages and 10,000 bytes.
fn small_store() -> (RetainedStore, Arc<RetainedTotals>) {
    let totals = totals(100, 10_000);
    (store_in(&totals), totals)
}

fn message(topic: &str, payload: &[u8], retained_version: u64, routed_version: u64) -> Message {
    expiring(topic, payload, retained_version, routed_version, None)
}

fn expiring(
    topic: &str,
    payload: &[u8],
    retained_version: u64,
    routed_version: u64,
    message_expiry_s: Option<u32>,
) -> Message {
    let client = ClientKey { tenant: TenantId::DEFAULT, client_id: Arc::from("publisher") };
    let source = Source::for_client(&client);
    let properties = PublishProperties { message_expiry_s, ..Default::default() };
    let publish = Publish { topic, payload, retain: true, properties, ..Publish::default() };
    let intake = Intake { now_ns: 0, routed_version, source, retained_version, user: None };
    Message::from_publish(topic.into(), &publish, intake)
}

fn options() -> SubscriptionOptions {
    SubscriptionOptions {
        qos: QoS::AtLeastOnce,
        no_local: false,
        retain_as_published: false,
        id: 0,
        since: 0,
    }
}

fn filter(text: &str) -> TopicFilter {
    TopicFilter::parse(text).unwrap()
}

/// All messages that a replay of `#` reads with `steps` topics per request, and the requests made.
fn read_all(store: &RetainedStore, now_ns: u64, steps: usize) -> (Vec<String>, usize) {
    let (mut topics, mut cursor, mut reads) = (Vec::new(), RetainedCursor::default(), 0);
    loop {
        let mut budget = steps;
        let (found, next) = store.read(&filter("#"), cursor, u64::MAX, now_ns, &mut budget);
        topics.extend(found.iter().map(|m| m.topic().to_owned()));
        reads += 1;
        match next {
            Some(next) => cursor = next,
            None => return (topics, reads),
        }
    }
}

#[test]
fn the_newest_version_counts_in_whatever_order_they_arrive() {
    for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [2, 1, 3], [1, 3, 2], [3, 1, 2]] {
        // The last one is a value, or a deletion.
        for last in [&b"last"[..], b""] {
            let (mut store, totals) = small_store();
            for version in order {
                let payload = if version == 3 { last } else { b"old" };
                store.arrive(message("t", payload, version, 0));
            }
            let kept = store.get("t").map(|m| m.payload());
            assert_eq!(kept, (!last.is_empty()).then_some(last), "{order:?}");
            assert_eq!(totals.now(), (store.len(), store.bytes()), "{order:?}");
            assert_eq!(store.removed_len(), 0, "all have arrived, so nothing older can come");
            assert!(store.has_arrived(3) && !store.has_arrived(4));
        }
    }
}

#[test]
fn a_removal_is_remembered_only_while_something_older_may_come() {
    let (mut store, _) = small_store();
    for version in 2..=5_000 {
        let topic = format!("t/{version}");
        assert_eq!(store.arrive(message(&topic, b"", version, 0)), Outcome::Removed);
    }
    assert_eq!(store.removed_len(), 4_999, "version 1 has not arrived");
    assert!(!store.has_arrived(1));
    let late = store.arrive(message("t/9", b"late", 1, 0));
    assert_eq!((late, store.removed_len(), store.len()), (Outcome::Outdated, 0, 0));
}

#[test]
fn limits_are_totals_and_what_does_not_fit_leaves_nothing_out_of_date() {
    let totals = totals(2, 100);
    let mut stores = [store_in(&totals), store_in(&totals)];
    let mut versions = [0, 0];
    let mut arrive = |owner: usize, topic: &str, payload: &[u8]| {
        versions[owner] += 1;
        let message = message(topic, payload, versions[owner], 0);
        let outcome = stores[owner].arrive(message);
        let sum = |of: &dyn Fn(&RetainedStore) -> u64| stores.iter().map(of).sum::<u64>();
        let now = (sum(&|s| s.len() as u64) as usize, sum(&|s| s.bytes()));
        assert_eq!(totals.now(), now, "{topic}");
        outcome
    };
    assert_eq!(arrive(0, "a", b"1"), Outcome::Retained);
    assert_eq!(arrive(1, "b", b"1"), Outcome::Retained);
    assert_eq!(arrive(0, "c", b"1"), Outcome::Refused, "two are there");
    assert_eq!(arrive(1, "b", &[7; 90]), Outcome::Retained);
    assert_eq!(arrive(0, "a", &[7; 20]), Outcome::Refused, "too many bytes");
    assert_eq!(arrive(0, "c", b"1"), Outcome::Retained, "the old value of `a` is gone too");
    assert_eq!(arrive(1, "b", b""), Outcome::Removed);
    assert_eq!(arrive(0, "c", b""), Outcome::Removed);
    assert_eq!(totals.now(), (0, 0));
}

#[test]
fn expired_messages_are_freed_in_parts() {
    const SECOND_NS: u64 = 1_000_000_000;
    let (mut store, totals) = small_store();
    for version in 1..=30 {
        let seconds = if version % 3 == 0 { None } else { Some(version as u32) };
        let topic = format!("t/{version}");
        store.arrive(expiring(&topic, b"x", version, 0, seconds));
    }
    // Replaced by one that does not expire, and by one that does earlier.
    store.arrive(message("t/1", b"x", 31, 0));
    store.arrive(expiring("t/29", b"x", 32, 0, Some(3)));
    assert_eq!(store.next_expiry_ns(), Some(2 * SECOND_NS));
    let (topics, _) = read_all(&store, 5 * SECOND_NS, 100);
    assert_eq!(topics.len(), 26, "what has expired is not replayed, freed or not");
    assert_eq!(store.expire(5 * SECOND_NS, 3).len(), 3);
    assert_eq!(store.expire(5 * SECOND_NS, 3).len(), 1);
    assert_eq!((store.len(), totals.now().0), (26, 26));
    assert_eq!(store.next_expiry_ns(), Some(7 * SECOND_NS));
    assert_eq!(store.expire(u64::MAX - 1, 100).len(), 15);
    assert_eq!((store.len(), totals.now().0, store.next_expiry_ns()), (11, 11, None));
    assert_eq!(totals.now().1, store.bytes());
}

#[test]
fn an_answer_is_bounded_in_topics_messages_and_bytes() {
    let mut store = store_in(&totals(usize::MAX, u64::MAX));
    for version in 1..=1_000 {
        let topic = format!("t/{version}");
        store.arrive(message(&topic, b"x", version, version));
    }
    let (topics, reads) = read_all(&store, 0, 10);
    assert_eq!(topics.len(), 1_000);
    assert!(reads >= 100, "{reads} reads of 10 topics");
    let (topics, reads) = read_all(&store, 0, usize::MAX);
    assert_eq!(topics.len(), 1_000);
    assert!(reads >= 1_000 / 64, "{reads} reads of 64 messages");
    // Topics that do not match are visited, too.
    let mut budget = 5_000;
    let (found, next) = store.read(&filter("#"), RetainedCursor::default(), 1, 0, &mut budget);
    assert!(found.is_empty() && next.is_some());
    assert_eq!(budget, 5_000 - 256);
    for version in 1_001..=1_010 {
        let topic = format!("large/{version}");
        store.arrive(message(&topic, &[7; 100_000], version, version));
    }
    let (found, next) =
        store.read(&filter("large/#"), RetainedCursor::default(), u64::MAX, 0, &mut budget);
    assert_eq!((found.len(), next.is_some()), (3, true), "256 KiB and the message beyond");
}

#[test]
fn a_long_replay_lets_short_ones_pass() {
    let mut replays = Replays::default();
    let owner = Owner { shard: 0, after: 0 };
    replays.start(filter("#"), options(), 1, vec![owner]);
    let first = replays.ask().unwrap();
    assert_eq!(replays.ask().map(|wanted| wanted.replay), None, "one at a time");
    replays.start(filter("a"), options(), 2, vec![owner]);
    let more = Some(RetainedCursor::default());
    replays.answered(first.replay, vec![message("b", b"x", 1, 0)], more);
    assert_eq!(replays.ask().map(|wanted| wanted.replay), None, "a message waits to be taken");
    replays.pop_front();
    let second = replays.ask().unwrap();
    assert_eq!(second.filter, filter("a"));
    replays.answered(second.replay, Vec::new(), None);
    let third = replays.ask().unwrap();
    assert_eq!(third.replay, first.replay);
    replays.cancel(&filter("#"));
    assert!(!replays.is_over(), "an answer is on its way");
    replays.answered(third.replay, vec![message("c", b"x", 2, 0)], None);
    assert!(replays.front().is_none() && replays.is_over());
}

#[test]
fn messages_read_ahead_are_dropped_with_their_replay() {
    let mut replays = Replays::default();
    let owner = Owner { shard: 0, after: 0 };
    replays.start(filter("+"), options(), 5, vec![owner]);
    let wanted = replays.ask().unwrap();
    let found = ["a", "b", "c"].map(|topic| message(topic, b"x", 1, 0)).to_vec();
    replays.answered(wanted.replay, found, None);
    // A newer message of `a` arrives live.
    replays.note(&message("a", b"y", 2, 5), 0);
    assert_eq!(replays.front().unwrap().0.topic(), "b");
    let other = SubscriptionOptions { qos: QoS::AtMostOnce, ..options() };
    replays.change(&filter("+"), other);
    assert_eq!(replays.front().unwrap().1, &other);
    replays.cancel(&filter("+"));
    assert!(replays.is_over());
}

#[test]
fn an_older_message_that_comes_live_late_lets_no_stale_one_pass() {
    let mut replays = Replays::default();
    replays.start(filter("#"), options(), 7, vec![Owner { shard: 0, after: 0 }]);
    let asked = replays.ask().unwrap();
    // Two concurrent publishers: the newer message arrives first.
    replays.note(&message("a", b"x", 15, 7), 0);
    replays.note(&message("a", b"x", 12, 7), 0);
    let known = vec![message("a", b"x", 14, 6), message("b", b"x", 13, 6)];
    replays.answered(asked.replay, known, None);
    let next = replays.front().map(|(message, _)| message.topic().to_owned());
    assert_eq!(next.as_deref(), Some("b"));
}
