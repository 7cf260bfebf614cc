use super::*;

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap()
}

fn routes(map: &RouteMap, topic: &str) -> (Vec<usize>, Vec<String>) {
    let mut groups = Vec::new();
    let shards = map.shards_for(topic, &mut |group| groups.push(group.shared_filter().to_string()));
    groups.sort();
    (shards.iter().collect(), groups)
}

#[test]
fn returns_the_shards_of_all_matching_filters() {
    let map = RouteMap::with_shards(8);
    for (text, shard) in [("a/b", 0), ("a/b", 1), ("a/+", 2), ("#", 3), ("a/c", 4), ("+/b/#", 5)] {
        assert!(map.add(&filter(text), shard).is_none());
    }
    assert_eq!(routes(&map, "a/b").0, [0, 1, 2, 3, 5]);
    assert_eq!(routes(&map, "$a/b").0, []);
    map.remove(&filter("a/b"), 0);
    map.remove(&filter("a/+"), 2);
    map.remove(&filter("#"), 7);
    assert_eq!(routes(&map, "a/b").0, [1, 3, 5]);
}

#[test]
fn groups_live_as_long_as_a_shard_has_members() {
    let map = RouteMap::with_shards(2);
    for text in ["$share/g/a/b", "$share/g/a/+"] {
        let first = map.add(&filter(text), 0).unwrap();
        let second = map.add(&filter(text), 1).unwrap();
        assert!(Arc::ptr_eq(&first, &second), "all shards share one group");
        map.remove(&filter(text), 0);
        let third = map.add(&filter(text), 0).unwrap();
        assert!(Arc::ptr_eq(&first, &third));
    }
    map.add(&filter("$share/h/a/b"), 1);
    let (shards, groups) = routes(&map, "a/b");
    assert_eq!(shards, []);
    assert_eq!(groups, ["$share/g/a/+", "$share/g/a/b", "$share/h/a/b"]);
    map.remove(&filter("$share/g/a/b"), 0);
    map.remove(&filter("$share/g/a/b"), 1);
    map.remove(&filter("$share/h/a/b"), 0);
    assert_eq!(routes(&map, "a/b").1, ["$share/g/a/+", "$share/h/a/b"]);
}

#[test]
fn a_group_that_is_still_referenced_is_reused() {
    let map = RouteMap::with_shards(2);
    let text = filter("$share/g/a");
    let held = map.add(&text, 0).unwrap();
    map.remove(&text, 0);
    assert_eq!(routes(&map, "a").1, [""; 0]);
    let again = map.add(&text, 1).unwrap();
    assert!(Arc::ptr_eq(&held, &again), "messages may still wait for it");
    map.remove(&text, 1);
    let id = held.id();
    drop((held, again));
    assert_ne!(map.add(&text, 0).unwrap().id(), id);
}

#[test]
fn unreferenced_groups_are_removed() {
    let map = RouteMap::with_shards(2);
    for id in 0..1_000 {
        let text = filter(&format!("$share/g/{id}"));
        map.add(&text, 0);
        map.remove(&text, 0);
    }
    assert!(map.writer.lock().unwrap().groups.known.len() <= 64);
}

#[test]
fn a_change_without_effect_is_not_published() {
    let map = RouteMap::new();
    map.add(&filter("a"), 0);
    let mut snapshot = map.snapshot();
    map.add(&filter("a"), 0);
    map.remove(&filter("b/+"), 0);
    assert!(!map.refresh(&mut snapshot));
    map.add(&filter("a"), 1);
    assert!(map.refresh(&mut snapshot));
    assert_eq!(snapshot.shards_for("a", &mut |_| {}).len(), 2);
}

#[test]
#[should_panic(expected = "shard 2 of 2")]
fn refuses_a_shard_out_of_range() {
    RouteMap::with_shards(2).add(&filter("a"), 2);
}
