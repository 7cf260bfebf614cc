//! The retained index and its cursors against a map searched with the naive matcher.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tacho_testkit::topics;
use tacho_topic::{Progress, RetainedCursor, RetainedIndex, TopicFilter, matches};

/// The number of steps within which every replay in these tests must end.
const STEPS_MAX: usize = 10_000;

proptest! {
    #[test]
    fn replay_equals_the_naive_matcher(
        topics in prop::collection::btree_map(topics::topic(), any::<u32>(), 0..60),
        removed in prop::collection::vec(topics::topic(), 0..20),
        filters in prop::collection::vec(topics::filter(), 10),
        budget in 1..20_usize,
    ) {
        let mut index = RetainedIndex::new();
        let mut oracle = topics;
        for (at, (topic, &value)) in oracle.iter().enumerate() {
            let replaced = if at % 2 == 0 {
                index.insert(topic, value)
            } else {
                index.insert_shared(&topic.as_str().into(), value)
            };
            prop_assert_eq!(replaced, None);
        }
        for topic in &removed {
            prop_assert_eq!(index.remove(topic), oracle.remove(topic));
        }
        for (topic, value) in &mut oracle {
            prop_assert_eq!(index.get(topic), Some(&*value));
            *value = value.wrapping_add(1);
            let shared = topic.as_str().into();
            prop_assert_eq!(index.insert_shared(&shared, *value), Some(value.wrapping_sub(1)));
        }
        prop_assert_eq!(index.len(), oracle.len());
        prop_assert_eq!(index.iter().count(), oracle.len());
        for filter in &filters {
            let parsed = TopicFilter::parse(filter).unwrap();
            let mut cursor = RetainedCursor::default();
            let mut found = Vec::new();
            for step in 0.. {
                prop_assert!(step < STEPS_MAX, "the replay of {} ends", filter);
                let before = found.len();
                let progress = index.next(&parsed, &mut cursor, budget, |topic, &value| {
                    found.push((topic.to_owned(), value));
                });
                prop_assert!(found.len() - before <= budget);
                if progress == Progress::Done {
                    break;
                }
            }
            let nothing_more = index.next(&parsed, &mut cursor, budget, |_, _| {
                panic!("an ended replay delivers nothing");
            });
            prop_assert_eq!(nothing_more, Progress::Done);
            found.sort_unstable();
            let expected: Vec<_> =
                oracle.clone().into_iter().filter(|(topic, _)| matches(filter, topic)).collect();
            prop_assert_eq!(found, expected, "replay of {}", filter);
        }
    }

    #[test]
    fn replay_under_changes_neither_misses_nor_repeats_topics(
        first in prop::collection::btree_set(topics::topic(), 1..60),
        changes in prop::collection::vec((any::<bool>(), topics::topic()), 1..120),
        filter in topics::filter(),
        budget in 1..4_usize,
    ) {
        let mut index = RetainedIndex::new();
        for topic in &first {
            index.insert(topic, ());
        }
        let parsed = TopicFilter::parse(&filter).unwrap();
        let mut cursor = RetainedCursor::default();
        let mut delivered = BTreeMap::<String, usize>::new();
        // The topics present from the first step to the last, and all that were ever present.
        let (mut throughout, mut ever): (BTreeSet<_>, BTreeSet<_>) = (first.clone(), first);
        let mut changes = changes.into_iter();
        for step in 0.. {
            prop_assert!(step < STEPS_MAX, "the replay ends");
            let progress = index.next(&parsed, &mut cursor, budget, |topic, ()| {
                *delivered.entry(topic.to_owned()).or_default() += 1;
            });
            if progress == Progress::Done {
                break;
            }
            if let Some((is_insert, topic)) = changes.next() {
                if is_insert {
                    index.insert(&topic, ());
                    ever.insert(topic);
                } else {
                    index.remove(&topic);
                    throughout.remove(&topic);
                }
            }
        }
        for (topic, count) in &delivered {
            prop_assert_eq!(*count, 1, "{} is delivered once", topic);
            prop_assert!(ever.contains(topic) && matches(&filter, topic));
        }
        for topic in throughout.iter().filter(|topic| matches(&filter, topic)) {
            prop_assert!(delivered.contains_key(topic), "{} is not missed", topic);
        }
    }
}
