//! The route map against a list searched with the naive matcher, and with concurrent readers and
//! writers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tacho_testkit::topics;
use tacho_topic::{
    Filter, MatchedShards, RouteChange, RouteMap, RouteMark, RouteSnapshot, ShardSet, matches,
};

const SHARDS: usize = 4;

fn change() -> impl Strategy<Value = RouteChange> {
    let many = (0..40_u8).prop_map(|name| format!("$share/{name}/"));
    let few = prop_oneof![Just(String::new()), Just("$share/g/".to_owned())];
    let prefix = prop_oneof![4 => few, 1 => many];
    (prefix, topics::filter(), 0..SHARDS, 0..12).prop_map(|(prefix, filter, shard, kind)| {
        let filter = Filter::parse(&format!("{prefix}{filter}")).expect("a valid filter");
        match kind {
            0..5 => RouteChange::Add { filter, shard },
            5..8 => RouteChange::Remove { filter, shard },
            _ => {
                let mark = if kind < 10 { RouteMark::Durable } else { RouteMark::Full };
                RouteChange::Mark { filter, shard, mark, is_set: kind % 2 == 0 }
            }
        }
    })
}

/// All pairs of filter and shard, and the marks of each.
type Oracle = BTreeMap<(Filter, usize), BTreeSet<RouteMark>>;

fn note(oracle: &mut Oracle, change: &RouteChange) {
    match change {
        RouteChange::Add { filter, shard } => {
            oracle.entry((filter.clone(), *shard)).or_default();
        }
        RouteChange::Remove { filter, shard } => {
            oracle.remove(&(filter.clone(), *shard));
        }
        RouteChange::Mark { filter, shard, mark, is_set } => {
            match oracle.get_mut(&(filter.clone(), *shard)) {
                Some(marks) if *is_set => drop(marks.insert(*mark)),
                Some(marks) => drop(marks.remove(mark)),
                None => {}
            }
        }
    }
}

/// The routes of a topic: shards, and the shared filters of groups.
fn routes(snapshot: &RouteSnapshot, topic: &str) -> (MatchedShards, Vec<String>) {
    let mut groups = Vec::new();
    let shards =
        snapshot.matched_shards(topic, &mut |group| groups.push(group.shared_filter().to_string()));
    groups.sort_unstable();
    (shards, groups)
}

fn expected_routes(oracle: &Oracle, topic: &str) -> (MatchedShards, Vec<String>) {
    let (mut shards, mut groups) = (MatchedShards::default(), BTreeSet::new());
    for ((filter, shard), marks) in oracle {
        if !matches(filter.topic_filter().as_str(), topic) {
            continue;
        }
        match filter {
            Filter::Plain(_) => {
                shards.all.insert(*shard);
                for mark in marks {
                    match mark {
                        RouteMark::Durable => shards.durable.insert(*shard),
                        RouteMark::Full => shards.full.insert(*shard),
                    }
                }
            }
            Filter::Shared(shared) => {
                groups.insert(shared.to_string());
            }
        }
    }
    (shards, groups.into_iter().collect())
}

