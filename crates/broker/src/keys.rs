//! Names that cross shards: tenants, clients, sessions.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::quality::FixedState;

/// A tenant. Part of every key from the first day; there is one so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TenantId(pub(crate) u32);

impl TenantId {
    pub(crate) const DEFAULT: Self = Self(0);
}

/// What makes a session unique: its tenant and client id [MQTT-3.1.3-2]. Any text is taken
/// [MQTT-3.1.3-5].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) tenant: TenantId,
    pub(crate) client_id: Arc<str>,
}

/// A session somewhere: its shard, its slot there, and which of the slot's tenants it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionRef {
    pub(crate) shard: u16,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A hash that all shards agree on.
pub(crate) fn stable_hash(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::with_seed(0x7368_6172_6564).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}
