//! Keys that all shards share: tenants, clients, sessions.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::quality::FixedState;
use tacho_access::TokenAcl;
use tacho_topic::owner_shard;

/// A tenant. Part of every key, though there is only one tenant so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TenantId(pub(crate) u32);

impl TenantId {
    pub(crate) const DEFAULT: Self = Self(0);
}

/// The identity of a session: tenant and client identifier [MQTT-3.1.3-2]. Any text is accepted
/// [MQTT-3.1.3-5].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) tenant: TenantId,
    pub(crate) client_id: Arc<str>,
}

/// Prefix of the client identifiers of bridge links. No client may use it.
pub(crate) const LINK_PREFIX: &str = "$bridge/";

impl ClientKey {
    /// The key of a bridge link.
    pub(crate) fn for_link(bridge: &str, link: u16) -> Self {
        let client_id = format!("{LINK_PREFIX}{bridge}/{link}").into();
        Self { tenant: TenantId::DEFAULT, client_id }
    }

    /// The bridge and the number of a link, if the key is one of a link.
    pub(crate) fn link(&self) -> Option<(&str, u16)> {
        let (bridge, link) = self.client_id.strip_prefix(LINK_PREFIX)?.rsplit_once('/')?;
        Some((bridge, link.parse().ok()?))
    }

    /// The shard that owns its session.
    pub(crate) fn owner(&self, shards: usize) -> usize {
        match self.link() {
            Some((bridge, link)) => owner_of_link(bridge, link, shards),
            None => owner_shard(self.tenant.0, self.client_id.as_bytes(), shards),
        }
    }
}

/// The user that a client has logged in as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: Arc<str>,
    /// It is in a password file, and its connection ends when it is not any more.
    pub(crate) is_listed: bool,
    /// Of the token that it has logged in with, or of the backend's answer.
    pub(crate) rules: Option<Arc<TokenAcl>>,
}

/// The client that a CONNECT is from.
#[derive(Clone, Debug)]
pub(crate) struct ConnectingClient {
    pub(crate) key: ClientKey,
    /// The broker assigned its identifier, and says so in CONNACK.
    pub(crate) is_assigned: bool,
    /// Who it has logged in as; none yet, or anonymous.
    pub(crate) user: Option<User>,
    /// The user that its certificate names, where that counts.
    pub(crate) certificate_user: Option<Arc<str>>,
}

/// The place of a session among those of its shard. It is used again after the session's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionSlot(u32);

impl SessionSlot {
    /// No session has it.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) const fn new(number: u32) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The place of a bridge's link among those of its shard: not its number within the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinkIndex(u16);

impl LinkIndex {
    pub(crate) const fn new(number: u16) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> u16 {
        self.0
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A session of any shard: its slot there, and the generation that tells it from other sessions
/// that had the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionRef {
    pub(crate) shard: u16,
    pub(crate) slot: SessionSlot,
    pub(crate) generation: u32,
}

/// The shard of a bridge's link. Links are assigned round robin from a shard that depends on the
/// bridge's name, so that no shard has two links while another has none.
pub(crate) fn owner_of_link(bridge: &str, link: u16, shards: usize) -> usize {
    let first = stable_hash(bridge.as_bytes()) % shards.max(1) as u64;
    (first as usize + usize::from(link)) % shards.max(1)
}

/// A hash that all shards agree on.
pub(crate) fn stable_hash(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::with_seed(0x7368_6172_6564).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridge_links_have_their_own_keys_and_are_spread_over_the_shards() {
        let key = ClientKey::for_link("to/b", 7);
        assert_eq!(key.link(), Some(("to/b", 7)));
        let owners: Vec<usize> = (0..4).map(|k| ClientKey::for_link("b", k).owner(2)).collect();
        assert_eq!((owners[0], owners[1]), (owners[2], owners[3]));
        assert_ne!(owners[0], owners[1]);
        for other in ["$bridge/b", "bridge/b/1", "$bridge/b/x", "c"] {
            let key = ClientKey { tenant: TenantId::DEFAULT, client_id: other.into() };
            assert_eq!(key.link(), None, "{other}");
        }
    }
}
