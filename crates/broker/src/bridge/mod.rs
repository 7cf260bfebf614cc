//! Bridges to remote brokers: configuration, addresses and counters, as all shards and the control
//! plane share them. The connections themselves are in `shard::bridge`.
//!
//! # Links
//!
//! A bridge is a pool of connections that the broker opens to a remote broker; each is called a
//! link. QoS 1 and 2 are symmetric: a broker acts towards a subscriber as a client acts towards a
//! broker. So a link is an ordinary session whose socket this broker opens, with a client
//! identifier (`$bridge/NAME/K`) that no client may use. The queue of the session is the buffer of
//! the bridge, its window respects the receive maximum of the remote broker, and its packet
//! identifiers are those on the wire. With a data directory the session is durable, so exchanges
//! continue after a restart of either broker.
//!
//! # Routing
//!
//! Egress filters are fixed while the broker runs, so they are not in the route map but in a list
//! that all shards share. When a shard matches a topic for the first time, it also matches the
//! rules of the bridges. Each bridge with a matching rule adds one link, chosen by the hash of the
//! topic (`Bridge::link_of`): as a target in this shard, or as the shard that owns the link. So a
//! message is delivered once per bridge, messages of one topic stay in order, and brokers without
//! bridges do no extra work, since routes are cached. The links of a bridge are spread over the
//! shards.
//!
//! # Mapping
//!
//! Queues and journal contain the message as published. Its templates are rendered directly into
//! the output of the connection, or into a reused buffer; unchanged payloads are sent by reference.
//! A topic for which the remote broker has an alias is not rendered. After a restart with other
//! rules, queued messages are mapped by the new rules.
//!
//! # Ingress
//!
//! Messages from the remote broker take the path of a publisher: duplicate detection,
//! acknowledgement after the commit, memory budgets. A client without budget may be refused; a
//! remote broker is always held back, because it would treat a refusal as the end of the message.
//! Each ingress filter is subscribed by one link.
//!
//! # Connecting
//!
//! [`tacho_session::Link`] decides in virtual time when to connect, to give up and to send PINGREQ.
//! CONNACK says whether the remote broker has the session:
//!
//! - If not, unacknowledged messages are sent as new ones, messages with a PUBREC are complete, and
//!   subscriptions are made again (with 5.0 always).
//! - If it has a session that is unknown here, the link reconnects with a clean start before it
//!   sends anything: old packet identifiers could be mistaken for new ones.
//!
//! # Loops
//!
//! A message that arrives by a bridge has the bridge as its source and does not leave by the same
//! bridge, also after a crash. Messages that left do not come back because of No Local (5.0) or the
//! bridge bit (3.1.1, see [`tacho_codec::has_bridge_bit`]). Both apply to one connection only, so
//! rules of both directions whose topics overlap use the same link. A client that the configuration
//! names as a link of the remote broker's bridge to this one (`counterpart`) has the bridge as its
//! source, too.
//!
//! Loops over more brokers are not known to any of them. The bridges that a message has passed are
//! counted in it where it may pass another one (`crate::hops`), up to `hops_max`.
//!
//! # Drops
//!
//! Messages are dropped and counted by reason if the buffer is full (the publisher is acknowledged
//! nevertheless), the time to live is over, the remote broker refuses the message or its size, it
//! has passed too many bridges, or no rule or valid topic applies. A dropped message does not hold
//! up later ones.
//!
//! # Configuration changes
//!
//! Links beyond a smaller pool continue until their messages are delivered, and then end. A bridge
//! that is no longer configured ends at start together with its queued messages; the log says how
//! many.

mod addresses;
mod directory;
mod mode;
mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use tacho_net::tls::TlsClient;
use tacho_session::server::SessionLimits;
use tacho_session::{EXPIRY_NEVER, LinkSettings, Overflow};

use crate::config::{BridgeConfig, Config, ConfigError, EgressRule, IngressRule, Limits};
use crate::keys::{ClientKey, owner_of_link, stable_hash};
use crate::message::Source;

pub(crate) use addresses::Addresses;
pub(crate) use directory::BridgeDirectory;
pub use mode::BridgeMode;
use status::Subscribing;
pub use status::{Figures, LinkStats, LinkStatus, State, Status};

/// All bridges of a broker, in the order of the configuration.
#[derive(Debug, Default)]
pub struct Bridges {
    /// A place is never used again: links refer to it.
    all: Box<[Arc<Bridge>]>,
    shards: usize,
}

/// One bridge.
#[derive(Debug)]
pub struct Bridge {
    config: BridgeConfig,
    pub(crate) tls: Option<TlsClient>,
    pub(crate) addresses: Addresses,
    /// The source of messages that arrive by this bridge.
    pub(crate) source: Source,
    /// Queued bytes of all links.
    buffered: AtomicU64,
    links: Box<[LinkStats]>,
    /// The [`BridgeMode`].
    mode: AtomicU8,
    /// An operator has removed it.
    is_removed: AtomicBool,
    /// The state that was logged last.
    logged: AtomicU8,
    /// The rules by which messages could come back, see `Bridge::link_of`.
    egress_comes_back: Box<[bool]>,
    ingress_brings_back: Box<[bool]>,
}

