//! Names that cross shards: tenants, clients, sessions.

use std::sync::Arc;

/// A tenant. Part of every key from the first day; there is one so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TenantId(pub(crate) u32);

impl TenantId {
    pub(crate) const DEFAULT: Self = Self(0);
}

/// What makes a session unique: its tenant and client id.
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
