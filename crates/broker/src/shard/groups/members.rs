//! One shard's members of one shared subscription, in the order of service.

use std::cmp::Ordering;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use slab::Slab;
use tacho_topic::DurableMember;

use super::STICKY_MAX;
use crate::keys::SessionSlot;
use crate::subscription::SubscriptionOptions;

/// The index of a member among this shard's members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::shard) struct MemberIndex(u32);

impl MemberIndex {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// This shard's members of a group.
///
/// The connected ones form a heap, so that finding, serving and updating one costs a logarithm of
/// their number: groups may have thousands.
#[derive(Default)]
pub(super) struct Members {
    slots: Slab<Member>,
    /// Connected members as a binary heap; the next to be served is first.
    heap: Vec<MemberIndex>,
    /// Connected members in an order that changes only when members join or leave.
    list: Vec<MemberIndex>,
    /// The member bound to a publisher by the sticky strategy.
    sticky: HashMap<u64, MemberIndex, RandomState>,
    turn: u64,
}

/// One session's membership.
pub(super) struct Member {
    pub(super) session: SessionSlot,
    pub(super) options: SubscriptionOptions,
    /// Present if the session is durable.
    pub(super) durable: Option<DurableMember>,
    order: Order,
    /// Its contribution to the group's counters while connected.
    credit: u32,
    window: u32,
    heap_at: u32,
    list_at: u32,
    connected: bool,
}

/// The smallest key is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    rank: Rank,
    busy: u32,
    /// The number of its last service.
    turn: u64,
}

/// The messages that a member can accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Messages of any QoS.
    #[default]
    Ready,
    /// Its window is full: QoS 0 only.
    Full,
    /// None: its client does not read.
    Congested,
}

/// The load of a connected member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) rank: Rank,
    /// Messages waiting or unacknowledged; 0 if the strategy ignores them.
    pub(super) busy: u32,
    /// Messages of QoS 1 and 2 that it could accept at once.
    pub(super) credit: u32,
}

impl Members {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The sessions of all members, and their options.
    pub(super) fn all(&self) -> impl Iterator<Item = (SessionSlot, SubscriptionOptions)> {
        self.slots.iter().map(|(_, member)| (member.session, member.options))
    }

    /// A new member, not connected.
    pub(super) fn insert(
        &mut self,
        session: SessionSlot,
        options: SubscriptionOptions,
    ) -> MemberIndex {
        MemberIndex(self.slots.insert(Member {
            session,
            options,
            durable: None,
            order: Order::default(),
            credit: 0,
            window: 0,
            heap_at: 0,
            list_at: 0,
            connected: false,
        }) as u32)
    }

    /// Removes a member that is not connected.
    pub(super) fn remove(&mut self, member: MemberIndex) {
        debug_assert!(!self.get(member).connected, "counters were told that it left");
        self.slots.remove(member.index());
    }

    pub(super) fn get(&self, member: MemberIndex) -> &Member {
        &self.slots[member.index()]
    }

    pub(super) fn get_mut(&mut self, member: MemberIndex) -> &mut Member {
        &mut self.slots[member.index()]
    }

    pub(super) fn connect(&mut self, member: MemberIndex, standing: Standing, window: u32) {
        let (heap_at, list_at) = (self.heap.len(), self.list.len());
        let entry = &mut self.slots[member.index()];
        debug_assert!(!entry.connected, "it comes once");
        entry.connected = true;
        entry.order = Order { rank: standing.rank, busy: standing.busy, turn: self.turn };
        (entry.credit, entry.window) = (standing.credit, window);
        (entry.heap_at, entry.list_at) = (heap_at as u32, list_at as u32);
        self.list.push(member);
        self.heap.push(member);
        self.rise(heap_at);
    }

    /// Removes a member from the connected ones. Returns its last known window and credit.
    pub(super) fn disconnect(&mut self, member: MemberIndex) -> Option<(u32, u32)> {
        let entry = &mut self.slots[member.index()];
        if !std::mem::take(&mut entry.connected) {
            return None;
        }
        let told = (entry.window, entry.credit);
        let (heap_at, list_at) = (entry.heap_at as usize, entry.list_at as usize);
        self.list.swap_remove(list_at);
        if let Some(&moved) = self.list.get(list_at) {
            self.slots[moved.index()].list_at = list_at as u32;
        }
        self.heap.swap_remove(heap_at);
        if let Some(&moved) = self.heap.get(heap_at) {
            self.slots[moved.index()].heap_at = heap_at as u32;
            self.settle(heap_at);
        }
        self.sticky.retain(|_, sticky_to| *sticky_to != member);
        Some(told)
    }

