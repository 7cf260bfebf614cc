//! Containers that grow a little with each insertion.
//!
//! An ordinary hash table is copied as a whole when it is full, and each key is hashed anew: with a
//! million filters that takes a large part of a second, in which a shard does nothing else. Here
//! the former table stays for a while, and each insertion moves a few of its elements. Lists are
//! chunks of the same size, which never move.

mod list;
mod map;
mod slab;
mod table;

pub use list::GradualList;
pub use map::GradualMap;
pub use slab::GradualSlab;
pub use table::GradualTable;

#[cfg(test)]
mod tests;
