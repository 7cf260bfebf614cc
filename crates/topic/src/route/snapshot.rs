//! One immutable state of the route map.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::generations::{Generations, TopicHash};
use super::hamt::{Entry, Hamt};
use super::targets::Targets;
use super::tree::Tree;
use super::{Group, MatchedShards, RouteChange, ShardSet};
use crate::{Filter, SharedFilter, TopicFilter};

/// The routes at one moment. A snapshot never changes; updates of the map create new ones.
#[derive(Clone, Debug)]
pub struct RouteSnapshot {
    exact: Hamt<ExactRoute>,
    wildcard: Tree,
    generations: Generations,
    state: RandomState,
    version: u64,
}

#[derive(Clone, Debug)]
struct ExactRoute {
    filter: TopicFilter,
    targets: Targets,
}

impl Entry for ExactRoute {
    fn hash(&self, state: &RandomState) -> u64 {
        state.hash_one(self.filter.as_str())
    }
}

impl RouteSnapshot {
    pub(super) fn new() -> Self {
        Self {
            exact: Hamt::default(),
            wildcard: Tree::default(),
            generations: Generations::default(),
            state: RandomState::default(),
            version: 0,
        }
    }

    /// The shards with a plain subscription that matches the valid topic name `topic`. Calls
    /// `found_group` for each matching shared group; the result does not include shards that only
    /// have members of such groups.
    pub fn shards_for(&self, topic: &str, found_group: &mut impl FnMut(&Arc<Group>)) -> ShardSet {
        self.matched_shards(topic, found_group).all
    }

    /// Like [`RouteSnapshot::shards_for`], with the marks of the shards: a shard has a mark if any
    /// of its filters that match `topic` has it.
    pub fn matched_shards(
        &self,
        topic: &str,
        found_group: &mut impl FnMut(&Arc<Group>),
    ) -> MatchedShards {
        let mut shards = MatchedShards::default();
        let mut add = |targets: &Targets| {
            shards = shards.union(targets.plain);
            targets.for_each_group(found_group);
        };
        if let Some(route) = self.exact_route(topic) {
            add(&route.targets);
        }
        self.wildcard.for_each_match(topic, &self.state, add);
        shards
    }

    /// The generation of `topic`: in two snapshots of a map with equal generations,
    /// [`RouteSnapshot::matched_shards`] returns the same for `topic`.
    ///
    /// It changes when an exact filter for this topic changes, or a wildcard filter that starts
    /// with the same literal levels (up to three) or with a wildcard; and, rarely, when a filter
    /// changes whose hash falls into the same bucket. It never decreases from one snapshot to a
    /// newer one.
    pub fn generation_for(&self, topic: &str) -> u64 {
        self.generation_of(self.hash_topic(topic))
    }

    /// Like [`generation_for`](Self::generation_for), for a hashed topic.
    #[inline]
    pub fn generation_of(&self, hash: TopicHash) -> u64 {
        self.generations.of_topic(hash, self.version)
    }

    /// Hashes a topic, with the same result in all snapshots of one map.
    #[inline]
    pub fn hash_topic(&self, topic: &str) -> TopicHash {
        TopicHash::new(topic, &self.state)
    }

    /// The bucket of a wildcard filter that does not start with a wildcard; it is among
    /// [`TopicHash::places`] of every topic that the filter matches.
    pub fn place_of(&self, filter: &TopicFilter) -> Option<usize> {
        TopicHash::place_of(filter, &self.state)
    }

    /// The group of `filter`, if any shard has a member, connected or not.
    pub fn group(&self, filter: &SharedFilter) -> Option<&Arc<Group>> {
        let text = filter.filter().as_str();
        let targets = if filter.filter().is_exact() {
            &self.exact_route(text)?.targets
        } else {
            self.wildcard.get(text, &self.state)?
        };
        targets.group(filter.group(), &self.state)
    }

    /// The number of changes published before this snapshot; a batch counts as one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number of distinct exact filters.
    pub fn exact_len(&self) -> usize {
        self.exact.len()
    }

    fn exact_route(&self, topic: &str) -> Option<&ExactRoute> {
        self.exact.get(self.state.hash_one(topic), |route| route.filter.as_str() == topic)
    }

    /// Applies `changes`; true if the state differs from the one before.
    pub(super) fn apply(
        &mut self,
        changes: &[RouteChange],
        new_group: &mut impl FnMut(&SharedFilter) -> Arc<Group>,
    ) -> bool {
        self.version += 1;
        let Self { exact, wildcard, generations, state, version } = self;
        let mut is_changed = false;
        for change in changes {
            let filter = change.filter().topic_filter();
            let edit = |targets: &mut Targets| edit_targets(targets, change, state, new_group);
            let has_effect = if filter.is_exact() {
                update_exact(exact, filter, state, edit)
            } else {
                wildcard.update(filter.as_str(), state, edit)
            };
            if has_effect {
                generations.note(filter, *version, state);
                is_changed = true;
            }
        }
        is_changed
    }
}

fn update_exact(
    exact: &mut Hamt<ExactRoute>,
    filter: &TopicFilter,
    state: &RandomState,
    edit: impl FnOnce(&mut Targets) -> bool,
) -> bool {
    let hash = state.hash_one(filter.as_str());
    let is_it = |route: &ExactRoute| route.filter == *filter;
    if let Some(route) = exact.get_mut(hash, is_it) {
        let has_effect = edit(&mut route.targets);
        if route.targets.is_empty() {
            exact.remove(hash, is_it);
        }
        return has_effect;
    }
    let mut targets = Targets::default();
    let has_effect = edit(&mut targets);
    if !targets.is_empty() {
        let route = ExactRoute { filter: filter.clone(), targets };
        exact.insert(hash, route, state);
    }
    has_effect
}

/// Applies one change to the targets of its filter; true if it had an effect.
fn edit_targets(
    targets: &mut Targets,
    change: &RouteChange,
    state: &RandomState,
    new_group: &mut impl FnMut(&SharedFilter) -> Arc<Group>,
) -> bool {
    match change {
        RouteChange::Add { filter: Filter::Plain(_), shard } => targets.plain.add(*shard),
        RouteChange::Remove { filter: Filter::Plain(_), shard } => targets.plain.remove(*shard),
        RouteChange::Mark { filter: Filter::Plain(_), shard, mark, is_set } => {
            targets.plain.mark(*shard, *mark, *is_set)
        }
        RouteChange::Mark { filter: Filter::Shared(_), .. } => false,
        RouteChange::Add { filter: Filter::Shared(shared), shard } => {
            targets.add_to_group(shared.group(), *shard, state, || new_group(shared))
        }
        RouteChange::Remove { filter: Filter::Shared(shared), shard } => {
            targets.remove_from_group(shared.group(), *shard, state)
        }
    }
}
