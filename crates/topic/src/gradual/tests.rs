use std::cell::Cell;
use std::collections::HashMap;

use super::list::CHUNK_LEN;
use super::table::BUCKETS_PER_INSERTION;
use super::*;

/// A good enough hash of a number.
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[test]
fn no_insertion_moves_more_than_a_few_elements_and_all_are_found() {
    let (mut table, hashed) = (GradualTable::default(), Cell::new(0));
    let hash_of = |number: &u64| {
        hashed.set(hashed.get() + 1);
        mixed(*number)
    };
    let mut most = 0;
    for number in 0..300_000 {
        hashed.set(0);
        table.insert_unique(mixed(number), number, hash_of);
        if number > 4_000 {
            most = most.max(hashed.get());
        }
        let probe = mixed(number) % (number + 1);
        assert_eq!(table.find(mixed(probe), |found| *found == probe), Some(&probe));
        assert_eq!(table.len() as u64, number + 1);
    }
    assert!((1..=BUCKETS_PER_INSERTION).contains(&most), "{most} elements with one insertion");
}

#[test]
fn a_map_never_asks_for_much_memory_at_once() {
    let mut map = GradualMap::default();
    for number in 0..200_000_u32 {
        let before = map.buckets();
        map.insert(number, ());
        let more = map.buckets().saturating_sub(before);
        assert!(more <= 4_096.max(before / 16), "{more} buckets more, {before} before");
    }
}

#[test]
fn it_holds_what_a_map_holds_whatever_is_inserted_and_removed() {
    for seed in 0..2 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut gradual, mut expected) = (GradualMap::default(), HashMap::new());
        // Grows, stays, shrinks to little, and grows again.
        for (steps, removed_percent) in [(40_000, 10), (40_000, 50), (60_000, 90), (30_000, 20)] {
            for step in 0..steps {
                let key = format!("{}", rng.u32(..20_000));
                if rng.u32(..100) < removed_percent {
                    assert_eq!(gradual.remove(&*key), expected.remove(&key));
                } else {
                    assert_eq!(gradual.insert(key.clone(), step), expected.insert(key, step));
                }
                let probe = format!("{}", rng.u32(..20_000));
                assert_eq!(gradual.get(&*probe), expected.get(&probe), "seed {seed}");
                assert_eq!(gradual.get_mut(&*probe), expected.get_mut(&probe));
                assert_eq!(gradual.len(), expected.len());
            }
            let mut all: Vec<_> = gradual.iter().collect();
            let mut expected: Vec<_> = expected.iter().collect();
            all.sort_unstable();
            expected.sort_unstable();
            assert_eq!(all, expected, "seed {seed}");
        }
        for key in expected.into_keys() {
            assert!(gradual.contains_key(&key));
            gradual.remove(&key);
        }
        assert!(gradual.is_empty() && gradual.iter().next().is_none());
    }
}

#[test]
fn a_list_keeps_its_elements_where_they_are() {
    let mut chunks = GradualList::with(0);
    for number in 1..3 * CHUNK_LEN {
        assert_eq!(chunks.push(number), number);
    }
    let before = std::ptr::from_ref(&chunks[CHUNK_LEN + 1]);
    for number in 3 * CHUNK_LEN..9 * CHUNK_LEN {
        chunks.push(number);
    }
    assert!(std::ptr::eq(before, &chunks[CHUNK_LEN + 1]));
    chunks[5] = 7;
    assert_eq!((chunks[5], chunks[8 * CHUNK_LEN], chunks.len()), (7, 8 * CHUNK_LEN, 9 * CHUNK_LEN));
}

#[test]
fn a_slab_holds_each_element_at_its_place_and_takes_free_places_again() {
    let (mut slab, mut expected) = (GradualSlab::default(), HashMap::new());
    let mut rng = fastrand::Rng::with_seed(7);
    for number in 0..4 * CHUNK_LEN {
        let place = slab.insert(number);
        assert_eq!(expected.insert(place, number), None, "the place was free");
        if rng.u8(..) < 80 {
            let place = rng.usize(..slab.places_end());
            assert_eq!(slab.remove(place), expected.remove(&place));
            assert_eq!(slab.get(place), None);
        }
        let place = rng.usize(..slab.places_end() + 1);
        assert_eq!(slab.get(place), expected.get(&place));
        assert_eq!(slab.len(), expected.len());
    }
    let all: HashMap<usize, usize> = slab.iter().map(|(place, number)| (place, *number)).collect();
    assert_eq!(all, expected);
    let end = slab.places_end();
    while slab.len() < end {
        slab.insert(0);
    }
    assert_eq!(slab.places_end(), end, "free places come first");
}
