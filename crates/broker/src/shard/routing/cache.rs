//! The routes that a shard remembers: where messages to a topic go is computed once and kept while
//! it is valid.

use std::sync::Arc;

use hashbrown::HashTable;
use tacho_topic::{Group, RouteSnapshot, SubscriptionIndex, TopicFilter, TopicHash};

use super::destinations::{BridgeRoutes, Destinations, match_topic};
use crate::keys::SessionSlot;
use crate::subscription::{SubscriptionOptions, Target};

/// A topic and where its messages go.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) topic: Arc<str>,
    pub(crate) to: Destinations,
    hash: u64,
    map_generation: u64,
    local_generation: u64,
    recently_used: bool,
    /// Until then another shard has no memory left for messages to this topic.
    pub(crate) clogged_until_ns: u64,
}

impl Route {
    /// What it holds, roughly.
    fn bytes(&self) -> usize {
        let groups = self.to.groups.as_ref().map_or(0, |groups| groups.len());
        size_of::<Self>()
            + self.topic.len()
            + self.to.local.len() * size_of::<Target>()
            + groups * size_of::<Arc<Group>>()
    }
}

/// A bounded map topic -> [`Route`]; a full map replaces an entry not used lately (clock).
pub(crate) struct RouteCache {
    /// Slots by topic, hashed with the route map's seed.
    table: HashTable<u32>,
    routes: Vec<Route>,
    /// The last look-up of a topic too long to be remembered.
    long: Option<Route>,
    hand: usize,
    topics_max: usize,
    /// What all remembered routes hold.
    bytes: usize,
    bytes_max: usize,
    generations: LocalGenerations,
    /// Present where there are bridges.
    bridges: Option<BridgeRoutes>,
    pub(crate) evictions: u64,
}

/// When this shard's own wildcard subscriptions changed last, by the literal levels in front of the
/// wildcard.
struct LocalGenerations {
    /// By place of [`TopicHash::places`]; no memory before the first change.
    places: Vec<u64>,
    leading_wildcard: u64,
    changes: u64,
}

/// Longer topics are not remembered: full of them, the cache would hold gigabytes.
const TOPIC_REMEMBERED_BYTES_MAX: usize = 1024;

impl RouteCache {
    pub(crate) fn new(topics_max: usize, bytes_max: usize) -> Self {
        Self {
            table: HashTable::new(),
            routes: Vec::new(),
            long: None,
            hand: 0,
            topics_max: topics_max.max(1),
            bytes: 0,
            bytes_max,
            generations: LocalGenerations { places: Vec::new(), leading_wildcard: 0, changes: 0 },
            bridges: None,
            evictions: 0,
        }
    }

    /// From now on messages leave by these bridges too. Before the first look-up.
    pub(crate) fn set_bridges(&mut self, bridges: BridgeRoutes) {
        self.bridges = Some(bridges);
    }

    /// The route of a topic: remembered if still valid, else matched anew.
    #[inline]
    pub(crate) fn lookup(
        &mut self,
        topic: &str,
        shard: usize,
        index: &SubscriptionIndex<SessionSlot, SubscriptionOptions>,
        snapshot: &RouteSnapshot,
    ) -> &Route {
        let topic_hash = snapshot.hash_topic(topic);
        let hash = topic_hash.topic();
        let map_generation = snapshot.generation_of(topic_hash);
        let local_generation = self.generations.of(topic_hash);
        let slot = match self.slot_of(topic, hash) {
            Some(slot) => {
                let route = &mut self.routes[slot];
                route.recently_used = true;
                if route.map_generation != map_generation
                    || route.local_generation != local_generation
                {
                    let before = route.bytes();
                    route.to = match_topic(topic, shard, index, snapshot, self.bridges.as_ref());
                    route.map_generation = map_generation;
                    route.local_generation = local_generation;
                    self.bytes = self.bytes - before + route.bytes();
                    self.forget_old(slot);
                }
                slot
            }
            None => {
                let to = match_topic(topic, shard, index, snapshot, self.bridges.as_ref());
                let route = Route {
                    topic: topic.into(),
                    to,
                    hash,
                    map_generation,
                    local_generation,
                    recently_used: false,
                    clogged_until_ns: 0,
                };
                if topic.len() > TOPIC_REMEMBERED_BYTES_MAX {
                    return self.long.insert(route);
                }
                self.insert(route)
            }
        };
        &self.routes[slot]
    }

    /// Where a topic is remembered.
    #[inline]
    fn slot_of(&self, topic: &str, hash: u64) -> Option<usize> {
        let is_topic = |&slot: &u32| &*self.routes[slot as usize].topic == topic;
        self.table.find(hash, is_topic).map(|&slot| slot as usize)
    }

    /// This shard's subscriptions to `filter` changed.
    pub(crate) fn local_change(&mut self, filter: &TopicFilter, snapshot: &RouteSnapshot) {
        if !filter.is_exact() {
            self.generations.note(snapshot.place_of(filter));
            return;
        }
        // It concerns one topic: make just that entry stale.
        let topic = filter.as_str();
        if let Some(slot) = self.slot_of(topic, snapshot.hash_topic(topic).topic()) {
            self.routes[slot].local_generation = u64::MAX;
        }
    }