impl Bridges {
    /// The configured bridges.
    ///
    /// # Errors
    /// Certificates cannot be read or used.
    pub(crate) fn open(config: &Config) -> Result<Self, ConfigError> {
        let bridges = config.bridges.iter().map(|bridge| Bridge::open(bridge).map(Arc::new));
        Ok(Self { all: bridges.collect::<Result<_, _>>()?, shards: config.shards })
    }

    /// The same with one more.
    ///
    /// # Errors
    /// Certificates cannot be read or used.
    pub(crate) fn with(&self, config: &BridgeConfig) -> Result<Self, ConfigError> {
        let mut all = self.all.to_vec();
        all.push(Arc::new(Bridge::open(config)?));
        Ok(Self { all: all.into(), shards: self.shards })
    }

    /// The status of each bridge.
    pub fn status(&self) -> Vec<Status> {
        self.present().map(|bridge| bridge.status()).collect()
    }

    /// Those that no operator has removed.
    pub(crate) fn present(&self) -> impl Iterator<Item = &Arc<Bridge>> {
        self.all.iter().filter(|bridge| !bridge.is_removed())
    }

    /// Places, those of removed bridges included.
    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    /// Connections of all bridges since the start, removed ones included.
    pub(crate) fn connections_ever(&self) -> usize {
        self.all.iter().map(|bridge| usize::from(bridge.config.connections)).sum()
    }

    /// Whether there are no bridges.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All bridges.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Bridge>> {
        self.all.iter()
    }

    /// The bridge with this name, and its index.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &Bridge)> {
        let mut all = self.all.iter().map(|bridge| &**bridge).enumerate();
        all.find(|(_, bridge)| bridge.config.name == name && !bridge.is_removed())
    }

    /// The source of messages of this client: the client itself, or a bridge if the client is a
    /// link of its counterpart.
    pub(crate) fn source_of(&self, client: &ClientKey) -> Source {
        let mut all = self.present();
        let found = all.find(|bridge| bridge.config.is_counterpart(&client.client_id));
        found.map_or_else(|| Source::for_client(client), |bridge| bridge.source)
    }

    pub(crate) fn at(&self, place: usize) -> &Bridge {
        &self.all[place]
    }

    /// The shard that owns a link.
    pub(crate) fn shard_of(&self, bridge: &Bridge, link: u16) -> usize {
        owner_of_link(&bridge.config.name, link, self.shards)
    }
}

