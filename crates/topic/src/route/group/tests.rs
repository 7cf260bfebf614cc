use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::Filter;

fn group(shards: usize) -> Group {
    let Ok(Filter::Shared(filter)) = Filter::parse("$share/g/a/b") else { panic!("shared") };
    Group::new(1, filter, shards, Arc::default())
}

fn picks(group: &Group, from: usize, choice: impl Fn(u64) -> Choice) -> Vec<usize> {
    let mut counts = vec![0; group.shards()];
    for number in 0..6_000 {
        counts[group.pick(from, choice(mix(number))).unwrap()] += 1;
    }
    counts
}

#[test]
fn without_connected_members_no_shard_is_picked() {
    let group = group(3);
    assert_eq!(group.pick(0, Choice::InTurn), None);
    assert_eq!(group.reserve(0, Choice::InTurn), None);
    assert_eq!(group.pick_by_key(7), None);
    group.member_connected(2, 10, 10);
    assert_eq!(group.pick(0, Choice::LeastInflight), Some(2));
    assert_eq!(group.pick_by_key(7), Some(2));
    assert_eq!(group.reserve(0, Choice::Random(3)), Some(2));
    group.member_disconnected(2, 10, 10);
    assert_eq!(group.load(2).free_credit, -1, "one credit is still reserved");
    group.credit_changed(2, 1);
    assert_eq!(group.load(2), GroupLoad::default());
    assert_eq!(group.pick(0, Choice::InTurn), None);
    assert!(group.owner() < 3);
}

#[test]
fn the_less_busy_shard_is_chosen_and_a_full_one_is_not() {
    let group = group(2);
    group.member_connected(0, 10, 10);
    group.member_connected(1, 100, 100);
    group.credit_changed(0, -5);
    group.credit_changed(1, -1);
    assert_eq!(group.reserve(0, Choice::LeastInflight), Some(1), "1 is less than 5");
    group.credit_changed(1, -97);
    assert_eq!(group.load(1), GroupLoad { connected: 1, free_credit: 1, inflight: 99 });
    assert_eq!(group.reserve(1, Choice::LeastInflight), Some(0));
    group.credit_changed(0, -4);
    for choice in [Choice::LeastInflight, Choice::InTurn, Choice::Random(u64::MAX)] {
        assert_eq!(group.pick(0, choice), Some(1), "{choice:?}");
    }
    assert_eq!(group.reserve(0, Choice::InTurn), Some(1));
    assert_eq!(group.reserve(0, Choice::InTurn), None, "all are full");
    assert!(group.pick(0, Choice::InTurn).is_some(), "QoS 0 needs no credit");
}

#[test]
fn equal_members_share_evenly() {
    let group = group(4);
    for (shard, members) in [(0, 1), (1, 2), (3, 3)] {
        (0..members).for_each(|_| group.member_connected(shard, 10, 10));
    }
    for choice in [Choice::LeastInflight, Choice::InTurn] {
        assert_eq!(picks(&group, 1, |_| choice), [1_000, 2_000, 0, 3_000]);
    }
    let random = picks(&group, 1, Choice::Random);
    for (count, expected) in random.into_iter().zip([1_000, 2_000, 0, 3_000_usize]) {
        assert!(count.abs_diff(expected) < 200, "{count} of {expected}");
    }
}

#[test]
fn a_key_keeps_its_shard_until_the_members_change() {
    let group = group(4);
    let shard_of = |key| group.pick_by_key(mix(key)).unwrap();
    (0..3).for_each(|shard| group.member_connected(shard, 10, 10));
    let before: Vec<usize> = (0..3_000).map(shard_of).collect();
    let mut counts = HashMap::new();
    before.iter().for_each(|shard| *counts.entry(shard).or_insert(0) += 1);
    assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
    // Credit does not matter.
    group.credit_changed(0, -10);
    assert_eq!((0..3_000).map(shard_of).collect::<Vec<_>>(), before);
    group.member_connected(3, 10, 10);
    let moved = (0..3_000).filter(|&key| shard_of(key) != before[key as usize]);
    let moved: Vec<usize> = moved.map(shard_of).collect();
    assert!((600..900).contains(&moved.len()), "{} moved", moved.len());
    assert!(moved.iter().all(|&shard| shard == 3), "only to the new member");
}

#[test]
fn waiting_messages_and_durable_members_count_until_they_are_dropped() {
    let group = Arc::new(group(2));
    let places = [group.wait(), group.wait()];
    let member = group.durable_member();
    assert_eq!((group.waiting(), group.durable_members()), (2, 1));
    assert!(Arc::ptr_eq(places[0].group(), &group));
    drop(places);
    assert_eq!((group.waiting(), group.durable_members()), (0, 1));
    drop(member);
    assert_eq!(group.durable_members(), 0);
}

proptest! {
    #[test]
    fn the_chosen_shard_is_among_the_least_busy_that_have_credit(
        loads in prop::collection::vec((0..3_u32, 1..40_u32, 0..200_i64), 1..8),
        from in 0..8_usize,
        number: u64,
    ) {
        let group = group(loads.len());
        for (shard, &(members, window, used)) in loads.iter().enumerate() {
            (0..members).for_each(|_| group.member_connected(shard, window, window));
            if members > 0 {
                group.credit_changed(shard, -used.min(i64::from(members * window)));
            }
        }
        let from = from % loads.len();
        let shards = 0..loads.len();
        let open = |shard: &usize| group.load(*shard).free_credit > 0;
        let least = shards.clone().filter(open).map(|s| group.load(s).level()).min();
        for choice in [Choice::LeastInflight, Choice::InTurn, Choice::Random(number)] {
            let before: i64 = shards.clone().map(|shard| group.load(shard).free_credit).sum();
            let chosen = group.reserve(from, choice);
            prop_assert_eq!(chosen.is_some(), before > 0);
            let Some(shard) = chosen else { continue };
            group.credit_changed(shard, 1);
            prop_assert!(open(&shard));
            if choice == Choice::LeastInflight {
                prop_assert_eq!(Some(group.load(shard).level()), least);
            }
        }
    }
}

#[test]
fn concurrent_shards_never_take_more_credit_than_there_is() {
    let group = group(2);
    group.member_connected(0, 1_000, 1_000);
    group.member_connected(1, 1_000, 1_000);
    let taken: usize = std::thread::scope(|scope| {
        let take = |from: usize| {
            let group = &group;
            scope.spawn(move || {
                (0..3_000).filter(|_| group.reserve(from, Choice::LeastInflight).is_some()).count()
            })
        };
        [take(0), take(1)].into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(taken, 2_000);
    assert_eq!([group.load(0).free_credit, group.load(1).free_credit], [0, 0]);
    (0..2).for_each(|shard| group.credit_changed(shard, 1_000));
    (0..2).for_each(|shard| group.member_disconnected(shard, 1_000, 1_000));
    assert_eq!([group.load(0), group.load(1)], [GroupLoad::default(); 2]);
}