    fn insert(&mut self, route: Route) -> usize {
        let hash = route.hash;
        self.bytes += route.bytes();
        let slot = if self.routes.len() < self.topics_max {
            self.routes.push(route);
            self.routes.len() - 1
        } else {
            let slot = self.victim();
            let old_hash = self.routes[slot].hash;
            if let Ok(entry) = self.table.find_entry(old_hash, |&i| i as usize == slot) {
                entry.remove();
            }
            self.evictions += 1;
            self.bytes -= self.routes[slot].bytes();
            self.routes[slot] = route;
            slot
        };
        self.forget_old(slot);
        let routes = &self.routes;
        self.table.insert_unique(hash, slot as u32, |&i| routes[i as usize].hash);
        slot
    }

    /// Forgets matches, of routes not used lately first, until all hold no more than they may. The
    /// topics stay: what was forgotten is matched anew when it is wanted.
    #[inline]
    fn forget_old(&mut self, newest: usize) {
        if self.bytes > self.bytes_max {
            self.forget_until_small(newest);
        }
    }

    #[cold]
    fn forget_until_small(&mut self, newest: usize) {
        // Two rounds at most: one clears the marks of used entries, one evicts.
        for _ in 0..2 * self.routes.len() {
            if self.bytes <= self.bytes_max {
                return;
            }
            self.hand = (self.hand + 1) % self.routes.len();
            let route = &mut self.routes[self.hand];
            if self.hand == newest || std::mem::take(&mut route.recently_used) {
                continue;
            }
            if !route.to.local.is_empty() || route.to.groups.is_some() {
                let before = route.bytes();
                route.to = Destinations::none();
                route.map_generation = u64::MAX;
                self.bytes = self.bytes - before + route.bytes();
                self.evictions += 1;
            }
        }
    }

    /// Messages to this topic had to wait in another shard that has no memory left.
    pub(crate) fn clogged(&mut self, topic: &str, snapshot: &RouteSnapshot, until_ns: u64) {
        if let Some(slot) = self.slot_of(topic, snapshot.hash_topic(topic).topic()) {
            self.routes[slot].clogged_until_ns = until_ns;
        }
    }

    fn victim(&mut self) -> usize {
        loop {
            self.hand = (self.hand + 1) % self.routes.len();
            let route = &mut self.routes[self.hand];
            if !route.recently_used {
                return self.hand;
            }
            route.recently_used = false;
        }
    }
}

impl LocalGenerations {
    /// The number of the last change that concerns a topic.
    #[inline]
    fn of(&self, topic: TopicHash) -> u64 {
        let mut newest = self.leading_wildcard;
        if !self.places.is_empty() {
            for place in topic.places() {
                newest = newest.max(self.places[place]);
            }
        }
        newest
    }

    /// Notes a change at a place, or of a filter that starts with a wildcard.
    fn note(&mut self, place: Option<usize>) {
        self.changes += 1;
        match place {
            Some(place) => {
                if self.places.is_empty() {
                    self.places = vec![0; TopicHash::PLACES];
                }
                self.places[place] = self.changes;
            }
            None => self.leading_wildcard = self.changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tacho_topic::{RouteChange, RouteMap};

    use super::*;

    /// A shard's cache in front of `count` subscribers to everything.
    fn cache(
        count: u32,
        bytes_max: usize,
    ) -> (RouteCache, RouteMap, SubscriptionIndex<SessionSlot, SubscriptionOptions>) {
        let map = RouteMap::with_shards(1);
        let mut index = SubscriptionIndex::new();
        let filter = TopicFilter::parse("#").expect("a filter");
        let options = SubscriptionOptions::new(&tacho_codec::SubscribeOptions::default(), None);
        for session in 0..count {
            index.insert(&filter, SessionSlot::new(session), options);
        }
        map.apply(&[RouteChange::Add { filter: tacho_topic::Filter::Plain(filter), shard: 0 }]);
        (RouteCache::new(1_000, bytes_max), map, index)
    }

    #[test]
    fn matches_of_many_topics_hold_no_more_than_they_may() {
        let receivers = 1_000;
        let bytes_max = 10 * receivers * size_of::<Target>();
        let (mut cache, map, index) = cache(receivers as u32, bytes_max);
        let snapshot = map.snapshot();
        for round in 0..3 {
            for topic in 0..500 {
                let route = cache.lookup(&format!("topic/{topic}"), 0, &index, &snapshot);
                assert_eq!(route.to.local.len(), receivers, "round {round}, topic {topic}");
                // What is used all the time stays.
                let often = cache.lookup("often", 0, &index, &snapshot).to.local.clone();
                let again = cache.lookup("often", 0, &index, &snapshot).to.local.clone();
                assert!(Rc::ptr_eq(&often, &again));
            }
            let held: usize = cache.routes.iter().map(Route::bytes).sum();
            assert_eq!(held, cache.bytes);
            assert!(held <= bytes_max, "{held} of {bytes_max} bytes");
        }
        assert!(cache.evictions > 1_000);
    }
}
