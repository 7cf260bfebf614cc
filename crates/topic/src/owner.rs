//! The shard that owns a session or a retained topic.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;

/// The shard, in `0..shards`, that owns the session with client id `key`, or the retained topic
/// `key`, of `tenant`.
///
/// All shards of a process compute the same owner. It may differ between versions of the program
/// and between machine types, so it must not be stored.
///
/// # Panics
/// When `shards` is 0.
pub fn owner_shard(tenant: u32, key: &[u8], shards: usize) -> usize {
    assert!(shards > 0, "there is at least one shard");
    let mut hasher = FixedState::with_seed(0x7461_6368_6f00).build_hasher();
    hasher.write_u32(tenant);
    hasher.write(key);
    // Multiply and shift maps the hash to the range without a division.
    ((u128::from(hasher.finish()) * shards as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::owner_shard;

    #[test]
    fn spreads_evenly_and_stays_put() {
        let mut counts = [0_u32; 6];
        for id in 0..60_000 {
            let key = format!("client-{id}");
            let owner = owner_shard(1, key.as_bytes(), counts.len());
            assert_eq!(owner, owner_shard(1, key.as_bytes(), counts.len()));
            counts[owner] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn depends_on_the_tenant() {
        let different = (0..100)
            .filter(|id: &u32| {
                let key = id.to_le_bytes();
                owner_shard(0, &key, 64) != owner_shard(1, &key, 64)
            })
            .count();
        assert!(different > 80, "{different}");
    }
}
