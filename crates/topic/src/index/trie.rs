//! The filters with wildcards: a trie by levels.
//!
//! Nodes live in one slab. The children with a literal level are found in one hash table by parent
//! and level, so that a look-up in a node with a million children costs as much as in one with two.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;

use super::subscribers::Subscribers;
use crate::gradual::{GradualList, GradualTable};
use crate::level::{End, Level, Levels, Pending, split_end};

/// The index of the root node. No node has it as a child, so it also marks an absent child.
const ROOT: u32 = 0;

/// A trie of filters that contain a wildcard.
#[derive(Debug)]
pub(super) struct Trie<K, V> {
    nodes: GradualList<TrieNode<K, V>>,
    free: Vec<u32>,
    /// Nodes with a literal level, by parent and level.
    literals: GradualTable<u32>,
    state: RandomState,
}

#[derive(Debug)]
struct TrieNode<K, V> {
    parent: u32,
    /// The child for `+`, or [`ROOT`] for none.
    plus: u32,
    literal_children: u32,
    /// The label under which the parent finds this node.
    edge: EdgeLabel,
    /// Subscribers of the filter that ends here.
    here: Subscribers<K, V>,
    /// Subscribers of the filter that ends with a `+` below here.
    single: Subscribers<K, V>,
    /// Subscribers of the filter that has a `#` below here.
    multi: Subscribers<K, V>,
}

#[derive(Debug)]
enum EdgeLabel {
    Plus,
    Literal(Level),
}

impl<K, V> TrieNode<K, V> {
    fn new(parent: u32, edge: EdgeLabel) -> Self {
        Self {
            parent,
            plus: ROOT,
            literal_children: 0,
            edge,
            here: Subscribers::None,
            single: Subscribers::None,
            multi: Subscribers::None,
        }
    }

    fn is_needed(&self) -> bool {
        self.plus != ROOT
            || self.literal_children > 0
            || [&self.here, &self.single, &self.multi].iter().any(|found| !found.is_empty())
    }

    fn subscribers(&self, end: End) -> &Subscribers<K, V> {
        match end {
            End::Here => &self.here,
            End::Single => &self.single,
            End::Multi => &self.multi,
        }
    }

    fn subscribers_mut(&mut self, end: End) -> &mut Subscribers<K, V> {
        match end {
            End::Here => &mut self.here,
            End::Single => &mut self.single,
            End::Multi => &mut self.multi,
        }
    }

    fn is_child(&self, parent: u32, level: &str) -> bool {
        self.parent == parent
            && matches!(&self.edge, EdgeLabel::Literal(own) if own.as_bytes() == level.as_bytes())
    }
}

impl<K, V> Default for Trie<K, V> {
    fn default() -> Self {
        Self {
            nodes: GradualList::with(TrieNode::new(ROOT, EdgeLabel::Plus)),
            free: Vec::new(),
            literals: GradualTable::default(),
            state: RandomState::default(),
        }
    }
}

impl<K: Copy + Eq + Hash, V> Trie<K, V> {
    pub(super) fn insert(&mut self, filter: &str, key: K, value: V) -> Option<V> {
        let (path, end) = split_end(filter);
        let mut node = ROOT;
        for level in path.into_iter().flat_map(|path| path.split('/')) {
            node = match self.child(node, level) {
                Some(child) => child,
                None => self.add_child(node, level),
            };
        }
        self.nodes[node as usize].subscribers_mut(end).insert(key, value)
    }

    pub(super) fn remove(&mut self, filter: &str, key: K) -> Option<V> {
        let (at, end) = self.find(filter)?;
        let removed = self.nodes[at as usize].subscribers_mut(end).remove(key);
        self.prune(at);
        removed
    }

    pub(super) fn subscribers(&self, filter: &str) -> Option<&Subscribers<K, V>> {
        let (at, end) = self.find(filter)?;
        Some(self.nodes[at as usize].subscribers(end))
    }

