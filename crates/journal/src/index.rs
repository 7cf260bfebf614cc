//! What of the log is live, and where it is.

use crate::id::SegmentId;
use crate::tail::Place;

/// Everything that is live.
#[derive(Default)]
pub(crate) struct Index {}

impl Index {
    /// Records of a frame that is complete: they begin at `offset` of `segment`.
    ///
    /// Called in the order of the log, from recovery and from the committer alike. Segments come
    /// in the order of their numbers; a number that was not seen before begins a new segment.
    pub(crate) fn apply(&mut self, _segment: SegmentId, _offset: u32, _records: &[u8]) {}

    /// A frame that was applied, whose header is at `from` and which takes `bytes` with header
    /// and fill, is now at `to`: its first file fails.
    pub(crate) fn moved(&mut self, _from: Place, _to: Place, _bytes: u64) {}

    /// Appends the encoded records that are to be moved to the newest end, those that are still
    /// live where they were read; returns their count. They are in the next frame that is applied.
    pub(crate) fn relocate(&mut self, _out: &mut Vec<u8>) -> u32 {
        0
    }

    /// Bytes of the records that are live.
    pub(crate) fn live_bytes(&self) -> u64 {
        0
    }

    /// Takes the segments at the oldest end that hold nothing live, oldest first. Never the one
    /// that was applied last.
    pub(crate) fn take_free(&mut self, _freed: &mut Vec<SegmentId>) {}
}
