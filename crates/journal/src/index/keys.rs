//! The keys of one queue.

use std::collections::BTreeMap;

/// Up to this many are kept as a list: most queues have few keys, and there may be a million
/// queues.
const FEW: usize = 16;

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeySlot {
    pub(crate) version: u64,
    /// 0: none.
    pub(crate) message: u64,
    /// The place of its record: the last put, or the deletion.
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) len: u32,
    /// The newest segment with a value that was ignored because of a greater version; 0 for none.
    pub(crate) lost_in: u32,
    /// The key was deleted, and its version is kept.
    pub(crate) is_tombstone: bool,
}

/// The keys of a queue.
pub(super) enum Keys {
    /// In their order.
    Few(Vec<(Box<[u8]>, KeySlot)>),
    Many(BTreeMap<Box<[u8]>, KeySlot>),
}

impl Default for Keys {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Keys {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(few) => few.is_empty(),
            Self::Many(many) => many.is_empty(),
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&KeySlot> {
        match self {
            Self::Few(few) => few.get(find(few, key).ok()?).map(|(_, slot)| slot),
            Self::Many(many) => many.get(key),
        }
    }

    pub(super) fn get_mut(&mut self, key: &[u8]) -> Option<&mut KeySlot> {
        match self {
            Self::Few(few) => {
                let at = find(few, key).ok()?;
                few.get_mut(at).map(|(_, slot)| slot)
            }
            Self::Many(many) => many.get_mut(key),
        }
    }

    /// Sets the state of a key; returns the previous one.
    pub(super) fn insert(&mut self, key: &[u8], slot: KeySlot) -> Option<KeySlot> {
        if let Some(known) = self.get_mut(key) {
            return Some(std::mem::replace(known, slot));
        }
        match self {
            Self::Few(few) if few.len() < FEW => {
                let at = find(few, key).unwrap_or_else(|at| at);
                few.reserve_exact(1);
                few.insert(at, (key.into(), slot));
            }
            Self::Few(few) => {
                let mut many: BTreeMap<_, _> = std::mem::take(few).into_iter().collect();
                many.insert(key.into(), slot);
                *self = Self::Many(many);
            }
            Self::Many(many) => drop(many.insert(key.into(), slot)),
        }
        None
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<KeySlot> {
        match self {
            Self::Few(few) => {
                let at = find(few, key).ok()?;
                Some(few.remove(at).1)
            }
            Self::Many(many) => many.remove(key),
        }
    }

    /// Takes any of them.
    pub(super) fn pop(&mut self) -> Option<(Box<[u8]>, KeySlot)> {
        match self {
            Self::Few(few) => few.pop(),
            Self::Many(many) => many.pop_first(),
        }
    }

    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = (&[u8], &KeySlot)> + '_> {
        match self {
            Self::Few(few) => Box::new(few.iter().map(|(key, slot)| (&**key, slot))),
            Self::Many(many) => Box::new(many.iter().map(|(key, slot)| (&**key, slot))),
        }
    }
}

fn find(few: &[(Box<[u8]>, KeySlot)], key: &[u8]) -> Result<usize, usize> {
    few.binary_search_by(|(known, _)| (**known).cmp(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_a_sorted_map_however_many_there_are() {
        for keys_max in [10_u64, 100] {
            let mut random = fastrand::Rng::with_seed(keys_max);
            let mut keys = Keys::default();
            let mut model = BTreeMap::new();
            for version in 0..5_000 {
                let key = random.u64(..keys_max).to_string().into_bytes();
                let slot = KeySlot {
                    version,
                    message: 0,
                    segment: 1,
                    offset: 2,
                    len: 3,
                    lost_in: 0,
                    is_tombstone: false,
                };
                if random.bool() {
                    assert_eq!(keys.insert(&key, slot), model.insert(key.clone(), slot));
                } else {
                    assert_eq!(keys.remove(&key), model.remove(&key));
                }
                assert_eq!(keys.get(&key), model.get(&key));
                assert_eq!(keys.get_mut(&key).copied(), model.get(&key).copied());
                assert_eq!(keys.is_empty(), model.is_empty());
            }
            let expected = model.iter().map(|(key, slot)| (&key[..], slot));
            assert!(keys.iter().eq(expected));
            assert_eq!(matches!(keys, Keys::Many(_)), keys_max > FEW as u64);
        }
    }
}
