//! The routes that a shard remembers: where messages to a topic go is computed once and kept while
//! it is valid.

use std::sync::Arc;

use tacho_topic::{GradualList, GradualTable, Group, RouteSnapshot, TopicFilter, TopicHash};

use super::destinations::{BridgeRoutes, Destinations, Filters, match_topic};
use crate::subscription::Target;

/// A topic and where its messages go.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) topic: Arc<str>,
    pub(crate) to: Destinations,
    hash: TopicHash,
    map_generation: u64,
    local_generation: u64,
    /// When the generations were compared last: at that state of all filters there is no need to.
    compared_at: FiltersState,
    recently_used: bool,
    /// Until then another shard has no memory left for messages to this topic.
    pub(crate) clogged_until_ns: u64,
}

impl Route {
    /// Has it matched anew when it is wanted.
    fn make_stale(&mut self) {
        self.local_generation = u64::MAX;
        self.compared_at = FiltersState::NEVER;
    }

    /// What it holds, roughly.
    fn bytes(&self) -> usize {
        let groups = self.to.groups.as_ref().map_or(0, |groups| groups.len());
        size_of::<Self>()
            + self.topic.len()
            + self.to.local.len() * size_of::<Target>()
            + groups * size_of::<Arc<Group>>()
    }
}

/// Which filters there are: those of the route map as loaded, and this shard's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FiltersState {
    map_version: u64,
    /// Wildcard filters that this shard has added or removed. An exact one makes its route stale.
    local_changes: u64,
}

impl FiltersState {
    const NEVER: Self = Self { map_version: u64::MAX, local_changes: u64::MAX };
}

/// Where a route was when it was looked up last. Another one may be there now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteHint(u32);