proptest! {
    #[test]
    fn equals_the_naive_matcher_and_snapshots_never_change(
        batches in prop::collection::vec(prop::collection::vec(change(), 1..30), 1..40),
        topics in prop::collection::vec(topics::topic(), 12),
    ) {
        let map = RouteMap::with_shards(SHARDS);
        let mut oracle = Oracle::new();
        let mut history = vec![(map.snapshot(), oracle.clone())];
        for batch in &batches {
            map.apply(batch);
            batch.iter().for_each(|change| note(&mut oracle, change));
            history.push((map.snapshot(), oracle.clone()));
        }
        for (snapshot, oracle) in &history {
            for topic in &topics {
                prop_assert_eq!(routes(snapshot, topic), expected_routes(oracle, topic));
            }
        }
        for change in batches.iter().flatten() {
            let Filter::Shared(shared) = change.filter() else { continue };
            let has_member = oracle.keys().any(|(filter, _)| filter == change.filter());
            prop_assert_eq!(map.snapshot().group(shared).is_some(), has_member);
        }
        let rest: Vec<_> = oracle.keys().cloned().collect();
        let groups: BTreeSet<_> = rest.iter().filter(|(filter, _)| filter.is_shared()).collect();
        let groups: BTreeSet<_> = groups.into_iter().map(|(filter, _)| filter).collect();
        prop_assert_eq!(map.groups().len(), groups.len());
        for batch in rest.chunks(50) {
            let remove = |(filter, shard): &(Filter, usize)| {
                RouteChange::Remove { filter: filter.clone(), shard: *shard }
            };
            map.apply(&batch.iter().map(remove).collect::<Vec<_>>());
        }
        drop(history);
        prop_assert_eq!((map.groups_len(), map.snapshot().exact_len()), (0, 0));
        for topic in &topics {
            let nothing = (MatchedShards::default(), Vec::new());
            prop_assert_eq!(routes(&map.snapshot(), topic), nothing);
        }
    }

    #[test]
    fn equal_generations_mean_equal_routes(
        batches in prop::collection::vec(prop::collection::vec(change(), 1..3), 1..40),
        topics in prop::collection::vec(topics::topic(), 12),
    ) {
        let map = RouteMap::with_shards(SHARDS);
        let mut snapshots = vec![map.snapshot()];
        for batch in &batches {
            map.apply(batch);
            snapshots.push(map.snapshot());
        }
        for topic in &topics {
            for pair in snapshots.windows(2) {
                let generations = [0, 1].map(|at| pair[at].generation_for(topic));
                prop_assert!(generations[0] <= generations[1]);
                if generations[0] == generations[1] {
                    prop_assert_eq!(routes(&pair[0], topic), routes(&pair[1], topic));
                }
            }
        }
    }
}

/// The number of `topics` whose generation changes when `filter` is added.
fn disturbed(map: &RouteMap, topics: &[String], filter: &str) -> usize {
    let before = map.snapshot();
    map.add(&Filter::parse(filter).expect("a valid filter"), 0);
    let after = map.snapshot();
    topics
        .iter()
        .filter(|topic| before.generation_for(topic) != after.generation_for(topic))
        .count()
}

#[test]
fn exact_filters_leave_other_topics_valid() {
    let map = RouteMap::new();
    let topics: Vec<String> = (0..1_000).map(|id| format!("site-{id}/x")).collect();
    // Each of 65,536 buckets may hold a few of the topics.
    assert!(disturbed(&map, &topics, "other/y") <= 3);
    let disturbed = disturbed(&map, &topics, "site-7/x");
    assert!((1..=3).contains(&disturbed), "{disturbed}");
}

#[test]
fn wildcard_filters_leave_other_prefixes_valid() {
    let map = RouteMap::new();
    let topics: Vec<String> = (0..256).map(|id| format!("a/b/site-{id}/x/y")).collect();
    for filter in ["a/b/site-7/+/y", "a/b/site-7/x/+", "a/b/site-7/#"] {
        let disturbed = disturbed(&map, &topics, filter);
        assert!((1..=3).contains(&disturbed), "{filter}: {disturbed}");
    }
    for filter in ["a/b/+/x/z", "a/+/site-7", "a/#"] {
        assert_eq!(disturbed(&map, &topics, filter), topics.len(), "{filter}");
    }
    assert_eq!(disturbed(&map, &topics, "+/y"), topics.len());
    assert_eq!(disturbed(&map, &["$SYS/x".to_owned()], "+/z"), 0);
}

