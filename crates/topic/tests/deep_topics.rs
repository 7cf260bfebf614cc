//! Topics with as many levels as fit into a packet: no index recurses over levels.

use tacho_topic::{
    Filter, Progress, RetainedCursor, RetainedIndex, RouteMap, SubscriptionIndex, TopicFilter,
    matches,
};

/// Enough stack for ordinary calls, not for a frame per level.
const STACK_BYTES: usize = 256 * 1_024;

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(test);
    thread.expect("a thread starts").join().expect("the test passes");
}

/// Topics of many levels, each with filters that match it.
fn cases() -> Vec<(String, Vec<String>)> {
    let mut cases = Vec::new();
    for slashes in [199, 32_000, 65_535] {
        cases.push(("/".repeat(slashes), vec!["/".repeat(slashes), "#".into()]));
    }
    for levels in [200, 32_000] {
        let topic = vec!["a"; levels].join("/");
        let mut one_plus = vec!["a"; levels];
        one_plus[levels / 2] = "+";
        let mut multi = vec!["a"; levels];
        multi[levels - 1] = "#";
        let pluses = vec!["+"; levels].join("/");
        cases.push((topic, vec![one_plus.join("/"), multi.join("/"), pluses]));
    }
    cases
}

// 34
#[test]
fn filters_of_many_levels_match_and_drop() {
    on_a_small_stack(|| {
        for (topic, filters) in cases() {
            let (mut index, map) = (SubscriptionIndex::new(), RouteMap::with_shards(2));
            for (key, text) in filters.iter().enumerate() {
                assert!(matches(text, &topic));
                let filter = TopicFilter::parse(text).unwrap();
                index.insert(&filter, key, ());
                map.add(&Filter::Plain(filter), 1);
                let shared =
                    Filter::parse(&format!("$share/g/{}", &text[..text.len().min(60_000)]));
                shared.into_iter().for_each(|shared| drop(map.add(&shared, 0)));
            }
            let mut found = 0;
            index.for_each_match(&topic, |_, ()| found += 1);
            assert_eq!(found, filters.len());
            assert!(map.shards_for(&topic, &mut |_| {}).contains(1));
            // One filter is removed, the others are dropped with the map.
            let first = TopicFilter::parse(&filters[0]).unwrap();
            assert_eq!(index.remove(&first, 0), Some(()));
            map.remove(&Filter::Plain(first), 1);
        }
    });
}

#[test]
fn retained_topics_of_many_levels_replay_and_drop() {
    on_a_small_stack(|| {
        for (topic, filters) in cases() {
            let mut index = RetainedIndex::new();
            index.insert(&topic, 1);
            index.insert("a/b", 2);
            for text in &filters {
                let filter = TopicFilter::parse(text).unwrap();
                let (mut cursor, mut found) = (RetainedCursor::default(), Vec::new());
                let progress = index.next(&filter, &mut cursor, 100, |_, &value| found.push(value));
                assert_eq!(progress, Progress::Done);
                assert!(found.contains(&1));
            }
        }
    });
}

/// Every subset of levels as wildcards: the walk holds many pending steps.
#[test]
fn filters_that_branch_at_every_level_are_all_found() {
    let levels = 12;
    let mut index = SubscriptionIndex::new();
    let map = RouteMap::with_shards(1);
    let mut changes = Vec::new();
    for mask in 0..1_u32 << levels {
        let level = |at| if mask >> at & 1 == 1 { "+" } else { "x" };
        let text = (0..levels).map(level).collect::<Vec<_>>().join("/");
        let filter = TopicFilter::parse(&text).unwrap();
        index.insert(&filter, mask, ());
        let filter = Filter::parse(&format!("$share/g/{text}")).unwrap();
        changes.push(tacho_topic::RouteChange::Add { filter, shard: 0 });
    }
    map.apply(&changes);
    let topic = vec!["x"; levels].join("/");
    let (mut found, mut groups) = (0, 0);
    index.for_each_match(&topic, |_, ()| found += 1);
    map.shards_for(&topic, &mut |_| groups += 1);
    assert_eq!((found, groups), (1 << levels, 1 << levels));
}
