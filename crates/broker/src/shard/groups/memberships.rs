//! One session's shared subscriptions.

use std::sync::Arc;

use tacho_topic::{FullQueue, Group};

use super::{FormerGroups, GroupSlot, Membership};

/// The memberships of a session that has ended: entries to be removed.
#[derive(Debug)]
pub(in crate::shard) struct EndedMemberships(Vec<Membership>);

impl EndedMemberships {
    pub(in crate::shard) fn pop(&mut self) -> Option<Membership> {
        self.0.pop()
    }
}

/// The shared subscriptions of a session, and those that it has left with messages in hand. Boxed,
/// since most sessions have none.
#[derive(Debug, Default)]
pub(in crate::shard) struct Memberships(Option<Box<Parts>>);

#[derive(Debug, Default)]
struct Parts {
    present: Vec<Membership>,
    /// Present once it has left one with messages in hand.
    former: Option<FormerGroups>,
    /// Groups that may bind no messages to the session, since its queue is full.
    full: Box<[FullQueue]>,
}

impl Memberships {
    /// Whether the session is a member of no group now.
    #[inline]
    pub(in crate::shard) fn is_empty(&self) -> bool {
        self.present().is_empty()
    }

    /// Of the groups that it is in.
    #[inline]
    pub(super) fn present(&self) -> &[Membership] {
        self.0.as_ref().map_or(&[], |parts| &parts.present)
    }

    pub(super) fn join(&mut self, membership: Membership) {
        self.0.get_or_insert_default().present.push(membership);
    }

    pub(super) fn leave(&mut self, local: GroupSlot) {
        if let Some(parts) = &mut self.0 {
            parts.present.retain(|membership| membership.local != local);
        }
    }

    pub(super) fn into_ended(self) -> EndedMemberships {
        EndedMemberships(self.0.map(|parts| parts.present).unwrap_or_default())
    }

    /// Groups that it has left with messages in hand.
    pub(super) fn former(&self) -> Option<&FormerGroups> {
        self.0.as_ref()?.former.as_ref()
    }

    /// The same, without any from now on.
    pub(super) fn take_former(&mut self) -> Option<FormerGroups> {
        self.0.as_mut()?.former.take()
    }

    pub(super) fn set_former(&mut self, former: FormerGroups) {
        self.0.get_or_insert_default().former = Some(former);
    }

    /// Its queue is full: these groups bind no messages to it while it keeps them.
    pub(super) fn set_full(&mut self, full: Box<[FullQueue]>) {
        if !full.is_empty() || self.0.is_some() {
            self.0.get_or_insert_default().full = full;
        }
    }

    /// Groups that may bind messages to it again, once they are dropped.
    pub(super) fn take_full(&mut self) -> Box<[FullQueue]> {
        self.0.as_mut().map(|parts| std::mem::take(&mut parts.full)).unwrap_or_default()
    }

    /// Messages of these groups are left from an earlier start of the broker, and the session is
    /// no member of them.
    pub(in crate::shard) fn restore_former(&mut self, groups: Vec<Arc<Group>>) {
        self.set_former(FormerGroups::restored(groups));
    }
}
