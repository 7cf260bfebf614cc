//! The wildcard filters of the route map: a persistent tree by levels.
//!
//! Nodes do not own their children: all nodes are in one persistent hash map, found by parent and
//! level. So an update copies the changed nodes but not their ancestors, and dropping a tree of
//! thousands of levels does not recurse.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::hamt::{Entry, Hamt};
use super::targets::Targets;
use crate::level::{End, Level, Levels, Pending, split_end};

/// A tree of filters that contain a wildcard. A clone costs two reference counts.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    root: Arc<TreeNode>,
    nodes: Hamt<Arc<TreeNode>>,
    /// The number of the next node. Numbers are never reused, so that an old child cannot be taken
    /// for that of a new parent.
    next_id: u64,
}

#[derive(Clone, Debug)]
struct TreeNode {
    id: u64,
    parent: u64,
    /// The level under the parent; `+` for the wildcard, which no level of a topic equals.
    level: Level,
    literal_children: u32,
    has_plus: bool,
    /// Targets of the filter that ends here.
    here: Targets,
    /// Targets of the filter that ends with a `+` below here.
    single: Targets,
    /// Targets of the filter that has a `#` below here.
    multi: Targets,
}

impl TreeNode {
    fn new(id: u64, parent: u64, level: &str) -> Self {
        Self {
            id,
            parent,
            level: Level::new(level),
            literal_children: 0,
            has_plus: false,
            here: Targets::default(),
            single: Targets::default(),
            multi: Targets::default(),
        }
    }

    fn is_needed(&self) -> bool {
        self.has_plus
            || self.literal_children > 0
            || [&self.here, &self.single, &self.multi].iter().any(|found| !found.is_empty())
    }

    fn targets(&self, end: End) -> &Targets {
        match end {
            End::Here => &self.here,
            End::Single => &self.single,
            End::Multi => &self.multi,
        }
    }

    fn targets_mut(&mut self, end: End) -> &mut Targets {
        match end {
            End::Here => &mut self.here,
            End::Single => &mut self.single,
            End::Multi => &mut self.multi,
        }
    }
}

impl Entry for Arc<TreeNode> {
    fn hash(&self, state: &RandomState) -> u64 {
        hash_edge(state, self.parent, self.level.as_bytes())
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self { root: Arc::new(TreeNode::new(0, 0, "")), nodes: Hamt::default(), next_id: 1 }
    }
}

impl Tree {
    /// Calls `found` with the targets of each filter that matches `topic`.
    pub(super) fn for_each_match(
        &self,
        topic: &str,
        state: &RandomState,
        mut found: impl FnMut(&Targets),
    ) {
        if !self.root.is_needed() {
            return;
        }
        let levels = Levels::new(topic);
        let mut pending = Pending::<(Option<&TreeNode>, u32)>::new();
        let mut next = if topic.starts_with('$') {
            // Filters that start with a wildcard do not apply, so only the literal child counts.
            let (level, below) = levels.at(0);
            (self.child(&self.root, level, state), below)
        } else {
            (Some(&*self.root), 0)
        };
        while let (Some(node), offset) = next {
            next = (None, 0);
            found(&node.multi);
            if levels.is_end(offset) {
                found(&node.here);
            } else {
                let (level, below) = levels.at(offset);
                if levels.is_end(below) {
                    found(&node.single);
                }
                if node.literal_children > 0 {
                    next = (self.child(node, level, state), below);
                }
                if node.has_plus {
                    if next.0.is_some() {
                        pending.push(next);
                    }
                    next = (self.child(node, "+", state), below);
                }
            }
            if next.0.is_none() {
                next = pending.pop().unwrap_or_default();
            }
        }
    }

    /// The targets of `filter`.
    pub(super) fn get(&self, filter: &str, state: &RandomState) -> Option<&Targets> {
        let (path, end) = split_end(filter);
        let mut node = &*self.root;
        for level in path.into_iter().flat_map(|path| path.split('/')) {
            node = self.child(node, level, state)?;
        }
        Some(node.targets(end)).filter(|targets| !targets.is_empty())
    }

    /// Applies `change` to the targets of `filter`, which may be new or become empty.
    pub(super) fn update<R>(
        &mut self,
        filter: &str,
        state: &RandomState,
        change: impl FnOnce(&mut Targets) -> R,
    ) -> R {
        let (path, end) = split_end(filter);
        let mut ancestors = Vec::new();
        let mut parent = self.root.id;
        for level in path.into_iter().flat_map(|path| path.split('/')) {
            let hash = hash_edge(state, parent, level.as_bytes());
            let id = match self.nodes.get(hash, |node| is_child(node, parent, level)) {
                Some(node) => node.id,
                None => self.add_child(ancestors.last().copied(), parent, level, hash, state),
            };
            ancestors.push(PathStep { parent, level, hash });
            parent = id;
        }
        let result = change(self.node_mut(ancestors.last().copied()).targets_mut(end));
        self.prune(ancestors);
        result
    }

    fn child<'a>(
        &'a self,
        parent: &TreeNode,
        level: &str,
        state: &RandomState,
    ) -> Option<&'a TreeNode> {
        let hash = hash_edge(state, parent.id, level.as_bytes());
        self.nodes.get(hash, |node| is_child(node, parent.id, level)).map(|node| &**node)
    }

    /// The node that `step` leads to, or the root for `None`, mutable.
    fn node_mut(&mut self, step: Option<PathStep<'_>>) -> &mut TreeNode {
        let Some(PathStep { parent, level, hash }) = step else {
            return Arc::make_mut(&mut self.root);
        };
        let node = self.nodes.get_mut(hash, |node| is_child(node, parent, level));
        // Invariant: callers pass steps that they have just found or added.
        Arc::make_mut(node.expect("the step leads to a node"))
    }

    fn add_child(
        &mut self,
        parent_step: Option<PathStep<'_>>,
        parent: u64,
        level: &str,
        hash: u64,
        state: &RandomState,
    ) -> u64 {
        let parent_node = self.node_mut(parent_step);
        if level == "+" {
            parent_node.has_plus = true;
        } else {
            parent_node.literal_children += 1;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.nodes.insert(hash, Arc::new(TreeNode::new(id, parent, level)), state);
        id
    }

    /// Removes the last node of the path and its ancestors up to the first that is still needed.
    fn prune(&mut self, mut path: Vec<PathStep<'_>>) {
        while let Some(PathStep { parent, level, hash }) = path.pop() {
            let is_it = |node: &Arc<TreeNode>| is_child(node, parent, level);
            if self.nodes.get(hash, is_it).is_none_or(|node| node.is_needed()) {
                return;
            }
            self.nodes.remove(hash, is_it);
            let parent_node = self.node_mut(path.last().copied());
            if level == "+" {
                parent_node.has_plus = false;
            } else {
                parent_node.literal_children -= 1;
            }
        }
    }
}

/// One step of a path: a node is found by its parent's number and its level.
#[derive(Clone, Copy)]
struct PathStep<'a> {
    parent: u64,
    level: &'a str,
    hash: u64,
}

fn is_child(node: &TreeNode, parent: u64, level: &str) -> bool {
    node.parent == parent && node.level.as_bytes() == level.as_bytes()
}

fn hash_edge(state: &RandomState, parent: u64, level: &[u8]) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write_u64(parent);
    hasher.write(level);
    hasher.finish()
}
