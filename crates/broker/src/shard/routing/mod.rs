//! Routing: the subscriptions of this shard, and where the messages of a topic go.

mod cache;
mod destinations;
mod filters;
mod full;
mod marks;
mod removals;
mod requests;
mod subscribe;
mod totals;
mod unsubscribe;

use std::sync::Arc;

use tacho_codec::QoS;
use tacho_topic::{
    Filter, Group, RouteChange, RouteMap, RouteSnapshot, SharedFilter, SubscriptionIndex,
    TopicFilter,
};

use crate::config::Limits;
use crate::keys::SessionSlot;
use crate::permits::Quota;
use crate::stats::ShardStats;
use crate::subscription::SubscriptionOptions;
use cache::RouteCache;
use full::FullSessions;
use marks::DurableMarks;
use removals::Removals;

pub(super) use cache::{Route, RouteHint};
use destinations::Filters;
pub(super) use destinations::{BridgeRoutes, Destinations, LeavesBy};
pub(super) use filters::SubscribedFilters;
pub(super) use requests::SessionRequest;
pub(super) use totals::SubscriptionCounts;
pub(crate) use totals::SubscriptionTotals;

/// What a filter of a SUBSCRIBE or UNSUBSCRIBE costs, in the map that shards share too.
const FILTER_UNITS: u32 = 3;
/// Filters of it that are handled before other clients are served: few, as many may ask at once.
const PIECE_FILTERS: usize = 64;

/// Owns the filters of this shard's sessions, also of those that have ended a moment ago, the route
/// map as last loaded, and the routes that were computed from both.
pub(super) struct Routing {
    shard: usize,
    snapshot: Arc<RouteSnapshot>,
    index: SubscriptionIndex<SessionSlot, SubscriptionOptions>,
    cache: RouteCache,
    durable: DurableMarks,
    removals: Removals,
    full: FullSessions,
    /// SUBSCRIBEs and UNSUBSCRIBEs that are begun and not finished.
    requests: Arc<Quota>,
}

