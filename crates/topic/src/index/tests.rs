use super::*;

fn filter(text: &str) -> TopicFilter {
    TopicFilter::parse(text).unwrap()
}

fn matched(index: &SubscriptionIndex<u32, u32>, topic: &str) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    index.for_each_match(topic, |&key, &value| found.push((key, value)));
    found.sort_unstable();
    found
}

#[test]
fn reports_each_matching_filter_once() {
    let mut index = SubscriptionIndex::new();
    for (value, text) in
        ["a/b", "a/+", "a/#", "#", "+/+", "a/b/#", "+/b/+", "/a/b"].iter().enumerate()
    {
        assert_eq!(index.insert(&filter(text), 7, value as u32), None);
    }
    let values: Vec<u32> = matched(&index, "a/b").into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [0, 1, 2, 3, 4, 5]);
    assert_eq!(index.len(), 8);
}

#[test]
fn replacing_keeps_one_entry() {
    for text in ["a/b", "a/+"] {
        let mut index = SubscriptionIndex::new();
        assert_eq!(index.insert(&filter(text), 1, 10), None);
        assert_eq!(index.insert(&filter(text), 1, 11), Some(10));
        assert_eq!(index.get(&filter(text), 1), Some(&11));
        assert_eq!(matched(&index, "a/b"), [(1, 11)]);
        assert_eq!(index.remove(&filter(text), 2), None);
        assert_eq!(index.remove(&filter(text), 1), Some(11));
        assert_eq!(index.remove(&filter(text), 1), None);
        assert!(index.is_empty());
        assert_eq!(matched(&index, "a/b"), []);
    }
}

#[test]
fn many_subscribers_come_and_go() {
    let mut index = SubscriptionIndex::new();
    for text in ["t", "t/#"] {
        for key in 0..1_000 {
            assert_eq!(index.insert(&filter(text), key, key), None);
        }
        for key in (0..1_000).filter(|key| key % 3 != 0) {
            assert_eq!(index.remove(&filter(text), key), Some(key));
        }
        let expected: Vec<_> = (0..1_000).step_by(3).map(|key| (key, key)).collect();
        assert_eq!(matched(&index, "t"), expected);
        for key in (0..1_000).step_by(3) {
            assert_eq!(index.get(&filter(text), key), Some(&key));
            assert_eq!(index.remove(&filter(text), key), Some(key));
        }
        assert!(index.is_empty());
    }
}

#[test]
fn removing_all_frees_the_tree() {
    let mut index = SubscriptionIndex::new();
    for round in 0..3 {
        for id in 0..100 {
            index.insert(&filter(&format!("a/{id}/+/{round}")), id, 0);
        }
        for id in 0..100 {
            assert_eq!(index.remove(&filter(&format!("a/{id}/+/{round}")), id), Some(0));
        }
    }
    assert_eq!(index.wildcard.node_count(), 1);
    assert!(index.wildcard.slab_len() <= 302, "nodes are reused");
}

#[test]
fn subscribers_stay_findable_around_the_limit_of_hashing() {
    let mut index = SubscriptionIndex::new();
    let text = filter("t");
    for size in [17, 12, 17, 9, 8, 17, 2, 1, 0, 20] {
        for key in 0..20 {
            if key < size {
                index.insert(&text, key, key);
            } else {
                index.remove(&text, key);
            }
            let is_present = index.get(&text, key).is_some();
            assert_eq!(is_present, key < size, "key {key} of {size}");
        }
        assert_eq!(matched(&index, "t").len(), size as usize);
    }
}

#[test]
fn the_filters_of_a_topic_are_named() {
    let mut index = SubscriptionIndex::new();
    let filters =
        ["a/b", "a/+", "a/#", "#", "+/b", "+/+", "a/b/#", "a/c", "+", "/#", "b/#", "$x/#"];
    for (key, text) in filters.into_iter().enumerate() {
        index.insert(&filter(text), key as u32, 0);
    }
    for topic in ["a/b", "a", "/", "x//y", "$x/1", "a/b/c", ""] {
        let mut named = index.matching_filters(topic);
        named.sort();
        let mut expected: Vec<String> = filters.map(str::to_owned).to_vec();
        expected.retain(|text| crate::matches(text, topic));
        expected.sort();
        assert_eq!(named, expected, "{topic}");
    }
    index.remove(&filter("a/b"), 0);
    assert!(!index.matching_filters("a/b").contains(&"a/b".to_owned()));
}

#[test]
fn subscribers_are_read_in_parts() {
    let mut index = SubscriptionIndex::new();
    for text in ["t", "t/#"] {
        let mut seen = Vec::new();
        assert_eq!(index.subscribers_from(&filter(text), 0, 9, |_, _| panic!("there is none")), 0);
        for count in [1, 2, 25] {
            for key in 0..count {
                index.insert(&filter(text), key, key);
            }
            seen.clear();
            for from in (0..count as usize).step_by(7) {
                let total =
                    index.subscribers_from(&filter(text), from, 7, |key, _| seen.push(*key));
                assert_eq!(total, count as usize);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>(), "{text}");
        }
    }
}
