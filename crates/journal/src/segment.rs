//! Segments: the names of their files, and the table of those that form the log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::SegmentId;
use crate::storage::StorageFile;

const SUFFIX: &str = ".segment";

/// The name of a segment's file.
pub(crate) fn file_name(segment: SegmentId) -> String {
    format!("{:016x}{SUFFIX}", segment.get())
}

/// The segment with this file name; `None` for other names.
pub(crate) fn parse_name(name: &str) -> Option<SegmentId> {
    let digits = name.strip_suffix(SUFFIX)?;
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() != 16 || !plain {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().map(SegmentId::new)
}

/// A segment of the log.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) file: Arc<dyn StorageFile>,
    /// The size of its file.
    pub(crate) bytes: u64,
    /// An operation on it has failed: its file is not recycled.
    pub(crate) suspect: bool,
    /// A backup has its file, which is not recycled either.
    pub(crate) lent: bool,
}

impl Segment {
    /// A segment of which nothing bad is known.
    pub(crate) const fn new(file: Arc<dyn StorageFile>, bytes: u64) -> Self {
        Self { file, bytes, suspect: false, lent: false }
    }
}

/// What becomes of a segment without live records.
pub(crate) enum Freed {
    /// It stays in the table for the moment.
    Pinned,
    /// It is in the table no more.
    Gone,
    /// It was in the table.
    Removed(Segment),
}

/// No segment is freed until this is dropped.
pub(crate) struct Pinned<'a>(&'a Segments);

impl Pinned<'_> {
    /// All segments, the oldest first.
    pub(crate) fn all(&self) -> Vec<(SegmentId, Segment)> {
        let all = self.0.lock();
        all.segments.iter().map(|(id, segment)| (*id, segment.clone())).collect()
    }

    /// The files of these are not recycled from now on.
    pub(crate) fn lend(&self, ids: impl Iterator<Item = SegmentId>) {
        let mut all = self.0.lock();
        for id in ids {
            if let Some(segment) = all.segments.get_mut(&id) {
                segment.lent = true;
            }
        }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.0.lock().is_pinned = false;
    }
}

/// The segments of the log. The committer adds new ones and removes free ones.
#[derive(Default)]
pub(crate) struct Segments(Mutex<SegmentTable>);

#[derive(Default)]
struct SegmentTable {
    segments: BTreeMap<SegmentId, Segment>,
    /// Their total size.
    bytes: u64,
    /// None is freed.
    is_pinned: bool,
}

impl SegmentTable {
    fn remove(&mut self, id: SegmentId) -> Option<Segment> {
        let removed = self.segments.remove(&id)?;
        self.bytes -= removed.bytes;
        Some(removed)
    }
}

impl Segments {
    pub(crate) fn insert(&self, id: SegmentId, segment: Segment) {
        let mut all = self.lock();
        all.bytes += segment.bytes;
        let replaced = all.segments.insert(id, segment);
        all.bytes -= replaced.map_or(0, |segment| segment.bytes);
    }

    pub(crate) fn remove(&self, id: SegmentId) -> Option<Segment> {
        self.lock().remove(id)
    }

    /// Removes a segment without live records, unless none is freed at present.
    pub(crate) fn free(&self, id: SegmentId) -> Freed {
        let mut all = self.lock();
        if all.is_pinned {
            return Freed::Pinned;
        }
        all.remove(id).map_or(Freed::Gone, Freed::Removed)
    }

    /// Frees no segment for now; `None` if that is so already.
    pub(crate) fn pin(&self) -> Option<Pinned<'_>> {
        let was_pinned = std::mem::replace(&mut self.lock().is_pinned, true);
        (!was_pinned).then_some(Pinned(self))
    }

    pub(crate) fn get(&self, id: SegmentId) -> Option<Segment> {
        self.lock().segments.get(&id).cloned()
    }

    /// The newest segment.
    pub(crate) fn last(&self) -> Option<(SegmentId, Segment)> {
        self.lock().segments.last_key_value().map(|(id, segment)| (*id, segment.clone()))
    }

    /// Marks a segment whose file must not be recycled.
    pub(crate) fn suspect(&self, id: SegmentId) {
        if let Some(segment) = self.lock().segments.get_mut(&id) {
            segment.suspect = true;
        }
    }

    /// Updates the size of a segment that has grown.
    pub(crate) fn grown(&self, id: SegmentId, bytes: u64) {
        let mut all = self.lock();
        let Some(segment) = all.segments.get_mut(&id) else { return };
        let more = bytes.saturating_sub(segment.bytes);
        segment.bytes += more;
        all.bytes += more;
    }

    /// The number of segments and their total size.
    pub(crate) fn sum(&self) -> (u64, u64) {
        let all = self.lock();
        (all.segments.len() as u64, all.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, SegmentTable> {
        // The table is consistent between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage as _;

    #[test]
    fn names_come_back_and_sort_like_numbers() {
        for number in [1, 0xab, u64::MAX] {
            let id = SegmentId::new(number);
            assert_eq!(parse_name(&file_name(id)), Some(id));
        }
        assert!(file_name(SegmentId::new(9)) < file_name(SegmentId::new(16)));
    }

    #[test]
    fn sizes_are_summed() {
        let disk = crate::sim::Disk::new(1);
        let file = disk.create("a").expect("created");
        let segments = Segments::default();
        for (number, bytes) in [(1, 10), (2, 20), (2, 25)] {
            let segment = Segment::new(Arc::clone(&file), bytes);
            segments.insert(SegmentId::new(number), segment);
        }
        assert_eq!(segments.sum(), (2, 35));
        segments.grown(SegmentId::new(1), 15);
        segments.grown(SegmentId::new(2), 15);
        assert_eq!(segments.sum(), (2, 40));
        assert!(segments.remove(SegmentId::new(2)).is_some());
        assert!(segments.remove(SegmentId::new(2)).is_none());
        assert_eq!(segments.sum(), (1, 15));
    }

    #[test]
    fn other_files_are_no_segments() {
        for name in ["lock", "1.segment", "000000000000000G.segment", "+00000000000000a.segment"] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