impl Routing {
    /// `keeps_qos0`: the journal may have to keep QoS 0 messages, too.
    pub(super) fn new(
        shard: usize,
        routes: &RouteMap,
        limits: &Limits,
        keeps_qos0: bool,
        stats: Arc<ShardStats>,
    ) -> Self {
        Self {
            shard,
            snapshot: routes.snapshot(),
            index: SubscriptionIndex::new(),
            cache: RouteCache::new(limits.route_cache_topics_max, limits.route_cache_bytes_max),
            durable: DurableMarks::new(shard, keeps_qos0),
            removals: Removals::new(limits, stats),
            full: FullSessions::new(shard),
            requests: Quota::new(requests::UNFINISHED_MAX),
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
        self.lookup_near(topic, &mut RouteHint::default())
    }

    /// The same for a client that may stay with its topic: the hint is that of its last look-up.
    #[inline]
    pub(super) fn lookup_near(&mut self, topic: &str, hint: &mut RouteHint) -> &Route {
        let Self { shard, ref snapshot, ref index, .. } = *self;
        self.cache.lookup(topic, hint, &Filters { shard, snapshot, index })
    }

    /// The options of a session's subscription.
    pub(super) fn options(
        &self,
        filter: &TopicFilter,
        slot: SessionSlot,
    ) -> Option<SubscriptionOptions> {
        self.index.get(filter, slot).copied()
    }

    /// The filters of this shard that match a topic.
    pub(super) fn matching_filters(&self, topic: &str) -> Vec<String> {
        self.index.matching_filters(topic)
    }

    /// Up to so many subscribers of a filter from a place on, and how many there are in all.
    pub(super) fn subscribers_from(
        &self,
        (filter, from, limit): (&TopicFilter, usize, usize),
        mut found: impl FnMut(SessionSlot, SubscriptionOptions),
    ) -> usize {
        self.index.subscribers_from(filter, from, limit, |slot, options| found(*slot, *options))
    }

    /// Adds a session's subscription or replaces its options. What the route map has to learn of it
    /// goes to `changes`.
    pub(super) fn insert(
        &mut self,
        filter: &TopicFilter,
        slot: SessionSlot,
        (options, is_durable): (SubscriptionOptions, bool),
        changes: &mut Vec<RouteChange>,
    ) {
        let former = self.options(filter, slot);
        if !self.index.contains_filter(filter) {
            let filter = Filter::Plain(filter.clone());
            changes.push(RouteChange::Add { filter, shard: self.shard });
        }
        self.index.insert(filter, slot, options);
        self.cache.local_change(filter, &self.snapshot);
        if is_durable {
            let qos = (former.map(|options| options.qos), Some(options.qos));
            self.durable.changed(filter, qos, changes);
        }
        self.full.subscribed(slot, (filter, options.qos), changes);
    }

    /// Adds a durable session's subscription before anything was routed.
    pub(super) fn restore(
        &mut self,
        filter: &TopicFilter,
        slot: SessionSlot,
        options: SubscriptionOptions,
    ) {
        self.index.insert(filter, slot, options);
        // The route map has all marks of restored subscriptions already.
        self.durable.changed(filter, (None, Some(options.qos)), &mut Vec::new());
    }

    /// Removes a session's subscription. What the route map has to learn of it goes to `changes`.
    pub(super) fn remove(
        &mut self,
        filter: &TopicFilter,
        slot: SessionSlot,
        is_durable: bool,
        changes: &mut Vec<RouteChange>,
    ) {
        let former = self.options(filter, slot);
        self.index.remove(filter, slot);
        self.cache.local_change(filter, &self.snapshot);
        if is_durable {
            self.durable.changed(filter, (former.map(|options| options.qos), None), changes);
        }
        self.full.unmark(slot, filter, changes);
        if former.is_some() && !self.index.contains_filter(filter) {
            let filter = Filter::Plain(filter.clone());
            changes.push(RouteChange::Remove { filter, shard: self.shard });
        }
    }

    /// Whether a session counts as full.
    pub(super) fn is_full(&self, slot: SessionSlot) -> bool {
        self.full.contains(slot)
    }

    /// A session is full: its filters are marked in the route map, some in each turn. False if it
    /// has not yet lost all marks since it was full before.
    pub(super) fn session_filled(
        &mut self,
        slot: SessionSlot,
        subscribed: &SubscribedFilters,
    ) -> bool {
        let assured = subscribed.iter().filter_map(|filter| match filter {
            Filter::Plain(filter) => {
                subscribes_assured(&self.index, slot, filter).then(|| filter.clone())
            }
            Filter::Shared(_) => None,
        });
        let filters = assured.collect();
        self.full.filled(slot, filters)
    }

    /// A session that was full has room: the marks are taken away in the same way.
    pub(super) fn session_has_room(&mut self, slot: SessionSlot) {
        self.full.has_room(slot);
    }

    /// The sessions that count as full, or did so a moment ago.
    pub(super) fn full_sessions(&self) -> Vec<SessionSlot> {
        self.full.all()
    }

    /// Whether filters of full sessions are to be marked or unmarked.
    #[inline]
    pub(super) fn owes_marks(&self) -> bool {
        self.full.is_unfinished()
    }

    /// Marks and unmarks up to `budget` filters of full sessions: `changes` for the route map.
    /// Returns the number of sessions that have room and no marks left.
    pub(super) fn mark_full(&mut self, budget: usize, changes: &mut Vec<RouteChange>) -> usize {
        let index = &self.index;
        let is_subscribed = |slot, filter: &_| subscribes_assured(index, slot, filter);
        self.full.advance(budget, is_subscribed, changes).len()
    }

    /// Messages to this topic had to wait in another shard that has no memory left.
    pub(super) fn note_clogged(&mut self, topic: &str, until_ns: u64) {
        self.cache.clogged(topic, &self.snapshot, until_ns);
    }

    /// From now on messages leave by these bridges too. Before the first look-up.
    pub(super) fn set_bridges(&mut self, bridges: BridgeRoutes) {
        self.cache.set_bridges(bridges);
    }

    /// Where messages go has changed by something else than filters.
    pub(super) fn forget_routes(&mut self) {
        self.cache.forget_routes();
    }

    /// SUBSCRIBEs and UNSUBSCRIBEs that are begun and not finished.
    #[cfg(feature = "sim")]
    pub(super) fn requests_len(&self) -> usize {
        self.requests.used()
    }

    /// Remembered routes that were discarded to make room.
    pub(super) fn evictions(&self) -> u64 {
        self.cache.evictions
    }
}

/// Whether a session has a subscription with QoS 1 or 2.
fn subscribes_assured(
    index: &SubscriptionIndex<SessionSlot, SubscriptionOptions>,
    slot: SessionSlot,
    filter: &TopicFilter,
) -> bool {
    index.get(filter, slot).is_some_and(|options| options.qos != QoS::AtMostOnce)
}
