use super::*;
use crate::route::{hamt, targets};

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
fn groups_that_have_ended_leave_nothing() {
    let map = RouteMap::with_shards(2);
    let filters: Vec<_> =
        (0..5_000).map(|id| filter(&format!("$share/g-{}/t/{}", id % 100, id / 100))).collect();
    let change =
        |filter: &Filter| RouteChange::Add { filter: filter.clone(), shard: id_of(filter) };
    map.apply(&filters.iter().map(change).collect::<Vec<_>>());
    assert_eq!((map.groups_len(), map.snapshot().exact_len()), (5_000, 50));
    let held = map.group(shared(&filters[7]));
    for batch in filters.chunks(64) {
        let change =
            |filter: &Filter| RouteChange::Remove { filter: filter.clone(), shard: id_of(filter) };
        map.apply(&batch.iter().map(change).collect::<Vec<_>>());
    }
    assert_eq!((map.groups_len(), map.snapshot().exact_len()), (1, 0), "one is referenced");
    drop(held);
    assert_eq!(map.groups_len(), 0);
    let known = map.group(shared(&filters[0]));
    assert!(map.find_group(shared(&filters[0])).is_some_and(|found| Arc::ptr_eq(&found, &known)));
    assert!(map.find_group(shared(&filters[1])).is_none());
}

/// Threads that make, share and drop groups of a few names.
#[test]
fn at_any_time_there_is_one_group_for_a_filter() {
    let map = RouteMap::with_shards(4);
    let filters = ["$share/a/t", "$share/b/t", "$share/a/u"].map(filter);
    std::thread::scope(|scope| {
        for shard in 0..4 {
            let (map, filters) = (&map, &filters);
            scope.spawn(move || {
                for round in 0..2_000 {
                    let filter = &filters[(round + shard) % filters.len()];
                    let group = map.group(shared(filter));
                    group.member_joined();
                    map.apply(&[RouteChange::Add { filter: filter.clone(), shard }]);
                    assert!(Arc::ptr_eq(&group, &map.group(shared(filter))));
                    map.remove(filter, shard);
                    group.member_left();
                }
            });
        }
    });
    assert_eq!((map.groups_len(), map.groups().len()), (0, 0));
}

fn shared(filter: &Filter) -> &SharedFilter {
    let Filter::Shared(shared) = filter else { panic!("{filter} is shared") };
    shared
}

fn id_of(filter: &Filter) -> usize {
    filter.to_string().len() % 2
}

fn add(text: &str) -> RouteChange {
    RouteChange::Add { filter: filter(text), shard: 0 }
}

fn remove(text: &str) -> RouteChange {
    RouteChange::Remove { filter: filter(text), shard: 0 }
}

/// The nodes and the group targets that an update copies: what it costs.
fn copies(update: impl FnOnce()) -> (usize, usize) {
    let before = (hamt::COPIES.get(), targets::COPIES.get());
    update();
    (hamt::COPIES.get() - before.0, targets::COPIES.get() - before.1)
}

#[test]
fn a_join_costs_as_much_among_many_groups_of_a_filter_as_among_few() {
    for topic in ["t/a", "t/+"] {
        let map = RouteMap::with_shards(2);
        let mut len = 0;
        let mut grow = |to: usize| {
            let groups: Vec<_> = (len..to).map(|id| add(&format!("$share/{id}/{topic}"))).collect();
            map.apply(&groups);
            len = to;
        };
        let join = |id: usize| {
            let text = format!("$share/new-{id}/{topic}");
            let (nodes, targets) = copies(|| drop(map.add(&filter(&text), 1)));
            let (left_nodes, left_targets) = copies(|| map.remove(&filter(&text), 1));
            (nodes + left_nodes, targets + left_targets)
        };
        for to in [100, 20_000] {
            grow(to);
            for id in 0..100 {
                let (nodes, targets) = join(id);
                assert!(nodes <= 24, "{nodes} nodes are copied among {to} groups");
                assert!(targets <= 120, "{targets} targets are copied among {to} groups");
            }
        }
    }
}

#[test]
fn a_batch_copies_what_its_changes_have_in_common_once() {
    for kind in ["{}", "{}/+", "{}/x/#", "$share/{}/t", "$share/g/{}/+"] {
        let text = |id: usize| kind.replace("{}", &id.to_string());
        let all: Vec<_> = (0..4_096).map(|id| add(&text(id))).collect();
        let map = RouteMap::with_shards(2);
        map.apply(&all);
        let batch: Vec<_> = (0..512).map(|id| remove(&text(id * 8))).collect();
        let version = map.snapshot().version();
        let (together, _) = copies(|| map.apply(&batch));
        assert_eq!(map.snapshot().version(), version + 1, "one publication");
        map.apply(&all);
        let (alone, _) =
            copies(|| batch.iter().for_each(|one| map.apply(std::slice::from_ref(one))));
        assert!(together * 2 < alone, "{kind}: {together} nodes against {alone}");
        assert!(together <= 3 * batch.len(), "{kind}: {together} nodes for {}", batch.len());
        // A batch of everything copies no node twice.
        map.apply(&all);
        let nodes = (0..4_096).map(|id| remove(&text(id))).collect::<Vec<_>>();
        let (copied, _) = copies(|| map.apply(&nodes));
        assert!(copied < 4_096, "{kind}: {copied} nodes");
    }
}

#[test]
fn a_try_gives_way_to_another_writer() {
    let map = RouteMap::with_shards(2);
    assert!(map.try_apply(|| {
        assert!(!map.try_apply(|| panic!("nothing is collected")));
        vec![add("a"), add("$share/g/b")]
    }));
    assert_eq!(
        (routes(&map, "a").0, routes(&map, "b").1),
        (vec![0], vec!["$share/g/b".to_owned()])
    );
    let version = map.snapshot().version();
    assert!(map.try_apply(Vec::new));
    assert_eq!(map.snapshot().version(), version);
}

#[test]
fn members_are_counted_until_the_last_one_leaves() {
    let map = RouteMap::with_shards(2);
    let group = map.group(shared(&filter("$share/g/a")));
    assert!(map.groups().is_empty(), "no shard has members");
    group.member_joined();
    group.member_joined();
    assert!(!group.member_left());
    assert_eq!(group.members(), 1);
    assert!(group.member_left());
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