    /// The next member to be served, if one is connected.
    pub(super) fn first(&self) -> Option<MemberIndex> {
        self.heap.first().copied()
    }

    /// The connected members.
    pub(super) fn connected(&self) -> &[MemberIndex] {
        &self.list
    }

    pub(super) fn rank(&self, member: MemberIndex) -> Rank {
        self.get(member).order.rank
    }

    /// Whether the known load of the member equals this one.
    pub(super) fn is_known(&self, member: MemberIndex, standing: Standing) -> bool {
        let entry = self.get(member);
        (entry.order.rank, entry.order.busy, entry.credit)
            == (standing.rank, standing.busy, standing.credit)
    }

    /// Records the load of a connected member; returns the change of its credit.
    pub(super) fn update(&mut self, member: MemberIndex, standing: Standing) -> i64 {
        let entry = &mut self.slots[member.index()];
        debug_assert!(entry.connected, "others have no standing");
        let order = Order { rank: standing.rank, busy: standing.busy, ..entry.order };
        let changed = order != entry.order;
        entry.order = order;
        let more = i64::from(standing.credit) - i64::from(entry.credit);
        entry.credit = standing.credit;
        if changed {
            let heap_at = entry.heap_at as usize;
            self.settle(heap_at);
        }
        more
    }

    /// A member was served: it moves behind its equals. Returns the same as
    /// [`update`](Self::update).
    pub(super) fn served(&mut self, member: MemberIndex, standing: Standing) -> i64 {
        self.turn += 1;
        let entry = &mut self.slots[member.index()];
        // Forces `update` to see a change.
        entry.order = Order { turn: self.turn, rank: Rank::Ready, busy: u32::MAX };
        self.update(member, standing)
    }

    /// A connected member, selected by a random number.
    pub(super) fn random(&self, number: u64) -> Option<MemberIndex> {
        let place = (u128::from(number) * self.list.len() as u128) >> 64;
        self.list.get(place as usize).copied()
    }

    /// The connected member for a key: constant while no member joins or leaves. A change moves the
    /// keys of at most two members, besides those that a new member gains.
    pub(super) fn by_key(&self, key: u64) -> Option<MemberIndex> {
        self.list.get(jump(key, self.list.len())).copied()
    }

    /// Binds a publisher's messages to this connected member.
    pub(super) fn stick(&mut self, publisher: u64, member: MemberIndex) {
        if self.sticky.len() >= STICKY_MAX {
            self.sticky.clear();
        }
        self.sticky.insert(publisher, member);
    }

    /// The member bound to a publisher, if any.
    pub(super) fn sticky(&self, publisher: u64) -> Option<MemberIndex> {
        self.sticky.get(&publisher).copied()
    }

    fn is_before(&self, left: MemberIndex, right: MemberIndex) -> bool {
        #[cfg(test)]
        tests::COMPARISONS.set(tests::COMPARISONS.get() + 1);
        let order = |member: MemberIndex| self.slots[member.index()].order;
        order(left).cmp(&order(right)) == Ordering::Less
    }

    /// Restores the heap where one member's order changed.
    fn settle(&mut self, at: usize) {
        let at = self.rise(at);
        self.sink(at);
    }

    fn rise(&mut self, mut at: usize) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.is_before(self.heap[at], self.heap[parent]) {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
        at
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn swap(&mut self, left: usize, right: usize) {
        self.heap.swap(left, right);
        for at in [left, right] {
            self.slots[self.heap[at].index()].heap_at = at as u32;
        }
    }
}

/// Jump consistent hash (Lamping and Veach, 2014): a bucket below `buckets` for a key. An added
/// bucket moves only the keys that it gains. 0 without buckets.
fn jump(mut key: u64, buckets: usize) -> usize {
    let (mut bucket, mut next) = (0, 0);
    while next < buckets as u64 {
        bucket = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let stride = (1_u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((bucket + 1) as f64 * stride) as u64;
    }
    bucket as usize
}

#[cfg(test)]
mod tests;