impl<'a> IntoIterator for &'a Bridges {
    type Item = &'a Arc<Bridge>;
    type IntoIter = std::slice::Iter<'a, Arc<Bridge>>;

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
            mode: AtomicU8::new(BridgeMode::at_start(config.enabled) as u8),
            is_removed: AtomicBool::new(false),
            logged: AtomicU8::new(State::Connecting as u8),
            links: (0..config.connections).map(|_| LinkStats::default()).collect(),
            config: config.clone(),
        })
    }

    /// The configuration.
    pub const fn config(&self) -> &BridgeConfig {
        &self.config
    }

    /// The status of the bridge.
    pub fn status(&self) -> Status {
        let (name, remote) = (&self.config.name, self.config.remote.to_string());
        let is_stored = self.config.is_stored;
        Status { mode: self.mode(), is_stored, ..Status::sum(name, &remote, &self.links) }
    }

    /// What an operator wants of it.
    pub fn mode(&self) -> BridgeMode {
        BridgeMode::of_number(self.mode.load(Ordering::Relaxed))
    }

    /// An operator wants this from now on; shards have to be told.
    pub(crate) fn set_mode(&self, mode: BridgeMode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Whether an operator has removed it.
    pub(crate) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    /// An operator removes it; shards have to be told.
    pub(crate) fn remove(&self) {
        self.set_mode(BridgeMode::Stopped);
        self.is_removed.store(true, Ordering::Relaxed);
    }

    /// The counters of a link; `None` for a link beyond the configured pool, which only delivers
    /// its remaining messages.
    pub(crate) fn stats(&self, link: u16) -> Option<&LinkStats> {
        self.links.get(usize::from(link))
    }

    /// The egress rule of a topic, and its index. At most one applies, since filters of a bridge do
    /// not overlap.
    pub(crate) fn egress(&self, topic: &str) -> Option<(usize, &EgressRule)> {
        self.config.egress.iter().enumerate().find(|(_, rule)| rule.filter.matches(topic))
    }

    /// The link for messages of a topic by a rule, always the same.
    ///
    /// The remote broker does not send a message back on the connection that it arrived by, but it
    /// does on others. So one link has all rules of both directions that could form a loop.
    pub(crate) fn link_of(&self, rule: usize, topic: &str) -> u16 {
        if self.egress_comes_back.get(rule).is_some_and(|comes_back| *comes_back) {
            return 0;
        }
        let links = u64::from(self.config.connections.max(1));
        // Invariant: below a `u16`.
        (stable_hash(topic.as_bytes()) % links) as u16
    }

    /// The ingress rules of a link. Each rule belongs to one link, so that no message arrives
    /// twice.
    pub(crate) fn ingress_of(&self, link: u16) -> impl Iterator<Item = &IngressRule> {
        self.ingress().filter_map(move |(owner, rule)| (owner == link).then_some(rule))
    }

    /// The ingress rules of the other links; `None` unless all of these have subscribed.
    pub(crate) fn ingress_of_others(&self, link: u16) -> Option<Vec<&IngressRule>> {
        let others = self.ingress().filter(|(owner, _)| *owner != link);
        let is_granted = |owner| self.subscribing(owner) == Subscribing::Granted;
        others.map(|(owner, rule)| is_granted(owner).then_some(rule)).collect()
    }

    /// Whether the other links may have subscribed to all of their rules before long. After a
    /// refusal they do not.
    pub(crate) fn may_others_subscribe(&self, link: u16) -> bool {
        let others = || self.ingress().filter(|(owner, _)| *owner != link);
        let any = |answer| others().any(|(owner, _)| self.subscribing(owner) == answer);
        any(Subscribing::Unanswered) && !any(Subscribing::Refused)
    }

    fn subscribing(&self, link: u16) -> Subscribing {
        self.stats(link).map_or(Subscribing::Unanswered, LinkStats::subscribing)
    }

    /// All ingress rules with their links.
    fn ingress(&self) -> impl Iterator<Item = (u16, &IngressRule)> {
        let links = usize::from(self.config.connections.max(1));
        let rules = self.config.ingress.iter().zip(&self.ingress_brings_back).enumerate();
        rules.map(move |(place, (rule, brings_back))| {
            let owner = if *brings_back { 0 } else { place % links };
            // Invariant: it is below a `u16`.
            (owner as u16, rule)
        })
    }

    /// The session key of a link.
    pub(crate) fn key_of(&self, link: u16) -> ClientKey {
        ClientKey::for_link(&self.config.name, link)
    }

    /// The limits of the session of a link.
    pub(crate) fn session_limits(&self, limits: &Limits) -> SessionLimits {
        SessionLimits {
            // Limited by bytes, which include queue entries.
            queue_len_max: u32::MAX,
            queue_bytes_max: self.config.buffer_bytes_max,
            overflow: Overflow::DropNewest,
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
            ack_timeout_ns: ns(self.config.ack_timeout_s),
        }
    }

    /// Whether a message that has passed so many bridges goes no further.
    #[inline]
    pub(crate) fn circulates(&self, hops: u32) -> bool {
        let hops_max = self.config.hops_max;
        hops_max > 0 && hops >= hops_max
    }

    /// When a message that is queued now reaches its time to live.
    #[inline]
    pub(crate) fn waits_until_ns(&self, now_ns: u64) -> u64 {
        match self.config.buffer_ttl_s {
            0 => u64::MAX,
            ttl_s => now_ns.saturating_add(u64::from(ttl_s) * 1_000_000_000),
        }
    }

    /// Whether `bytes` more may be queued.
    pub(crate) fn has_room(&self, bytes: u32) -> bool {
        let buffered = self.buffered.load(Ordering::Relaxed);
        buffered.saturating_add(bytes.into()) <= self.config.buffer_bytes_max
    }

    /// Whether this state of any link has not been logged since another state was: the loss of a
    /// whole pool is logged once.
    pub(crate) fn is_news(&self, state: State) -> bool {
        self.logged.swap(state as u8, Ordering::Relaxed) != state as u8
    }

    /// Notes a change of the queued bytes of a link.
    pub(crate) fn holds(&self, before: u64, now: u64) {
        if now >= before {
            self.buffered.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.buffered.fetch_sub(before - now, Ordering::Relaxed);
        }
    }
}

/// Sessions of links end only with their bridge.
pub(crate) const LINK_EXPIRY_S: u32 = EXPIRY_NEVER;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_waits_for_others_only_while_they_may_still_subscribe() {
        let text = "[[bridges]]\nname = 'b'\naddress = 'mqtt://a'\nconnections = 3\n\
                    [[bridges.ingress]]\nfilter = 'x'\n[[bridges.ingress]]\nfilter = 'y'\n\
                    [[bridges.ingress]]\nfilter = 'z'\n";
        let raw: crate::config::RawConfig = toml::from_str(text).unwrap();
        let bridges = Bridges::open(&raw.resolve().unwrap()).unwrap();
        let bridge = bridges.at(0);
        let set = |link: u16, is_granted| bridge.stats(link).unwrap().set_subscribed(is_granted);
        set(1, true);
        assert!(bridge.may_others_subscribe(0) && bridge.ingress_of_others(0).is_none());
        set(2, false);
        assert!(!bridge.may_others_subscribe(0), "it will not be told anything new");
        assert!(bridge.ingress_of_others(0).is_none(), "the refused rule stays where it works");
        // It has connected again, and may now.
        set(2, true);
        assert_eq!(bridge.ingress_of_others(0).map(|rules| rules.len()), Some(2));
        assert!(!bridge.may_others_subscribe(0));
    }
}
