//! Bridges: connections of the broker's own to other brokers, as all shards and the control plane
//! share them. What they do is in `shard::bridge`.

mod addresses;
mod status;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tacho_net::tls::TlsClient;
use tacho_session::server::SessionLimits;
use tacho_session::{EXPIRY_NEVER, LinkSettings};

use crate::config::{BridgeConfig, Config, ConfigError, EgressRule, IngressRule, Limits};
use crate::keys::{ClientKey, owner_of_link, stable_hash};
use crate::message::Source;

pub(crate) use addresses::Addresses;
pub use status::{Figures, LinkStats, LinkStatus, State, Status};

/// All bridges of a broker, in the order of the configuration.
#[derive(Debug, Default)]
pub struct Bridges {
    all: Box<[Bridge]>,
    shards: usize,
}

/// One bridge.
#[derive(Debug)]
pub struct Bridge {
    config: BridgeConfig,
    pub(crate) tls: Option<TlsClient>,
    pub(crate) addresses: Addresses,
    /// What comes by it counts as published by this.
    pub(crate) source: Source,
    /// Bytes that wait in all its links.
    buffered: AtomicU64,
    links: Box<[LinkStats]>,
    /// What was said last in the log: a [`State`]'s number.
    said: AtomicU8,
    /// The rules by which something could come back, see [`Bridge::link_of`].
    egress_comes_back: Box<[bool]>,
    ingress_brings_back: Box<[bool]>,
}

impl Bridges {
    /// The bridges of a configuration.
    ///
    /// # Errors
    /// Certificates cannot be read or used.
    pub(crate) fn open(config: &Config) -> Result<Self, ConfigError> {
        let bridges = config.bridges.iter().map(Bridge::open);
        Ok(Self { all: bridges.collect::<Result<_, _>>()?, shards: config.shards })
    }

    /// How each of them stands.
    pub fn status(&self) -> Vec<Status> {
        self.all.iter().map(Bridge::status).collect()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Bridge> {
        self.all.iter()
    }

    /// The bridge of this name, and its place.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &Bridge)> {
        self.all.iter().enumerate().find(|(_, bridge)| bridge.config.name == name)
    }

    /// Who publishes what this client does: itself, or the bridge that the other broker's own one
    /// is the counterpart of.
    pub(crate) fn source_of(&self, client: &ClientKey) -> Source {
        let mut all = self.all.iter();
        let found = all.find(|bridge| bridge.config.is_counterpart(&client.client_id));
        found.map_or_else(|| Source::for_client(client), |bridge| bridge.source)
    }

    pub(crate) fn at(&self, place: usize) -> &Bridge {
        &self.all[place]
    }

    /// The shard of a bridge's link.
    pub(crate) fn shard_of(&self, bridge: &Bridge, link: u16) -> usize {
        owner_of_link(&bridge.config.name, link, self.shards)
    }
}

impl<'a> IntoIterator for &'a Bridges {
    type Item = &'a Bridge;
    type IntoIter = std::slice::Iter<'a, Bridge>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Bridge {
    fn open(config: &BridgeConfig) -> Result<Self, ConfigError> {
        let tls = config.open_tls().map_err(|source| ConfigError::BridgeCertificates {
            name: config.name.clone(),
            source,
        })?;
        let (egress, ingress) = (&config.egress, &config.ingress);
        let comes_back = egress.iter().map(|e| ingress.iter().any(|i| e.comes_back_by(i)));
        let brings_back = ingress.iter().map(|i| egress.iter().any(|e| e.comes_back_by(i)));
        Ok(Self {
            egress_comes_back: comes_back.collect(),
            ingress_brings_back: brings_back.collect(),
            tls,
            addresses: Addresses::new(&config.remote),
            source: Source::for_bridge(&config.name),
            buffered: AtomicU64::new(0),
            said: AtomicU8::new(State::Connecting as u8),
            links: (0..config.connections).map(|_| LinkStats::default()).collect(),
            config: config.clone(),
        })
    }

    /// As configured.
    pub const fn config(&self) -> &BridgeConfig {
        &self.config
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        Status::of(&self.config.name, &self.config.remote.to_string(), &self.links)
    }

    /// The counters of a link; none of one that is here no longer, but for what it still holds.
    pub(crate) fn stats(&self, link: u16) -> Option<&LinkStats> {
        self.links.get(usize::from(link))
    }

