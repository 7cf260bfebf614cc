use std::cell::Cell;
use std::collections::HashMap as Map;

use tacho_codec::QoS;

use super::*;

thread_local! {
    /// Number of comparisons of two members.
    pub(super) static COMPARISONS: Cell<u64> = const { Cell::new(0) };
}

const OPTIONS: SubscriptionOptions = SubscriptionOptions {
    qos: QoS::AtLeastOnce,
    no_local: false,
    retain_as_published: false,
    id: 0,
    since: 0,
};

fn standing(busy: u32, window: u32) -> Standing {
    let credit = window.saturating_sub(busy);
    Standing { rank: if credit == 0 { Rank::Full } else { Rank::Ready }, busy, credit }
}

fn connected(count: u32, window: u32) -> Members {
    let mut members = Members::default();
    for session in 0..count {
        let member = members.insert(SessionSlot::new(session), OPTIONS);
        members.connect(member, standing(0, window), window);
    }
    members
}

/// The heap against a search through all members, on random operations.
#[test]
fn the_first_is_the_least_busy_and_among_equals_the_one_longest_unserved() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..200 {
        let mut members = Members::default();
        // By member: busy, window, last turn.
        let mut naive: Map<MemberIndex, (u32, u32, u64)> = Map::new();
        let mut turn = 0;
        for _ in 0..300 {
            let known = naive.keys().copied().min_by_key(|_| random.u32(..));
            match (random.u8(0..6), known) {
                (0, _) | (_, None) => {
                    let member = members.insert(SessionSlot::new(7), OPTIONS);
                    members.connect(member, standing(0, 3), 3);
                    naive.insert(member, (0, 3, turn));
                }
                (1, Some(member)) => {
                    let (busy, window, _) = naive.remove(&member).unwrap();
                    let told = members.disconnect(member);
                    assert_eq!(told, Some((window, window - busy)), "seed {seed}");
                    assert_eq!(members.disconnect(member), None, "seed {seed}");
                    members.remove(member);
                }
                (2 | 3, Some(member)) => {
                    let entry = naive.get_mut(&member).unwrap();
                    let before = entry.0;
                    entry.0 = random.u32(0..=entry.1);
                    let more = members.update(member, standing(entry.0, entry.1));
                    assert_eq!(more, i64::from(before) - i64::from(entry.0), "seed {seed}");
                }
                (_, Some(_)) => {
                    let first = members.first().unwrap();
                    let entry = naive.get_mut(&first).unwrap();
                    turn += 1;
                    (entry.0, entry.2) = ((entry.0 + 1).min(entry.1), turn);
                    members.served(first, standing(entry.0, entry.1));
                }
            }
            let order = |&(busy, window, turn): &(u32, u32, u64)| (busy == window, busy, turn);
            let least = naive.values().map(order).min();
            let first = members.first().map(|first| order(&naive[&first]));
            assert_eq!(first, least, "seed {seed}");
            assert_eq!(members.list.len(), naive.len());
        }
    }
}

#[test]
fn serving_thousands_costs_a_logarithm() {
    let mut per_message = Vec::new();
    for count in [8, 8_192] {
        let mut members = connected(count, 10);
        COMPARISONS.set(0);
        let mut served = vec![0; count as usize];
        for _ in 0..3 * count {
            let first = members.first().unwrap();
            served[first.index()] += 1;
            members.served(first, standing(1, 10));
        }
        for member in 0..count {
            members.update(MemberIndex(member), standing(0, 10));
        }
        assert!(served.iter().all(|&count| count == 3), "equals take turns");
        per_message.push(COMPARISONS.get() as f64 / f64::from(3 * count));
    }
    // Twice the depth, for both children are compared, once down and once up.
    assert!(per_message[1] < 4.0 * 13.0, "{per_message:?} comparisons");
}

#[test]
fn keys_stay_with_their_member_while_others_come_and_go() {
    let mut members = connected(10, 10);
    let place = |members: &Members, key: u64| {
        let mixed = crate::keys::stable_hash(&key.to_le_bytes());
        members.by_key(mixed).unwrap()
    };
    let before: Vec<MemberIndex> = (0..10_000).map(|key| place(&members, key)).collect();
    let mut counts = [0; 10];
    before.iter().for_each(|&member| counts[member.index()] += 1);
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    // Their load does not matter.
    members.update(MemberIndex(3), standing(10, 10));
    members.served(MemberIndex(5), standing(1, 10));
    assert!((0..10_000).all(|key| place(&members, key) == before[key as usize]));
    members.disconnect(MemberIndex(4));
    let moved = (0..10_000).filter(|&key| place(&members, key) != before[key as usize]).count();
    assert!((1_000..2_400).contains(&moved), "{moved} of 10,000 moved");
    assert!((0..10_000).all(|key| place(&members, key) != MemberIndex(4)));
}

#[test]
fn a_publisher_sticks_until_its_member_leaves() {
    let mut members = connected(3, 10);
    let stick = |members: &mut Members, publisher| {
        let first = members.first().unwrap();
        members.stick(publisher, first);
        members.sticky(publisher).map(|member| member.0)
    };
    assert_eq!(stick(&mut members, 1), Some(0));
    members.served(MemberIndex(0), standing(1, 10));
    assert_eq!(stick(&mut members, 2), Some(1));
    members.served(MemberIndex(1), standing(1, 10));
    let sticky = |members: &Members, publisher| members.sticky(publisher).map(|member| member.0);
    assert_eq!([1, 2, 3].map(|p| sticky(&members, p)), [Some(0), Some(1), None]);
    members.disconnect(MemberIndex(0));
    assert_eq!([1, 2].map(|p| sticky(&members, p)), [None, Some(1)]);
    assert_eq!(stick(&mut members, 1), Some(2));
    for publisher in 10..10 + STICKY_MAX as u64 {
        members.stick(publisher, MemberIndex(1));
    }
    assert!(members.sticky.len() <= STICKY_MAX);
}

#[test]
fn random_reaches_every_member() {
    let members = connected(5, 10);
    let mut counts = [0; 5];
    (0..5_000_u64).for_each(|i| {
        let number = crate::keys::stable_hash(&i.to_le_bytes());
        counts[members.random(number).unwrap().index()] += 1;
    });
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    assert_eq!(Members::default().random(5), None);
}
