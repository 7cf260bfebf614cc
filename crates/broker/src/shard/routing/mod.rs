//! Routing: the subscriptions of this shard, and where the messages of a topic go.

mod cache;
mod destinations;
mod filters;
mod subscribe;
mod totals;

use std::sync::Arc;

use tacho_topic::{Group, RouteMap, RouteSnapshot, SharedFilter, SubscriptionIndex, TopicFilter};

use crate::config::Limits;
use crate::keys::SessionSlot;
use crate::subscription::SubscriptionOptions;
use cache::RouteCache;

pub(super) use cache::Route;
pub(super) use destinations::{BridgeRoutes, Destinations};
pub(super) use filters::SubscribedFilters;
pub(super) use totals::SubscriptionCounts;
pub(crate) use totals::SubscriptionTotals;

/// Owns the filters of this shard's sessions, the route map as last loaded, and the routes that
/// were computed from both.
pub(super) struct Routing {
    shard: usize,
    snapshot: Arc<RouteSnapshot>,
    index: SubscriptionIndex<SessionSlot, SubscriptionOptions>,
    cache: RouteCache,
}

impl Routing {
    pub(super) fn new(shard: usize, routes: &RouteMap, limits: &Limits) -> Self {
        Self {
            shard,
            snapshot: routes.snapshot(),
            index: SubscriptionIndex::new(),
            cache: RouteCache::new(limits.route_cache_topics_max, limits.route_cache_bytes_max),
        }
    }

    /// Loads the route map if it changed.
    #[inline]
    pub(super) fn refresh(&mut self, routes: &RouteMap) {
        routes.refresh(&mut self.snapshot);
    }

    /// The version of the route map as last loaded.
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.snapshot.version()
    }

    /// The shared group of this filter, if it has members anywhere.
    pub(super) fn group(&self, filter: &SharedFilter) -> Option<&Arc<Group>> {
        self.snapshot.group(filter)
    }

    /// Where messages to a topic go.
    #[inline]
    pub(super) fn lookup(&mut self, topic: &str) -> &Route {
        self.cache.lookup(topic, self.shard, &self.index, &self.snapshot)
    }

    /// The options of a session's subscription.
    pub(super) fn options(
        &self,
        filter: &TopicFilter,
        slot: SessionSlot,
    ) -> Option<SubscriptionOptions> {
        self.index.get(filter, slot).copied()
    }

    /// Adds a subscription or replaces its options. True if it is the first one to this filter.
    pub(super) fn insert(
        &mut self,
        filter: &TopicFilter,
        slot: SessionSlot,
        options: SubscriptionOptions,
    ) -> bool {
        let is_first = !self.index.contains_filter(filter);
        self.index.insert(filter, slot, options);
        self.cache.local_change(filter, &self.snapshot);
        is_first
    }

    /// Adds a subscription before anything was routed.
    pub(super) fn restore(
        &mut self,
        filter: &TopicFilter,
        slot: SessionSlot,
        options: SubscriptionOptions,
    ) {
        self.index.insert(filter, slot, options);
    }

    /// Removes a subscription. True if it was the last one to this filter.
    pub(super) fn remove(&mut self, filter: &TopicFilter, slot: SessionSlot) -> bool {
        self.index.remove(filter, slot);
        self.cache.local_change(filter, &self.snapshot);
        !self.index.contains_filter(filter)
    }

    /// Messages to this topic had to wait in another shard that has no memory left.
    pub(super) fn note_clogged(&mut self, topic: &str, until_ns: u64) {
        self.cache.clogged(topic, &self.snapshot, until_ns);
    }

    /// From now on messages leave by these bridges too. Before the first look-up.
    pub(super) fn set_bridges(&mut self, bridges: BridgeRoutes) {
        self.cache.set_bridges(bridges);
    }

    /// Remembered routes that were discarded to make room.
    pub(super) fn evictions(&self) -> u64 {
        self.cache.evictions
    }
}
