//! A persistent hash map (a hash array mapped trie): a tree of 16-way nodes in which an update
//! copies only the path to the change, while readers keep their version of the tree.

use std::sync::Arc;

use foldhash::fast::RandomState;

/// Bits of the hash that one level of the tree uses.
const LEVEL_BITS: u32 = 4;

/// Levels until the hash is used up; below, entries with equal hashes are in a list.
const DEPTH_MAX: u32 = u64::BITS / LEVEL_BITS;

/// An entry of the map: key and value in one, hashed by the key.
pub(super) trait Entry: Clone {
    fn hash(&self, state: &RandomState) -> u64;
}

/// A set of entries found by hash and predicate. A clone costs one reference count.
#[derive(Clone, Debug)]
pub(super) struct Hamt<T> {
    root: Arc<HamtNode<T>>,
    len: usize,
}

#[derive(Debug)]
struct HamtNode<T> {
    /// Bit set of the 16 places that an entry occupies; meaningless at [`DEPTH_MAX`].
    leaf_places: u16,
    /// Bit set of the 16 places that a child node occupies.
    branch_places: u16,
    /// The entries, in ascending order of their places.
    leaves: Box<[T]>,
    /// The child nodes, in ascending order of their places.
    branches: Box<[Arc<Self>]>,
}

#[cfg(test)]
thread_local! {
    /// Nodes that updates have copied: what they cost, in a large map.
    pub(super) static COPIES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl<T: Clone> Clone for HamtNode<T> {
    fn clone(&self) -> Self {
        #[cfg(test)]
        COPIES.set(COPIES.get() + 1);
        Self {
            leaf_places: self.leaf_places,
            branch_places: self.branch_places,
            leaves: self.leaves.clone(),
            branches: self.branches.clone(),
        }
    }
}

impl<T> Default for Hamt<T> {
    fn default() -> Self {
        Self { root: Arc::new(HamtNode::empty()), len: 0 }
    }
}

impl<T> Hamt<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let mut node = &*self.root;
        let mut depth = 0;
        while let Some(at) = node.branch_at(hash, depth) {
            node = &node.branches[at];
            depth += 1;
        }
        node.find(hash, depth, is_it).map(|at| &node.leaves[at])
    }

    /// Calls `found` with each entry, in the order of their hashes' places.
    pub(super) fn for_each<'a>(&'a self, found: &mut impl FnMut(&'a T)) {
        self.root.for_each(found);
    }
}

impl<T: Entry> Hamt<T> {
    /// The entry, mutable: its path is copied first if another tree shares it.
    pub(super) fn get_mut(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        self.get(hash, &is_it)?;
        let (node, depth) = self.last_node_mut(hash);
        let at = node.find(hash, depth, is_it)?;
        Some(&mut node.leaves[at])
    }

    /// Adds an entry whose key is not present.
    pub(super) fn insert(&mut self, hash: u64, entry: T, state: &RandomState) {
        self.len += 1;
        let (mut node, mut depth) = self.last_node_mut(hash);
        while depth < DEPTH_MAX && node.leaf_places & place_bit(hash, depth) != 0 {
            // Another entry occupies the place: both move into a new child node.
            let other = node.take_leaf(hash, depth);
            depth += 1;
            let mut below = HamtNode::empty();
            below.put_leaf(other.hash(state), depth, other);
            node = node.put_branch(hash, depth - 1, below);
        }
        node.put_leaf(hash, depth, entry);
    }

    pub(super) fn remove(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<T> {
        self.get(hash, &is_it)?;
        let removed = Arc::make_mut(&mut self.root).remove(hash, 0, &is_it)?;
        self.len -= 1;
        Some(removed)
    }

    /// The node where the path of `hash` ends, and its depth; no other tree shares the path.
    fn last_node_mut(&mut self, hash: u64) -> (&mut HamtNode<T>, u32) {
        let mut node = Arc::make_mut(&mut self.root);
        let mut depth = 0;
        while let Some(at) = node.branch_at(hash, depth) {
            node = Arc::make_mut(&mut node.branches[at]);
            depth += 1;
        }
        (node, depth)
    }
}

impl<T> HamtNode<T> {
    fn empty() -> Self {
        Self { leaf_places: 0, branch_places: 0, leaves: [].into(), branches: [].into() }
    }

