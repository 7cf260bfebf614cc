//! The deliveries of one stream to one receiver: the next sequence number and the holes before it.

use std::collections::VecDeque;

/// Limit on separate runs of missing messages; beyond it the oldest are merged. It bounds the
/// memory when a broker drops every other message for hours.
const HOLES_MAX: usize = 1_024;

/// The classification of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Observation {
    /// A new message; `skipped` messages before it have not arrived (yet).
    New {
        /// Messages that this one revealed as missing.
        skipped: u64,
    },
    /// A missing message that arrived after a later one.
    OutOfOrder,
    /// Received before.
    Duplicate,
    /// From a window that is already settled, where it counted as lost or received.
    Late,
}

/// A run of missing messages: `lost` of those in `from..to` (all of them unless runs were merged).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) lost: u64,
    pub(crate) mark: Mark,
}

/// Properties of the message that revealed a hole. Only holes with the same mark are merged, so
/// that losses in warm-up and window stay separate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    /// It is in the measured window.
    pub(crate) inside: bool,
    /// It is the first message published after such an absence of the receiver, or was published
    /// during it.
    pub(crate) absence: Absence,
}

/// The kind of absence of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Absence {
    /// The receiver was present.
    #[default]
    None,
    /// Its session continued and queued messages.
    Kept,
    /// Its session ended.
    Ended,
}

impl Hole {
    pub(crate) const fn exact(from: u64, to: u64) -> Self {
        Self { from, to, lost: to - from, mark: Mark { inside: false, absence: Absence::None } }
    }
}

/// Tracks one stream at one receiver. Sequence numbers are 32 bits wide on the wire and extended to
/// 64 here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracker {
    next: u64,
    floor: u64,
    #[expect(clippy::box_collection, reason = "most trackers never see a hole: 8 bytes, not 32")]
    holes: Option<Box<VecDeque<Hole>>>,
}

impl Tracker {
    /// Records a delivery with this mark.
    #[inline]
    pub(crate) fn observe(&mut self, seq: u32, mark: Mark) -> Observation {
        let seq = widen(seq, self.next);
        if seq == self.next {
            self.next += 1;
            return Observation::New { skipped: 0 };
        }
        self.observe_irregular(seq, mark)
    }

    #[cold]
    fn observe_irregular(&mut self, seq: u64, mark: Mark) -> Observation {
        if seq > self.next {
            let hole = Hole { mark, ..Hole::exact(self.next, seq) };
            let holes = self.holes.get_or_insert_default();
            holes.push_back(hole);
            if holes.len() > HOLES_MAX {
                merge_oldest(holes);
            }
            self.next = seq + 1;
            return Observation::New { skipped: hole.lost };
        }
        if seq < self.floor {
            return Observation::Late;
        }
        let filled = self.holes.as_mut().is_some_and(|holes| fill(holes, seq));
        if filled { Observation::OutOfOrder } else { Observation::Duplicate }
    }

    /// Settles everything before `to`: calls `lost` for each hole, and then expects `to` next.
    /// `tail` marks messages missing at the end.
    pub(crate) fn settle(&mut self, to: u64, tail: Mark, mut lost: impl FnMut(Hole)) {
        for hole in self.holes.take().into_iter().flat_map(|holes| *holes) {
            lost(hole);
        }
        if self.next < to {
            lost(Hole { mark: tail, ..Hole::exact(self.next, to) });
        }
        self.next = self.next.max(to);
        self.floor = self.next;
    }
}

/// The 64-bit number nearest to `near` whose low half is `seq`.
#[inline]
pub(crate) const fn widen(seq: u32, near: u64) -> u64 {
    let distance = seq.wrapping_sub(near as u32).cast_signed() as i64;
    match near.checked_add_signed(distance) {
        Some(wide) => wide,
        None => seq as u64,
    }
}

/// Takes `seq` out of the hole that contains it; false when none does.
fn fill(holes: &mut VecDeque<Hole>, seq: u64) -> bool {
    let at = holes.partition_point(|hole| hole.to <= seq);
    let Some(hole) = holes.get_mut(at).filter(|hole| hole.from <= seq) else {
        return false;
    };
    if hole.lost < hole.to - hole.from {
        // A merged hole has forgotten which of its messages were missing.
        hole.lost -= 1;
        if hole.lost == 0 {
            holes.remove(at);
        }
        return true;
    }
    let part = |from, to| Hole { mark: hole.mark, ..Hole::exact(from, to) };
    let (before, after) = (part(hole.from, seq), part(seq + 1, hole.to));
    match (before.lost > 0, after.lost > 0) {
        (true, true) => {
            *hole = before;
            holes.insert(at + 1, after);
        }
        (true, false) => *hole = before,
        (false, true) => *hole = after,
        (false, false) => {
            holes.remove(at);
        }
    }
    true
}

fn merge_oldest(holes: &mut VecDeque<Hole>) {
    // Holes outside the window come first; a single one of them stays separate.
    let at = usize::from(holes[0].mark != holes[1].mark);
    if let Some(second) = holes.remove(at + 1) {
        let first = &mut holes[at];
        first.lost += second.lost;
        first.to = second.to;
    }
}

#[cfg(test)]
mod tests;