/// Routes cached by generation, as shards do, are never older than the snapshot they are used for.
#[test]
fn cached_routes_stay_correct_beside_a_writer() {
    let map = RouteMap::with_shards(SHARDS);
    let filters = ["a/b/c/+", "a/b/+", "a/+/c/d", "a/#", "+/b/c/d", "a/b/c/d"];
    let filters = filters.map(|filter| Filter::parse(filter).unwrap());
    let readers_left = std::sync::atomic::AtomicUsize::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut snapshot = map.snapshot();
                let mut known = None;
                let mut remembered = 0;
                for _ in 0..20_000 {
                    map.refresh(&mut snapshot);
                    let generation = snapshot.generation_for("a/b/c/d");
                    let routes = routes(&snapshot, "a/b/c/d");
                    match &known {
                        Some((of, known)) if *of == generation => {
                            assert_eq!(*known, routes);
                            remembered += 1;
                        }
                        _ => known = Some((generation, routes)),
                    }
                }
                assert!(remembered > 0);
                readers_left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut seed = 1_u64;
        while readers_left.load(Ordering::Relaxed) > 0 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (at, shard) =
                ((seed >> 40) as usize % filters.len(), (seed >> 50) as usize % SHARDS);
            if seed >> 63 == 0 {
                map.add(&filters[at], shard);
            } else {
                map.remove(&filters[at], shard);
            }
        }
    });
}

/// A writer moves pairs of filters between shards in batches; readers never see half a batch.
#[test]
fn readers_see_whole_batches_while_a_writer_works() {
    let map = RouteMap::with_shards(SHARDS);
    let exact = Filter::parse("moving/1").unwrap();
    let wildcard = Filter::parse("moving/+").unwrap();
    let shared = Filter::parse("$share/g/moving/1").unwrap();
    let batch = |is_add, shard| {
        [&exact, &wildcard, &shared].map(|filter| {
            let filter = filter.clone();
            if is_add {
                RouteChange::Add { filter, shard }
            } else {
                RouteChange::Remove { filter, shard }
            }
        })
    };
    map.apply(&batch(true, 0));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut snapshot = map.snapshot();
                let (mut reads, mut version) = (0, 0);
                while !is_done.load(Ordering::Relaxed) || reads < 100 {
                    map.refresh(&mut snapshot);
                    assert!(snapshot.version() >= version, "versions never decrease");
                    version = snapshot.version();
                    let mut groups = 0;
                    let by_exact = snapshot.shards_for("moving/1", &mut |_| groups += 1);
                    let by_wildcard = snapshot.shards_for("moving/2", &mut |_| {});
                    assert_eq!((by_exact.len(), groups), (1, 1));
                    assert_eq!(by_exact, by_wildcard);
                    reads += 1;
                }
            });
        }
        for round in 0..1_000 {
            let (from, to) = (round % SHARDS, (round + 1) % SHARDS);
            let changes: Vec<_> = batch(true, to).into_iter().chain(batch(false, from)).collect();
            map.apply(&changes);
            let noise = Filter::parse(&format!("noise/{round}/+")).unwrap();
            map.add(&noise, from);
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

/// Several shards add their own filters concurrently; no update is lost.
#[test]
fn writers_do_not_lose_each_others_changes() {
    let map = RouteMap::with_shards(SHARDS);
    let groups: Vec<_> = std::thread::scope(|scope| {
        let add_all = |shard: usize| {
            let map = &map;
            move || {
                for id in 0..300 {
                    for text in
                        [format!("t/{id}"), format!("t/{id}/#"), format!("own/{shard}/{id}")]
                    {
                        map.add(&Filter::parse(&text).unwrap(), shard);
                    }
                }
                map.add(&Filter::parse("$share/g/t/+").unwrap(), shard).unwrap()
            }
        };
        let threads: Vec<_> = (0..SHARDS).map(|shard| scope.spawn(add_all(shard))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(groups.iter().all(|group| Arc::ptr_eq(group, &groups[0])));
    let snapshot = map.snapshot();
    for id in 0..300 {
        for topic in [format!("t/{id}"), format!("t/{id}/x")] {
            assert_eq!(snapshot.shards_for(&topic, &mut |_| {}).len(), SHARDS, "{topic}");
        }
        let own = snapshot.shards_for(&format!("own/1/{id}"), &mut |_| {});
        assert_eq!(own, ShardSet::single(1));
    }
}