    /// The depth of the recursion is bounded by [`DEPTH_MAX`].
    fn for_each<'a>(&'a self, found: &mut impl FnMut(&'a T)) {
        for entry in &self.leaves {
            found(entry);
        }
        for below in &self.branches {
            below.for_each(found);
        }
    }

    /// The index of the child node at the hash's place, if there is one.
    fn branch_at(&self, hash: u64, depth: u32) -> Option<usize> {
        if depth >= DEPTH_MAX {
            return None;
        }
        let bit = place_bit(hash, depth);
        (self.branch_places & bit != 0).then(|| index_of(self.branch_places, bit))
    }

    /// The index of the entry, if this node holds it.
    fn find(&self, hash: u64, depth: u32, is_it: impl Fn(&T) -> bool) -> Option<usize> {
        if depth >= DEPTH_MAX {
            return self.leaves.iter().position(is_it);
        }
        let bit = place_bit(hash, depth);
        let at = index_of(self.leaf_places, bit);
        (self.leaf_places & bit != 0 && is_it(&self.leaves[at])).then_some(at)
    }

    /// Puts an entry into a free place, or into the list at [`DEPTH_MAX`].
    fn put_leaf(&mut self, hash: u64, depth: u32, entry: T) {
        let mut at = self.leaves.len();
        if depth < DEPTH_MAX {
            let bit = place_bit(hash, depth);
            self.leaf_places |= bit;
            at = index_of(self.leaf_places, bit);
        }
        insert(&mut self.leaves, at, entry);
    }

    /// Removes and returns the entry of an occupied place.
    fn take_leaf(&mut self, hash: u64, depth: u32) -> T {
        let bit = place_bit(hash, depth);
        let at = index_of(self.leaf_places, bit);
        self.leaf_places &= !bit;
        remove(&mut self.leaves, at)
    }
}

impl<T: Clone> HamtNode<T> {
    /// Puts a child node into a free place.
    fn put_branch(&mut self, hash: u64, depth: u32, below: Self) -> &mut Self {
        let bit = place_bit(hash, depth);
        self.branch_places |= bit;
        let at = index_of(self.branch_places, bit);
        insert(&mut self.branches, at, Arc::new(below));
        Arc::make_mut(&mut self.branches[at])
    }

    /// Removes an entry that is present. The depth of the recursion is bounded by [`DEPTH_MAX`].
    fn remove(&mut self, hash: u64, depth: u32, is_it: &impl Fn(&T) -> bool) -> Option<T> {
        let Some(at) = self.branch_at(hash, depth) else {
            let at = self.find(hash, depth, is_it)?;
            if depth < DEPTH_MAX {
                return Some(self.take_leaf(hash, depth));
            }
            return Some(remove(&mut self.leaves, at));
        };
        let below = Arc::make_mut(&mut self.branches[at]);
        let removed = below.remove(hash, depth + 1, is_it);
        // A single entry moves up, so that the shape of the tree depends only on its entries.
        if below.branches.is_empty() && below.leaves.len() == 1 {
            let lone = remove(&mut below.leaves, 0);
            self.branch_places &= !place_bit(hash, depth);
            remove(&mut self.branches, at);
            self.put_leaf(hash, depth, lone);
        }
        removed
    }
}

/// A node has at most 16 items of each kind, and there are millions of nodes: exact boxes, no spare
/// capacity.
fn insert<T>(items: &mut Box<[T]>, at: usize, item: T) {
    let mut all = std::mem::take(items).into_vec();
    all.reserve_exact(1);
    all.insert(at, item);
    *items = all.into_boxed_slice();
}

fn remove<T>(items: &mut Box<[T]>, at: usize) -> T {
    let mut all = std::mem::take(items).into_vec();
    let item = all.remove(at);
    *items = all.into_boxed_slice();
    item
}

fn place_bit(hash: u64, depth: u32) -> u16 {
    1 << ((hash >> (depth * LEVEL_BITS)) & 0xf)
}

/// The number of occupied places below that of `bit`.
fn index_of(places: u16, bit: u16) -> usize {
    (places & (bit - 1)).count_ones() as usize
}

#[cfg(test)]
mod tests;
