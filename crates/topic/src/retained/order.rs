//! Topics in the order of their levels.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Compares two topics level by level, so that all topics below a level are adjacent.
///
/// This is the order of bytes with `/` before every other byte.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    match left.iter().zip(right).position(|(left, right)| left != right) {
        Some(at) => rank(left[at]).cmp(&rank(right[at])),
        None => left.len().cmp(&right.len()),
    }
}

fn rank(byte: u8) -> u16 {
    if byte == b'/' { 0 } else { u16::from(byte) + 1 }
}

/// A stored topic, ordered by [`compare`].
#[derive(Debug)]
pub(super) struct LevelOrdered(pub(super) Arc<str>);

impl PartialEq for LevelOrdered {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for LevelOrdered {}

impl PartialOrd for LevelOrdered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LevelOrdered {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// A topic or a position between topics; lets the ordered set be searched by borrowed text.
pub(super) trait TopicOrder {
    fn text(&self) -> &str;
}

impl TopicOrder for LevelOrdered {
    fn text(&self) -> &str {
        &self.0
    }
}

impl TopicOrder for &str {
    fn text(&self) -> &str {
        self
    }
}

impl<'a> Borrow<dyn TopicOrder + 'a> for LevelOrdered {
    fn borrow(&self) -> &(dyn TopicOrder + 'a) {
        self
    }
}

impl PartialEq for dyn TopicOrder + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for dyn TopicOrder + '_ {}

impl PartialOrd for dyn TopicOrder + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn TopicOrder + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.text(), other.text())
    }
}
