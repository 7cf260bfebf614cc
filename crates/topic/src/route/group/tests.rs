use proptest::prelude::*;

use super::*;
use crate::Filter;

fn group(shards: usize) -> Group {
    let Ok(Filter::Shared(filter)) = Filter::parse("$share/g/a/b") else { panic!("shared") };
    Group::new(1, filter, shards)
}

#[test]
fn nobody_connected_means_nobody_picked() {
    let group = group(3);
    assert_eq!(group.pick_shard(0), None);
    group.member_connected(2, 10);
    assert_eq!(group.pick_shard(0), Some(2));
    group.message_sent(2);
    group.member_disconnected(2, 9, 1);
    assert_eq!(group.load(2), GroupLoad::default());
    assert_eq!(group.pick_shard(0), None);
    assert!(group.owner() < 3);
}

#[test]
fn the_less_busy_shard_is_picked() {
    let group = group(2);
    group.member_connected(0, 10);
    group.member_connected(1, 100);
    for _ in 0..5 {
        group.message_sent(0);
        group.message_sent(1);
    }
    assert_eq!(group.pick_shard(0), Some(1), "5 of 100 are less than 5 of 10");
    group.message_settled(0);
    assert_eq!(group.load(0), GroupLoad { connected: 1, free_credit: 6, inflight: 4 });
    for _ in 0..95 {
        group.message_sent(1);
    }
    assert_eq!(group.pick_shard(1), Some(0), "a full shard comes last");
}

#[test]
fn idle_members_share_evenly() {
    let group = group(4);
    for (shard, members) in [(0, 1), (1, 2), (3, 3)] {
        (0..members).for_each(|_| group.member_connected(shard, 10));
    }
    let mut counts = [0; 4];
    for _ in 0..600 {
        counts[group.pick_shard(1).unwrap()] += 1;
    }
    assert_eq!(counts, [100, 200, 0, 300]);
}

/// The part of its credit that a shard has inflight, as a number; a full shard is above all.
fn busyness(load: GroupLoad) -> f64 {
    if load.free_credit <= 0 && load.inflight > 0 {
        return 2.0;
    }
    let total = i64::from(load.inflight) + load.free_credit.max(0);
    f64::from(load.inflight) / total.max(1) as f64
}

proptest! {
    #[test]
    fn the_pick_is_among_the_least_busy(
        loads in prop::collection::vec((0..3_u32, 0..6_i64, 0..8_u32), 1..8),
        prefer_local in 0..8_usize,
        picks in 1..20,
    ) {
        let group = group(loads.len());
        for (shard, &(members, credit, sent)) in loads.iter().enumerate() {
            (0..members).for_each(|_| group.member_connected(shard, credit));
            (0..sent).filter(|_| members > 0).for_each(|_| group.message_sent(shard));
        }
        let connected = || (0..loads.len()).map(|shard| group.load(shard)).filter(|load| load.connected > 0);
        let least = connected().map(busyness).min_by(f64::total_cmp);
        for _ in 0..picks {
            match (group.pick_shard(prefer_local), least) {
                (None, None) => {}
                (Some(shard), Some(least)) => {
                    let load = group.load(shard);
                    prop_assert!(load.connected > 0);
                    prop_assert!((busyness(load) - least).abs() < 1e-9, "{load:?} beside {least}");
                }
                (picked, least) => prop_assert!(false, "{picked:?} of {least:?}"),
            }
        }
    }
}

#[test]
fn counts_of_concurrent_shards_add_up() {
    let group = group(2);
    std::thread::scope(|scope| {
        for shard in 0..2 {
            let group = &group;
            scope.spawn(move || {
                for _ in 0..10_000 {
                    group.member_connected(shard, 5);
                    group.message_sent(shard);
                    group.pick_shard(shard);
                    group.message_settled(shard);
                    group.message_sent(shard);
                    group.member_disconnected(shard, 4, 1);
                }
            });
        }
    });
    assert_eq!([group.load(0), group.load(1)], [GroupLoad::default(); 2]);
}
