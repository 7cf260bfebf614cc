//! What all shards share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tacho_topic::RouteMap;

use super::connections::Authenticators;
use super::retained::{RetainedTotals, RetainedVersions};
use super::routing::SubscriptionTotals;
use crate::access::SharedAccess;
use crate::bridge::{BridgeDirectory, Bridges};
use crate::config::{self, Config, Limits, SharedStrategy};
use crate::durable::Durable;
use crate::durable::start::RecoveryContext;
use crate::events::Events;
use crate::listeners::ListenerParts;
use crate::memory::Memory;
use crate::permits::Quota;
use crate::room::Room;

/// What all shards share.
pub(crate) struct Shared {
    pub(crate) routes: RouteMap,
    /// As at the start; shards get later ones by mail.
    pub(crate) limits: Arc<Limits>,
    pub(crate) strategy: SharedStrategy,
    pub(crate) retained_versions: RetainedVersions,
    pub(crate) retained_totals: Arc<RetainedTotals>,
    /// By number.
    pub(crate) listeners: Arc<ListenerParts>,
    pub(crate) overload: config::Overload,
    /// Methods of enhanced authentication; without them none is known.
    pub(crate) authenticators: Option<Authenticators>,
    pub(crate) access: SharedAccess,
    /// The number of shards.
    pub(crate) shards: usize,
    /// The beginning of response topics, for clients that ask.
    pub(crate) response_information: Option<String>,
    /// Clients that are connected or about to be.
    pub(crate) connections: Arc<Quota>,
    /// Open sockets, as many as descriptors allow, refusals included.
    pub(crate) sockets: Arc<Quota>,
    /// Connections whose client is not connected yet.
    pub(crate) handshakes: Arc<Quota>,
    /// Subscriptions, and the bytes of their filters.
    pub(crate) subscriptions: Arc<SubscriptionTotals>,
    pub(crate) memory: Memory,
    pub(crate) room: Room,
    /// Number of shards with too many unfinished fan-outs; above 0 all publishers are held back.
    pub(crate) backlogged: Arc<Quota>,
    /// Present where there is a data directory.
    pub(crate) durable: Option<Durable>,
    /// Those that there are when the broker starts.
    pub(crate) bridges: Arc<Bridges>,
    /// The current ones, for others than shards.
    pub(crate) bridges_now: Arc<BridgeDirectory>,
    pub(crate) events: Arc<Events>,
    /// Bridges of other brokers have subscribed to something here.
    pub(crate) bridges_subscribe: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        config: &Config,
        listeners: Arc<ListenerParts>,
        access: SharedAccess,
        (connections_max, sockets_max): (usize, usize),
    ) -> Self {
        Self {
            routes: RouteMap::with_shards(config.shards),
            connections: Quota::new(connections_max),
            sockets: Quota::new(sockets_max),
            handshakes: Quota::new(config.limits.handshakes_max),
            subscriptions: Arc::new(SubscriptionTotals::new(&config.limits)),
            memory: Memory::new(&config.limits),
            room: Room::new(config.shards),
            backlogged: Quota::new(config.shards),
            overload: config.overload.clone(),
            limits: Arc::new(config.limits.clone()),
            strategy: config.shared_strategy,
            retained_versions: RetainedVersions::new(config.shards),
            retained_totals: Arc::new(RetainedTotals::new(&config.limits)),
            listeners,
            authenticators: None,
            access,
            shards: config.shards,
            response_information: config.response_information.clone(),
            durable: None,
            bridges: Arc::default(),
            bridges_now: Arc::default(),
            events: Arc::default(),
            bridges_subscribe: AtomicBool::new(false),
        }
    }

    /// The bridges that there are when the broker starts.
    pub(crate) fn set_bridges(&mut self, bridges: Bridges) {
        self.bridges = Arc::new(bridges);
        self.bridges_now.set(Arc::clone(&self.bridges));
    }

    /// What recovery needs to know before the shards run.
    pub(crate) fn recovery_context<'a>(&'a self, config: &'a Config) -> RecoveryContext<'a> {
        let (routes, bridges, memory) = (&self.routes, &*self.bridges, &self.memory);
        RecoveryContext { config, routes, bridges, memory }
    }
}
