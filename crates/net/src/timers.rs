//! A hierarchical timer wheel with a resolution of about a millisecond.

use std::collections::VecDeque;

/// A tick is 2^20 ns = 1.05 ms, so that time becomes ticks by a shift.
const TICK_SHIFT: u32 = 20;
/// The last tick whose beginning fits in 64 bits of nanoseconds.
const TICK_MAX: u64 = u64::MAX >> TICK_SHIFT;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// 8 levels of 64 slots reach 2^48 ticks, which is more than 64 bits of nanoseconds.
const LEVELS: usize = 8;
const NONE: u32 = u32::MAX;
/// Entries that one call moves: each takes up to about 50 ns.
const MOVES_MAX: usize = 4096;

/// Names a timer of [`Net::set_timer`](crate::Net::set_timer). Cancelling a timer that has fired
/// has no effect, so an id may be kept longer than its timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerId {
    index: u32,
    generation: u32,
}

struct Entry {
    generation: u32,
    token: u64,
    deadline_ns: u64,
    /// Neighbours in the list of a slot; `next` also links free entries.
    previous: u32,
    next: u32,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    Slot { level: u8, slot: u8 },
    Due,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NONE, last: NONE };

/// Setting and cancelling take constant time and no allocation once the wheel has grown; timers
/// never fire early, and in the order of their deadlines unless thousands are due in one tick.
///
/// An entry sits at the level of the highest group of 6 bits in which its tick differs from the
/// current one. Therefore all occupied slots lie ahead, and the lowest occupied slot of the lowest
/// occupied level is the next to look at.
pub(crate) struct Wheel {
    tick: u64,
    entries: Vec<Entry>,
    free: u32,
    occupied: [u64; LEVELS],
    lists: Box<[[List; SLOTS]; LEVELS]>,
    due: VecDeque<TimerId>,
    sorting: Vec<(u64, TimerId)>,
    /// The slot above the lowest level from which not all entries have moved down yet, if any.
    opened: Option<(usize, usize)>,
}

