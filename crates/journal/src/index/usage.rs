//! The live share of each segment.

use std::collections::VecDeque;

/// Totals of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentUsage {
    pub(crate) number: u32,
    /// Number of live records.
    pub(crate) live: u32,
    /// Their bytes: exact for messages and keys, the segment's mean for entries.
    pub(crate) live_bytes: u64,
    /// The frame that last changed these totals.
    pub(crate) changed: u64,
    /// Its last frame.
    pub(crate) last_frame: u64,
    entries: u32,
    entry_bytes: u64,
}

/// All segments with frames, oldest first.
#[derive(Default)]
pub(super) struct Usage {
    segments: VecDeque<SegmentUsage>,
    live_bytes: u64,
}

impl Usage {
    /// A frame of this segment is about to be applied.
    pub(super) fn begin(&mut self, number: u32, frame: u64) {
        if self.segments.back().is_none_or(|last| last.number < number) {
            self.segments.push_back(SegmentUsage { number, ..SegmentUsage::default() });
        }
        if let Some(segment) = self.get_mut(number) {
            segment.last_frame = frame;
        }
    }

    pub(super) fn oldest(&self) -> Option<&SegmentUsage> {
        self.segments.front()
    }

    pub(super) fn newest(&self) -> Option<&SegmentUsage> {
        self.segments.back()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SegmentUsage> {
        self.segments.iter()
    }

    pub(super) fn get(&self, number: u32) -> Option<&SegmentUsage> {
        self.segments.get(self.position(number)?)
    }

    pub(super) const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// The segment is no longer part of the log.
    pub(super) fn forget(&mut self, number: u32) {
        if let Some(segment) =
            self.position(number).and_then(|position| self.segments.remove(position))
        {
            self.live_bytes -= segment.live_bytes;
        }
    }

    /// A record became live.
    pub(super) fn add(&mut self, number: u32, bytes: u32, frame: u64) {
        let Some(segment) = self.get_mut(number) else { return };
        segment.live += 1;
        segment.live_bytes += u64::from(bytes);
        segment.changed = frame;
        self.live_bytes += u64::from(bytes);
    }

    /// A record is no longer live.
    pub(super) fn subtract(&mut self, number: u32, bytes: u32, frame: u64) {
        let Some(segment) = self.get_mut(number) else { return };
        segment.live = segment.live.saturating_sub(1);
        let before = segment.live_bytes;
        segment.live_bytes =
            if segment.live == 0 { 0 } else { before.saturating_sub(u64::from(bytes)) };
        segment.changed = frame;
        let less = before - segment.live_bytes;
        self.live_bytes -= less;
    }

    /// An entry became live.
    pub(super) fn add_entry(&mut self, number: u32, bytes: u32, frame: u64) {
        if let Some(segment) = self.get_mut(number) {
            segment.entries += 1;
            segment.entry_bytes += u64::from(bytes);
        }
        self.add(number, bytes, frame);
    }

    /// An entry is no longer live. Its size is not kept, so the mean of its segment is subtracted.
    pub(super) fn subtract_entry(&mut self, number: u32, frame: u64) {
        let mean = self.get(number).map_or(0, |segment| {
            segment.entry_bytes.checked_div(segment.entries.into()).unwrap_or(0)
        });
        self.subtract(number, u32::try_from(mean).unwrap_or(u32::MAX), frame);
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut SegmentUsage> {
        let position = self.position(number)?;
        self.segments.get_mut(position)
    }

    /// Usually the last one, or at its distance from the first: numbers have few gaps.
    fn position(&self, number: u32) -> Option<usize> {
        let is = |position: usize| self.segments.get(position).is_some_and(|s| s.number == number);
        let last = self.segments.len().checked_sub(1)?;
        if is(last) {
            return Some(last);
        }
        let far = number.checked_sub(self.segments.front()?.number)? as usize;
        if is(far) {
            return Some(far);
        }
        self.segments.binary_search_by_key(&number, |segment| segment.number).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_in_spite_of_gaps() {
        let mut usage = Usage::default();
        let numbers = [3, 4, 7, 8, 9, 40, 41];
        for (frame, number) in (1..).zip(numbers) {
            usage.begin(number, frame);
            usage.add(number, number, frame);
        }
        for number in 0..50 {
            assert_eq!(usage.get(number).is_some(), numbers.contains(&number), "{number}");
            assert!(usage.get(number).is_none_or(|segment| segment.number == number));
        }
        assert_eq!(usage.live_bytes(), numbers.iter().sum::<u32>().into());
        usage.forget(3);
        usage.subtract(4, 4, 9);
        assert_eq!(usage.oldest().map(|segment| (segment.number, segment.live)), Some((4, 0)));
        assert_eq!(usage.live_bytes(), 7 + 8 + 9 + 40 + 41);
    }

    #[test]
    fn entries_of_unequal_size_leave_nothing_behind() {
        let mut usage = Usage::default();
        usage.begin(1, 1);
        (1..=100).for_each(|bytes| usage.add_entry(1, bytes, 1));
        (1..=100).for_each(|frame| usage.subtract_entry(1, frame));
        let segment = usage.get(1).expect("it was added");
        assert_eq!((segment.live, segment.live_bytes, segment.changed), (0, 0, 100));
        assert_eq!(usage.live_bytes(), 0);
    }
}
