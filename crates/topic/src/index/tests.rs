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