    pub(super) fn for_each_match<'a>(&'a self, topic: &str, found: &mut impl FnMut(&'a K, &'a V)) {
        self.walk(topic, |_, node, end| node.subscribers(end).for_each(found));
    }

    /// Calls `found` for each filter that matches `topic` and has subscribers.
    pub(super) fn for_each_filter(&self, topic: &str, mut found: impl FnMut(String)) {
        self.walk(topic, |at, node, end| {
            if !node.subscribers(end).is_empty() {
                found(self.filter_at(at, end));
            }
        });
    }

    /// Visits where filters that match `topic` may end.
    #[inline]
    fn walk<'a>(&'a self, topic: &str, mut visit: impl FnMut(u32, &'a TrieNode<K, V>, End)) {
        if !self.nodes[ROOT as usize].is_needed() {
            return;
        }
        let levels = Levels::new(topic);
        let mut pending = Pending::<(u32, u32)>::new();
        let mut next = if topic.starts_with('$') {
            // Filters that start with a wildcard do not apply, so only the literal child counts.
            let (level, below) = levels.at(0);
            self.literal(ROOT, level).map(|child| (child, below))
        } else {
            Some((ROOT, 0))
        };
        while let Some((at, offset)) = next {
            let node = &self.nodes[at as usize];
            visit(at, node, End::Multi);
            next = None;
            if levels.is_end(offset) {
                visit(at, node, End::Here);
            } else {
                let (level, below) = levels.at(offset);
                if levels.is_end(below) {
                    visit(at, node, End::Single);
                }
                if node.literal_children > 0 {
                    next = self.literal(at, level).map(|child| (child, below));
                }
                if node.plus != ROOT {
                    if let Some(literal) = next {
                        pending.push(literal);
                    }
                    next = Some((node.plus, below));
                }
            }
            next = next.or_else(|| pending.pop());
        }
    }

    /// The text of the filter that ends so at a node.
    fn filter_at(&self, mut at: u32, end: End) -> String {
        let mut levels: Vec<String> = match end {
            End::Here => Vec::new(),
            End::Single => vec!["+".to_owned()],
            End::Multi => vec!["#".to_owned()],
        };
        while at != ROOT {
            let node = &self.nodes[at as usize];
            levels.push(match &node.edge {
                EdgeLabel::Plus => "+".to_owned(),
                EdgeLabel::Literal(level) => String::from_utf8_lossy(level.as_bytes()).into_owned(),
            });
            at = node.parent;
        }
        levels.reverse();
        levels.join("/")
    }

    /// The node that holds `filter`, and how the filter ends there.
    fn find(&self, filter: &str) -> Option<(u32, End)> {
        let (path, end) = split_end(filter);
        let mut node = ROOT;
        for level in path.into_iter().flat_map(|path| path.split('/')) {
            node = self.child(node, level)?;
        }
        Some((node, end))
    }

    fn child(&self, parent: u32, level: &str) -> Option<u32> {
        if level == "+" {
            let plus = self.nodes[parent as usize].plus;
            return (plus != ROOT).then_some(plus);
        }
        self.literal(parent, level)
    }

    fn literal(&self, parent: u32, level: &str) -> Option<u32> {
        let hash = hash_edge(&self.state, parent, level.as_bytes());
        let is_it = |&at: &u32| self.nodes[at as usize].is_child(parent, level);
        self.literals.find(hash, is_it).copied()
    }

    fn add_child(&mut self, parent: u32, level: &str) -> u32 {
        let is_plus = level == "+";
        let edge = if is_plus { EdgeLabel::Plus } else { EdgeLabel::Literal(Level::new(level)) };
        let child = TrieNode::new(parent, edge);
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = child;
                at
            }
            None => {
                // Invariant: memory is exhausted before there are 2^32 nodes.
                u32::try_from(self.nodes.push(child)).expect("fewer than 2^32 nodes")
            }
        };
        if is_plus {
            self.nodes[parent as usize].plus = at;
        } else {
            self.nodes[parent as usize].literal_children += 1;
            let hash = hash_edge(&self.state, parent, level.as_bytes());
            let rehash = |&at: &u32| {
                let node = &self.nodes[at as usize];
                match &node.edge {
                    EdgeLabel::Literal(level) => {
                        hash_edge(&self.state, node.parent, level.as_bytes())
                    }
                    EdgeLabel::Plus => 0,
                }
            };
            self.literals.insert_unique(hash, at, rehash);
        }
        at
    }

    /// Removes `at` and its ancestors up to the first node that is still needed.
    fn prune(&mut self, mut at: u32) {
        while at != ROOT && !self.nodes[at as usize].is_needed() {
            let parent = self.nodes[at as usize].parent;
            let unused = TrieNode::new(ROOT, EdgeLabel::Plus);
            let node = std::mem::replace(&mut self.nodes[at as usize], unused);
            match &node.edge {
                EdgeLabel::Plus => self.nodes[parent as usize].plus = ROOT,
                EdgeLabel::Literal(level) => {
                    self.nodes[parent as usize].literal_children -= 1;
                    let hash = hash_edge(&self.state, parent, level.as_bytes());
                    self.literals.remove(hash, |&present| present == at);
                }
            }
            self.free.push(at);
            at = parent;
        }
    }
}

fn hash_edge(state: &RandomState, parent: u32, level: &[u8]) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write_u32(parent);
    hasher.write(level);
    hasher.finish()
}

#[cfg(test)]
impl<K, V> Trie<K, V> {
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    pub(super) fn slab_len(&self) -> usize {
        self.nodes.len()
    }
}