impl Wheel {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self {
            tick: now_ns >> TICK_SHIFT,
            entries: Vec::new(),
            free: NONE,
            occupied: [0; LEVELS],
            lists: Box::new([[EMPTY; SLOTS]; LEVELS]),
            due: VecDeque::new(),
            sorting: Vec::new(),
            opened: None,
        }
    }

    pub(crate) fn set(&mut self, deadline_ns: u64, token: u64) -> TimerId {
        let index = self.take_entry();
        let entry = &mut self.entries[index as usize];
        entry.token = token;
        entry.deadline_ns = deadline_ns;
        let id = TimerId { index, generation: entry.generation };
        self.place(index);
        id
    }

    /// True if the timer had not fired yet; it will not fire now.
    pub(crate) fn cancel(&mut self, id: TimerId) -> bool {
        let Some(entry) = self.entries.get(id.index as usize) else { return false };
        if entry.generation != id.generation {
            return false;
        }
        match entry.place {
            Place::Free => return false,
            Place::Slot { level, slot } => self.unlink(id.index, level as usize, slot as usize),
            // Its id in the list of due timers is outdated from now on.
            Place::Due => {}
        }
        self.free_entry(id.index);
        true
    }

    /// When to call [`advance`](Self::advance) next: not later than the next timer is due; for a
    /// distant timer a few calls come earlier. `u64::MAX` if there is no timer.
    pub(crate) fn next_ns(&self) -> u64 {
        if !self.due.is_empty() {
            return 0;
        }
        self.next_slot().map_or(u64::MAX, |(_, _, tick)| tick << TICK_SHIFT)
    }

    /// When the first timer that is not in the list of due ones expires, or earlier; `u64::MAX` if
    /// there is none, or if [`advance`](Self::advance) is not through with what is due.
    pub(crate) fn next_expiry_ns(&self) -> u64 {
        if self.due.is_empty() && self.opened.is_none() { self.next_ns() } else { u64::MAX }
    }

    /// Moves the timers that are due by now to the list that [`pop`](Self::pop) takes from, and
    /// returns the length of that list. However many there are, a call takes a fraction of a
    /// millisecond: it moves a part of them, and the next call continues.
    pub(crate) fn advance(&mut self, now_ns: u64) -> usize {
        let now_tick = now_ns >> TICK_SHIFT;
        let mut moves_left = MOVES_MAX;
        while let Some((level, slot, tick)) = self.next_slot() {
            if tick > now_tick {
                break;
            }
            if moves_left == 0 {
                return self.due.len();
            }
            self.tick = self.tick.max(tick);
            if level == 0 {
                self.expire(slot, &mut moves_left);
            } else {
                self.opened = Some((level, slot));
                self.cascade(level, slot, &mut moves_left);
            }
        }
        self.tick = self.tick.max(now_tick);
        self.due.len()
    }

    /// The token of the next due timer; `None` if that timer was cancelled meanwhile.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        let id = self.due.pop_front()?;
        let entry = &self.entries[id.index as usize];
        if entry.generation != id.generation {
            return None;
        }
        let token = entry.token;
        self.free_entry(id.index);
        Some(token)
    }

    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        if let Some((level, slot)) = self.opened {
            return Some((level, slot, self.tick));
        }
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        let slot = self.occupied[level].trailing_zeros();
        let shift = SLOT_BITS * level as u32;
        let above = self.tick >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
        Some((level, slot as usize, above | (u64::from(slot) << shift)))
    }

    /// Makes the timers of a slot of the lowest level due, in the order of their deadlines if they
    /// are no more than may move.
    fn expire(&mut self, slot: usize, moves_left: &mut usize) {
        while *moves_left > 0
            && let Some(index) = self.take_first(0, slot)
        {
            *moves_left -= 1;
            let entry = &mut self.entries[index as usize];
            entry.place = Place::Due;
            let id = TimerId { index, generation: entry.generation };
            self.sorting.push((entry.deadline_ns, id));
        }
        self.sorting.sort_by_key(|&(deadline_ns, _)| deadline_ns);
        self.due.extend(self.sorting.drain(..).map(|(_, id)| id));
    }

    /// Moves the timers of a slot down, which is the opened one.
    fn cascade(&mut self, level: usize, slot: usize, moves_left: &mut usize) {
        while *moves_left > 0
            && let Some(index) = self.take_first(level, slot)
        {
            *moves_left -= 1;
            self.place(index);
        }
    }

    fn take_first(&mut self, level: usize, slot: usize) -> Option<u32> {
        let index = self.lists[level][slot].first;
        if index == NONE {
            return None;
        }
        self.unlink(index, level, slot);
        Some(index)
    }

    fn place(&mut self, index: u32) {
        let deadline_ns = self.entries[index as usize].deadline_ns;
        // Rounded up: a timer is never early.
        let ticks =
            (deadline_ns >> TICK_SHIFT) + u64::from(deadline_ns & ((1 << TICK_SHIFT) - 1) != 0);
        let tick = ticks.min(TICK_MAX).max(self.tick);
        let differing = (tick ^ self.tick) | 1;
        let level = ((63 - differing.leading_zeros()) / SLOT_BITS) as usize;
        let slot = (tick >> (SLOT_BITS * level as u32)) as usize % SLOTS;
        self.link(index, level, slot);
    }

    fn link(&mut self, index: u32, level: usize, slot: usize) {
        let list = &mut self.lists[level][slot];
        let last = std::mem::replace(&mut list.last, index);
        if last == NONE {
            list.first = index;
        } else {
            self.entries[last as usize].next = index;
        }
        self.occupied[level] |= 1 << slot;
        let entry = &mut self.entries[index as usize];
        entry.previous = last;
        entry.next = NONE;
        entry.place = Place::Slot { level: level as u8, slot: slot as u8 };
    }

    fn unlink(&mut self, index: u32, level: usize, slot: usize) {
        let Entry { previous, next, .. } = self.entries[index as usize];
        let list = &mut self.lists[level][slot];
        match previous {
            NONE => list.first = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.entries[next as usize].previous = previous,
        }
        if self.lists[level][slot].first == NONE {
            self.occupied[level] &= !(1 << slot);
            self.opened = self.opened.filter(|&opened| opened != (level, slot));
        }
    }

    fn take_entry(&mut self) -> u32 {
        if self.free == NONE {
            self.entries.push(Entry {
                generation: 0,
                token: 0,
                deadline_ns: 0,
                previous: NONE,
                next: NONE,
                place: Place::Free,
            });
            return (self.entries.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.entries[index as usize].next;
        index
    }

    fn free_entry(&mut self, index: u32) {
        let free = std::mem::replace(&mut self.free, index);
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.place = Place::Free;
        entry.next = free;
    }
}

#[cfg(test)]
mod tests;
