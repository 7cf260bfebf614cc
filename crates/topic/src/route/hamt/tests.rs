use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// An entry that brings its own hash, so that tests can make hashes collide.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    hash: u64,
    key: u32,
    value: u32,
}

impl Entry for Item {
    fn hash(&self, _: &RandomState) -> u64 {
        self.hash
    }
}

/// Hashes that collide in all, in many, or in few bits.
fn colliding_hash(key: u32) -> u64 {
    match key % 3 {
        0 => 7,
        1 => u64::from(key) << 60,
        _ => u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

fn shape<T>(node: &HamtNode<T>) -> (usize, usize) {
    node.branches.iter().fold((1, node.leaves.len()), |(nodes, leaves), below| {
        let (nodes_below, leaves_below) = shape(below);
        (nodes + nodes_below, leaves + leaves_below)
    })
}

proptest! {
    #[test]
    fn equals_an_ordinary_map(
        operations in prop::collection::vec((0..3_u8, 0..60_u32, any::<u32>()), 0..300),
    ) {
        let state = RandomState::default();
        let mut map = Hamt::default();
        let mut oracle = BTreeMap::new();
        let mut earlier: Vec<(Hamt<Item>, BTreeMap<u32, u32>)> = Vec::new();
        for (kind, key, value) in operations {
            let hash = colliding_hash(key);
            if kind == 0 {
                let removed = map.remove(hash, |item: &Item| item.key == key);
                prop_assert_eq!(removed.map(|item| item.value), oracle.remove(&key));
            } else {
                match map.get_mut(hash, |item: &Item| item.key == key) {
                    Some(item) => item.value = value,
                    None => map.insert(hash, Item { hash, key, value }, &state),
                }
                oracle.insert(key, value);
            }
            if kind == 2 {
                earlier.push((map.clone(), oracle.clone()));
            }
        }
        earlier.push((map.clone(), oracle.clone()));
        for (map, oracle) in &earlier {
            prop_assert_eq!(map.len(), oracle.len());
            prop_assert_eq!(shape(&map.root).1, oracle.len());
            for key in 0..60 {
                let found = map.get(colliding_hash(key), |item| item.key == key);
                prop_assert_eq!(found.map(|item| item.value), oracle.get(&key).copied());
            }
        }
        for &key in oracle.keys() {
            map.remove(colliding_hash(key), |item| item.key == key);
        }
        prop_assert_eq!(shape(&map.root), (1, 0), "an emptied map keeps no nodes");
    }
}
