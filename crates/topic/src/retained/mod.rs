//! Retained values by topic, with cursors that stay valid under changes.

mod order;
mod seek;

use std::collections::BTreeSet;
use std::collections::btree_set::Range;
use std::ops::Bound;
use std::sync::Arc;

use crate::TopicFilter;
use crate::gradual::GradualMap;
use order::{LevelOrdered, TopicOrder};

/// Retained values by topic.
///
/// A topic is found by one hash look-up. Wildcard filters walk the topics in the order of their
/// levels and skip ranges that cannot match. A cursor is just a position in that order and stays
/// valid under inserts and removals.
#[derive(Debug)]
pub struct RetainedIndex<V> {
    values: GradualMap<Arc<str>, V>,
    ordered: BTreeSet<LevelOrdered>,
}

/// The position of a replay: every topic before it has been delivered or does not match.
///
/// A cursor belongs to one filter; a new one ([`RetainedCursor::default`]) starts at the first
/// topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetainedCursor {
    /// The first position that may still match: a topic or a text between topics.
    position: String,
    /// Whether no topic from `position` on can match.
    ended: bool,
}

impl RetainedCursor {
    /// The text to continue from at another time; `None` when there is no more.
    pub fn position(&self) -> Option<&str> {
        (!self.ended).then_some(&*self.position)
    }

    /// Continues at a [`position`](Self::position), of the same filter.
    pub fn at(position: &str) -> Self {
        Self { position: position.to_owned(), ended: false }
    }
}

/// Whether a replay is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All matches are delivered.
    Done,
    /// The budget is used up or the receiver paused: call again.
    More,
}

impl<V> Default for RetainedIndex<V> {
    fn default() -> Self {
        Self { values: GradualMap::default(), ordered: BTreeSet::new() }
    }
}

impl<V> RetainedIndex<V> {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value retained for `topic`.
    pub fn get(&self, topic: &str) -> Option<&V> {
        self.values.get(topic)
    }

    /// The value retained for `topic`, to change in place.
    pub fn get_mut(&mut self, topic: &str) -> Option<&mut V> {
        self.values.get_mut(topic)
    }

    /// Retains `value` for `topic`; returns the value it replaces.
    pub fn insert(&mut self, topic: &str, value: V) -> Option<V> {
        match self.values.get_mut(topic) {
            Some(present) => Some(std::mem::replace(present, value)),
            None => self.insert_new(topic.into(), value),
        }
    }

    /// Like [`insert`](Self::insert), but keeps the given text instead of a copy of it.
    pub fn insert_shared(&mut self, topic: &Arc<str>, value: V) -> Option<V> {
        match self.values.get_mut(topic) {
            Some(present) => Some(std::mem::replace(present, value)),
            None => self.insert_new(Arc::clone(topic), value),
        }
    }

    fn insert_new(&mut self, topic: Arc<str>, value: V) -> Option<V> {
        self.ordered.insert(LevelOrdered(Arc::clone(&topic)));
        self.values.insert(topic, value)
    }

    /// Removes and returns the value of `topic`.
    pub fn remove(&mut self, topic: &str) -> Option<V> {
        let value = self.values.remove(topic)?;
        self.ordered.remove(&topic as &dyn TopicOrder);
        Some(value)
    }

    /// The number of topics.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether nothing is retained.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All topics and values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.values.iter().map(|(topic, value)| (&**topic, value))
    }

    /// Continues the replay of `filter` at `cursor` and calls `found` for matches, in the order of
    /// topic levels.
    ///
    /// At most `budget` steps are made. A step examines one topic, which may match or not, so at
    /// most `budget` topics are delivered, possibly none. A topic that is present during the whole
    /// replay is delivered exactly once; one that is inserted or removed meanwhile, at most once.
    pub fn next<'a>(
        &'a self,
        filter: &TopicFilter,
        cursor: &mut RetainedCursor,
        budget: usize,
        mut found: impl FnMut(&'a str, &'a V),
    ) -> Progress {
        let mut budget = budget;
        let found = |topic, value| {
            found(topic, value);
            true
        };
        self.next_while(filter, cursor, &mut budget, found)
    }

    /// Like [`next`](Self::next), but subtracts the steps made from `budget`, and pauses when
    /// `found` returns false: the next call continues behind that topic.
    pub fn next_while<'a>(
        &'a self,
        filter: &TopicFilter,
        cursor: &mut RetainedCursor,
        budget: &mut usize,
        mut found: impl FnMut(&'a str, &'a V) -> bool,
    ) -> Progress {
        if filter.is_exact() {
            return self.next_exact(filter.as_str(), cursor, budget, found);
        }
        if cursor.ended {
            return Progress::Done;
        }
        let mut topics = self.topics_from(&cursor.position);
        while *budget > 0 {
            *budget -= 1;
            let Some(LevelOrdered(topic)) = topics.next() else {
                cursor.ended = true;
                return Progress::Done;
            };
            let visit = seek::visit(filter.as_str(), topic, &mut cursor.position);
            let mut is_paused = false;
            if visit.is_match
                && let Some((topic, value)) = self.values.get_key_value(topic)
            {
                is_paused = !found(topic, value);
            }
            match visit.next {
                seek::Next::End => {
                    cursor.ended = true;
                    return Progress::Done;
                }
                _ if is_paused => return Progress::More,
                seek::Next::Successor => {}
                seek::Next::Position => topics = self.topics_from(&cursor.position),
            }
        }
        Progress::More
    }

    /// The topics from `position` on.
    fn topics_from(&self, position: &str) -> Range<'_, LevelOrdered> {
        let from = Bound::Included(&position as &dyn TopicOrder);
        self.ordered.range::<dyn TopicOrder, _>((from, Bound::Unbounded))
    }

    fn next_exact<'a>(
        &'a self,
        topic: &str,
        cursor: &mut RetainedCursor,
        budget: &mut usize,
        mut found: impl FnMut(&'a str, &'a V) -> bool,
    ) -> Progress {
        if cursor.ended {
            return Progress::Done;
        }
        if *budget == 0 {
            return Progress::More;
        }
        *budget -= 1;
        if let Some((topic, value)) = self.values.get_key_value(topic) {
            found(topic, value);
        }
        cursor.ended = true;
        Progress::Done
    }
}

#[cfg(test)]
mod tests;
