//! The subscription index of one shard: full filters, their subscribers and their options.

mod subscribers;
mod trie;

use crate::TopicFilter;
use crate::gradual::GradualMap;
use subscribers::Subscribers;
use trie::Trie;

/// The subscriptions of one shard: filters, their subscribers and the options.
///
/// `K` identifies a subscriber (a session's index), `V` holds the options of one subscription, its
/// subscription identifier included. A subscriber has at most one entry per filter, but several of
/// its filters may match one topic: then each is reported.
///
/// Exact filters are found by one hash look-up, the others by a walk over the levels of the topic
/// that neither recurses nor allocates (except for topics of more than about 30 levels). Hash seeds
/// are random, because clients choose the filters.
#[derive(Debug)]
pub struct SubscriptionIndex<K, V> {
    exact: GradualMap<TopicFilter, Subscribers<K, V>>,
    wildcard: Trie<K, V>,
    len: usize,
}

impl<K, V> Default for SubscriptionIndex<K, V> {
    fn default() -> Self {
        Self { exact: GradualMap::default(), wildcard: Trie::default(), len: 0 }
    }
}

impl<K: Copy + Eq + std::hash::Hash + Ord, V> SubscriptionIndex<K, V> {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces the subscription of `key` to `filter`; returns the replaced options.
    pub fn insert(&mut self, filter: &TopicFilter, key: K, value: V) -> Option<V> {
        let replaced = if filter.is_exact() {
            match self.exact.get_mut(filter.as_str()) {
                Some(subscribers) => subscribers.insert(key, value),
                None => {
                    let subscribers = Subscribers::One(key, value);
                    self.exact.insert(filter.clone(), subscribers);
                    None
                }
            }
        } else {
            self.wildcard.insert(filter.as_str(), key, value)
        };
        self.len += usize::from(replaced.is_none());
        replaced
    }

    /// Removes the subscription of `key` to `filter`; returns its options.
    pub fn remove(&mut self, filter: &TopicFilter, key: K) -> Option<V> {
        let removed = if filter.is_exact() {
            let subscribers = self.exact.get_mut(filter.as_str())?;
            let removed = subscribers.remove(key);
            if subscribers.is_empty() {
                self.exact.remove(filter.as_str());
            }
            removed
        } else {
            self.wildcard.remove(filter.as_str(), key)
        };
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// The options of the subscription of `key` to `filter`.
    pub fn get(&self, filter: &TopicFilter, key: K) -> Option<&V> {
        if filter.is_exact() {
            self.exact.get(filter.as_str())?.get(key)
        } else {
            self.wildcard.subscribers(filter.as_str())?.get(key)
        }
    }

    /// Whether there is a subscription to `filter`.
    pub fn contains_filter(&self, filter: &TopicFilter) -> bool {
        if filter.is_exact() {
            self.exact.contains_key(filter.as_str())
        } else {
            self.wildcard.subscribers(filter.as_str()).is_some_and(|found| !found.is_empty())
        }
    }

    /// Calls `found` for each subscription whose filter matches `topic`, in no particular order; a
    /// subscriber with several matching filters is reported several times.
    pub fn for_each_match<'a>(&'a self, topic: &str, mut found: impl FnMut(&'a K, &'a V)) {
        if let Some(subscribers) = self.exact.get(topic) {
            subscribers.for_each(&mut found);
        }
        self.wildcard.for_each_match(topic, &mut found);
    }

    /// The filters that match `topic` and have subscribers: the exact one first, then those with
    /// wildcards in the order of a walk, which only changes with the filters.
    pub fn matching_filters(&self, topic: &str) -> Vec<String> {
        let exact = self.exact.get(topic).filter(|found| !found.is_empty());
        let mut filters: Vec<String> = exact.map(|_| topic.to_owned()).into_iter().collect();
        self.wildcard.for_each_filter(topic, |filter| filters.push(filter));
        filters
    }

    /// Up to `limit` subscriptions to `filter` from a place on, and how many there are in all. The
    /// places of others change with each one that is removed.
    pub fn subscribers_from(
        &self,
        filter: &TopicFilter,
        from: usize,
        limit: usize,
        mut found: impl FnMut(&K, &V),
    ) -> usize {
        let subscribers = match filter.is_exact() {
            true => self.exact.get(filter.as_str()),
            false => self.wildcard.subscribers(filter.as_str()),
        };
        let Some(subscribers) = subscribers else { return 0 };
        subscribers.part(from, limit, &mut found);
        subscribers.len()
    }

    /// The number of subscriptions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests;