    /// The rule that a topic leaves by, and its place: filters of one bridge do not overlap.
    pub(crate) fn egress(&self, topic: &str) -> Option<(usize, &EgressRule)> {
        self.config.egress.iter().enumerate().find(|(_, rule)| rule.filter.matches(topic))
    }

    /// The link that carries a topic by a rule, always the same.
    ///
    /// The other broker sends nothing back to the connection that it came by, but to others it
    /// does. So one link has all rules of both ways that could play into each other's hands.
    pub(crate) fn link_of(&self, rule: usize, topic: &str) -> u16 {
        if self.egress_comes_back.get(rule).is_some_and(|comes_back| *comes_back) {
            return 0;
        }
        let links = u64::from(self.config.connections.max(1));
        // Invariant: below a `u16`.
        (stable_hash(topic.as_bytes()) % links) as u16
    }

    /// What comes by this link: each rule by one, so that nothing comes twice.
    pub(crate) fn ingress_of(&self, link: u16) -> impl Iterator<Item = &IngressRule> {
        self.ingress().filter_map(move |(owner, rule)| (owner == link).then_some(rule))
    }

    /// What comes by others than this link; `None` while one of them has not subscribed to its
    /// rules yet.
    pub(crate) fn ingress_of_others(&self, link: u16) -> Option<Vec<&IngressRule>> {
        let others = self.ingress().filter(|(owner, _)| *owner != link);
        let has_subscribed = |owner| self.stats(owner).is_some_and(LinkStats::has_subscribed);
        others.map(|(owner, rule)| has_subscribed(owner).then_some(rule)).collect()
    }

    /// All rules of what comes, each with the link that it comes by.
    fn ingress(&self) -> impl Iterator<Item = (u16, &IngressRule)> {
        let links = usize::from(self.config.connections.max(1));
        let rules = self.config.ingress.iter().zip(&self.ingress_brings_back).enumerate();
        rules.map(move |(place, (rule, brings_back))| {
            let owner = if *brings_back { 0 } else { place % links };
            // Invariant: it is below a `u16`.
            (owner as u16, rule)
        })
    }

    /// Who a link is here.
    pub(crate) fn key_of(&self, link: u16) -> ClientKey {
        ClientKey::for_link(&self.config.name, link)
    }

    /// What the session of a link may hold.
    pub(crate) fn session_limits(&self, limits: &Limits) -> SessionLimits {
        SessionLimits {
            // Bytes bound it: places count too.
            queue_len_max: u32::MAX,
            queue_bytes_max: self.config.buffer_bytes_max,
            receive_maximum: self.config.inflight,
            inflight_max: self.config.inflight,
            queue_qos0_offline: true,
            alias_bytes_max: limits.topic_alias_bytes_max,
        }
    }

    pub(crate) fn link_settings(&self) -> LinkSettings {
        let ns = |s: u32| u64::from(s) * 1_000_000_000;
        LinkSettings {
            retry_first_ns: ns(self.config.retry_first_s),
            retry_longest_ns: ns(self.config.retry_longest_s),
            connect_timeout_ns: ns(self.config.connect_timeout_s),
            health_check_ns: ns(self.config.health_check_s),
        }
    }

    /// When a message that comes now has waited for too long.
    #[inline]
    pub(crate) fn waits_until_ns(&self, now_ns: u64) -> u64 {
        match self.config.buffer_ttl_s {
            0 => u64::MAX,
            ttl_s => now_ns.saturating_add(u64::from(ttl_s) * 1_000_000_000),
        }
    }

    /// Whether so many bytes more may wait.
    pub(crate) fn has_room(&self, bytes: u32) -> bool {
        let buffered = self.buffered.load(Ordering::Relaxed);
        buffered.saturating_add(bytes.into()) <= self.config.buffer_bytes_max
    }

    /// Whether the log has not been told this yet, of any link, since it was told otherwise: a
    /// pool that is lost together is said once.
    pub(crate) fn is_news(&self, state: State) -> bool {
        self.said.swap(state as u8, Ordering::Relaxed) != state as u8
    }

    /// A link holds another number of bytes now.
    pub(crate) fn holds(&self, before: u64, now: u64) {
        if now >= before {
            self.buffered.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.buffered.fetch_sub(before - now, Ordering::Relaxed);
        }
    }
}

/// Sessions of links end with their bridge only.
pub(crate) const LINK_EXPIRY_S: u32 = EXPIRY_NEVER;
