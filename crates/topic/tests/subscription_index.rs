//! The subscription index against a list searched with the naive matcher.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tacho_testkit::topics;
use tacho_topic::{SubscriptionIndex, TopicFilter, matches};

/// The options and the identifier of a subscription, as a broker keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Options {
    qos: u8,
    subscription_id: Option<u32>,
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(String, u32, Options),
    Remove(String, u32),
    Match(String),
}

fn options() -> impl Strategy<Value = Options> {
    (0..3_u8, prop::option::of(1..=268_435_455_u32))
        .prop_map(|(qos, subscription_id)| Options { qos, subscription_id })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (topics::filter(), 0..40_u32, options())
            .prop_map(|(filter, key, options)| Operation::Insert(filter, key, options)),
        2 => (topics::filter(), 0..40_u32).prop_map(|(filter, key)| Operation::Remove(filter, key)),
        1 => topics::topic().prop_map(Operation::Match),
    ]
}

/// All subscriptions by filter and key.
type Oracle = BTreeMap<(String, u32), Options>;

fn check_match(index: &SubscriptionIndex<u32, Options>, oracle: &Oracle, topic: &str) {
    let mut found = Vec::new();
    index.for_each_match(topic, |&key, &options| found.push((key, options)));
    found.sort_unstable();
    let is_match = |((filter, _), _): &(&(String, u32), &Options)| matches(filter, topic);
    let mut expected: Vec<_> =
        oracle.iter().filter(is_match).map(|((_, key), &options)| (*key, options)).collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "matches of {topic:?}");
}

proptest! {
    // 43
    #[test]
    fn equals_the_naive_matcher(
        operations in prop::collection::vec(operation(), 1..200),
        topics in prop::collection::vec(topics::topic(), 20),
    ) {
        let mut index = SubscriptionIndex::new();
        let mut oracle = Oracle::new();
        for operation in operations {
            match operation {
                Operation::Insert(filter, key, options) => {
                    let parsed = TopicFilter::parse(&filter).unwrap();
                    let replaced = index.insert(&parsed, key, options);
                    prop_assert_eq!(index.get(&parsed, key), Some(&options));
                    prop_assert!(index.contains_filter(&parsed));
                    prop_assert_eq!(replaced, oracle.insert((filter, key), options));
                }
                Operation::Remove(filter, key) => {
                    let parsed = TopicFilter::parse(&filter).unwrap();
                    let removed = index.remove(&parsed, key);
                    prop_assert_eq!(index.get(&parsed, key), None);
                    prop_assert_eq!(removed, oracle.remove(&(filter.clone(), key)));
                    let remains = oracle.keys().any(|(other, _)| *other == filter);
                    prop_assert_eq!(index.contains_filter(&parsed), remains);
                }
                Operation::Match(topic) => check_match(&index, &oracle, &topic),
            }
            prop_assert_eq!(index.len(), oracle.len());
        }
        topics.iter().for_each(|topic| check_match(&index, &oracle, topic));
        for ((filter, key), options) in &oracle {
            let parsed = TopicFilter::parse(filter).unwrap();
            prop_assert_eq!(index.remove(&parsed, *key), Some(*options));
        }
        prop_assert!(index.is_empty());
        topics.iter().for_each(|topic| check_match(&index, &Oracle::new(), topic));
    }

    #[test]
    fn one_crowded_filter_equals_a_map(
        operations in prop::collection::vec((any::<bool>(), 0..80_u32), 1..400),
        is_exact: bool,
    ) {
        let filter = TopicFilter::parse(if is_exact { "t" } else { "t/#" }).unwrap();
        let mut index = SubscriptionIndex::new();
        let mut oracle = BTreeMap::new();
        for (value, (is_insert, key)) in operations.into_iter().enumerate() {
            if is_insert {
                prop_assert_eq!(index.insert(&filter, key, value), oracle.insert(key, value));
            } else {
                prop_assert_eq!(index.remove(&filter, key), oracle.remove(&key));
            }
        }
        let mut found = Vec::new();
        index.for_each_match("t", |&key, &value| found.push((key, value)));
        found.sort_unstable();
        prop_assert_eq!(found, oracle.into_iter().collect::<Vec<_>>());
    }
}