/// A bounded map topic -> [`Route`]; a full map replaces an entry not used lately (clock).
pub(crate) struct RouteCache {
    /// Slots by topic, hashed with the route map's seed.
    table: GradualTable<u32>,
    routes: GradualList<Route>,
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
/// Routes looked at for one to replace: not all of 65,536 in one turn, where all were used.
const VICTIM_STEPS_MAX: usize = 64;
/// Routes looked at for matches to forget, with each that is matched: about 0.1 ms.
const FORGET_STEPS_MAX: usize = 1_024;

impl RouteCache {
    pub(crate) fn new(topics_max: usize, bytes_max: usize) -> Self {
        Self {
            table: GradualTable::default(),
            routes: GradualList::default(),
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

    /// Nothing that is remembered is valid any more.
    pub(crate) fn forget_routes(&mut self) {
        self.generations.note(None);
    }

    /// The route of a topic: remembered if still valid, else matched anew. A client that stays with
    /// one topic brings the hint of its last look-up, and the topic need not be hashed.
    #[inline]
    pub(crate) fn lookup(
        &mut self,
        topic: &str,
        hint: &mut RouteHint,
        filters: &Filters<'_>,
    ) -> &Route {
        let near = hint.0 as usize;
        let slot = if self.routes.get(near).is_some_and(|route| &*route.topic == topic) {
            near
        } else {
            let hash = filters.snapshot.hash_topic(topic);
            let Some(slot) = self.slot_of(topic, hash.topic()) else {
                return self.add(topic, hash, hint, filters);
            };
            *hint = RouteHint(slot as u32);
            slot
        };
        let state = self.state_of(filters);
        if self.routes[slot].compared_at != state {
            self.compare(slot, state, filters);
        }
        let route = &mut self.routes[slot];
        route.recently_used = true;
        route
    }

    fn state_of(&self, filters: &Filters<'_>) -> FiltersState {
        FiltersState {
            map_version: filters.snapshot.version(),
            local_changes: self.generations.changes,
        }
    }

    /// Matches a route anew if filters have changed that concern its topic.
    fn compare(&mut self, slot: usize, state: FiltersState, filters: &Filters<'_>) {
        let hash = self.routes[slot].hash;
        let generations = (filters.snapshot.generation_of(hash), self.generations.of(hash));
        let route = &mut self.routes[slot];
        route.compared_at = state;
        if (route.map_generation, route.local_generation) != generations {
            let before = route.bytes();
            route.to = match_topic(&route.topic, filters, self.bridges.as_ref());
            (route.map_generation, route.local_generation) = generations;
            self.bytes = self.bytes - before + route.bytes();
            self.forget_old(slot);
        }
    }

    /// Adds the route of a topic that has none.
    fn add(
        &mut self,
        topic: &str,
        hash: TopicHash,
        hint: &mut RouteHint,
        filters: &Filters<'_>,
    ) -> &Route {
        let route = Route {
            topic: topic.into(),
            to: match_topic(topic, filters, self.bridges.as_ref()),
            hash,
            map_generation: filters.snapshot.generation_of(hash),
            local_generation: self.generations.of(hash),
            compared_at: self.state_of(filters),
            recently_used: false,
            clogged_until_ns: 0,
        };
        if topic.len() > TOPIC_REMEMBERED_BYTES_MAX {
            return self.long.insert(route);
        }
        let slot = self.insert(route);
        *hint = RouteHint(slot as u32);
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
            self.routes[slot].make_stale();
        }
    }

    fn insert(&mut self, route: Route) -> usize {
        let hash = route.hash.topic();
        self.bytes += route.bytes();
        let slot = if self.routes.len() < self.topics_max {
            self.routes.push(route)
        } else {
            let slot = self.victim();
            let old_hash = self.routes[slot].hash.topic();
            self.table.remove(old_hash, |&i| i as usize == slot);
            self.evictions += 1;
            self.bytes -= self.routes[slot].bytes();
            self.routes[slot] = route;
            slot
        };
        self.forget_old(slot);
        let routes = &self.routes;
        self.table.insert_unique(hash, slot as u32, |&i| routes[i as usize].hash.topic());
        slot
    }

    /// Forgets matches, of routes not used lately first, until all hold no more than they may, or
    /// the next route goes on with it. The topics stay: what was forgotten is matched anew when it
    /// is wanted.
    #[inline]
    fn forget_old(&mut self, newest: usize) {
        if self.bytes > self.bytes_max {
            self.forget_some(newest);
        }
    }

    #[cold]
    fn forget_some(&mut self, newest: usize) {
        // Two rounds at most: one clears the marks of used entries, one evicts.
        for _ in 0..FORGET_STEPS_MAX.min(2 * self.routes.len()) {
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
                route.make_stale();
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

    /// A route that was not used lately, if one is near.
    fn victim(&mut self) -> usize {
        for _ in 0..VICTIM_STEPS_MAX {
            self.hand = (self.hand + 1) % self.routes.len();
            if !std::mem::take(&mut self.routes[self.hand].recently_used) {
                break;
            }
        }
        self.hand
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

    use tacho_topic::{RouteChange, RouteMap, SubscriptionIndex};

    use super::*;
    use crate::keys::SessionSlot;
    use crate::subscription::SubscriptionOptions;

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
        let filters = Filters { shard: 0, snapshot: &snapshot, index: &index };
        let mut hint = RouteHint::default();
        for round in 0..3 {
            for topic in 0..500 {
                let route = cache.lookup(&format!("topic/{topic}"), &mut hint, &filters);
                assert_eq!(route.to.local.len(), receivers, "round {round}, topic {topic}");
                // What is used all the time stays.
                let often = cache.lookup("often", &mut hint, &filters).to.local.clone();
                let again = cache.lookup("often", &mut hint, &filters).to.local.clone();
                assert!(Rc::ptr_eq(&often, &again));
            }
            let held: usize = cache.routes.iter().map(Route::bytes).sum();
            assert_eq!(held, cache.bytes);
            assert!(held <= bytes_max, "{held} of {bytes_max} bytes");
        }
        assert!(cache.evictions > 1_000);
    }

    #[test]
    fn a_full_cache_looks_at_few_routes_for_one_to_replace() {
        let (mut cache, map, index) = cache(1, usize::MAX);
        let snapshot = map.snapshot();
        let filters = Filters { shard: 0, snapshot: &snapshot, index: &index };
        let mut hint = RouteHint::default();
        for topic in (0..1_000).chain(0..1_000) {
            cache.lookup(&format!("topic/{topic}"), &mut hint, &filters);
        }
        let used = |cache: &RouteCache| cache.routes.iter().filter(|r| r.recently_used).count();
        assert_eq!(used(&cache), 1_000);
        cache.lookup("another", &mut hint, &filters);
        assert_eq!((used(&cache), cache.evictions), (1_000 - VICTIM_STEPS_MAX, 1));
        assert_eq!(cache.routes.len(), 1_000);
    }

    fn sessions_of<'a>(targets: impl Iterator<Item = &'a Target>) -> Vec<SessionSlot> {
        let mut sessions: Vec<_> = targets.map(|target| target.session).collect();
        sessions.sort_unstable_by_key(|session| session.index());
        sessions
    }

    #[test]
    fn hints_give_the_route_of_the_topic_as_it_is_now() {
        const TOPICS: [&str; 5] = ["a", "a/b", "a/c", "b/c", "$a/b"];
        const FILTERS: [&str; 7] = ["a", "a/b", "b/c", "a/+", "+/c", "#", "$a/#"];
        // Fewer places than topics: what a hint names may be another topic's.
        let map = RouteMap::with_shards(2);
        let (mut cache, mut index) = (RouteCache::new(3, 1 << 20), SubscriptionIndex::new());
        let mut hints = [RouteHint::default(); 3];
        let options = SubscriptionOptions::new(&tacho_codec::SubscribeOptions::default(), None);
        let mut random = fastrand::Rng::with_seed(71);
        let (mut snapshot, mut matched) = (map.snapshot(), 0);
        for _ in 0..20_000 {
            let filter = TopicFilter::parse(random.choice(FILTERS).expect("one")).expect("valid");
            let slot = SessionSlot::new(random.u32(..4));
            match random.u8(..8) {
                0 => {
                    index.insert(&filter, slot, options);
                    cache.local_change(&filter, &snapshot);
                }
                1 => {
                    index.remove(&filter, slot);
                    cache.local_change(&filter, &snapshot);
                }
                2 | 3 => {
                    let filter = tacho_topic::Filter::Plain(filter.clone());
                    let change = match random.bool() {
                        true => RouteChange::Add { filter, shard: 1 },
                        false => RouteChange::Remove { filter, shard: 1 },
                    };
                    map.apply(&[change]);
                    // A shard may go on with the map that it has loaded.
                    if random.bool() {
                        snapshot = map.snapshot();
                    }
                }
                _ => {}
            }
            let filters = Filters { shard: 0, snapshot: &snapshot, index: &index };
            for hint in &mut hints {
                let topic = random.choice(TOPICS).expect("one");
                let fresh = match_topic(topic, &filters, None);
                let route = cache.lookup(topic, hint, &filters);
                assert_eq!(&*route.topic, topic);
                assert_eq!(sessions_of(route.to.local.iter()), sessions_of(fresh.local.iter()));
                assert_eq!(route.to.remote, fresh.remote, "{topic}");
                matched += fresh.local.len() + usize::from(!fresh.remote.is_empty());
            }
        }
        assert!(matched > 20_000 && cache.evictions > 1_000, "{matched}, {}", cache.evictions);
    }
}
