//! One session's shared subscriptions.

use std::sync::Arc;

use tacho_topic::{FullQueue, Group};

use super::{FormerGroups, Membership};

/// The memberships of a session that has ended: entries to be removed.
#[derive(Debug)]
pub(in crate::shard) struct EndedMemberships(Vec<Membership>);

impl EndedMemberships {
    pub(in crate::shard) fn pop(&mut self) -> Option<Membership> {
        self.0.pop()
    }
}

/// The shared subscriptions of a session, and those that it has left with messages in hand.
#[derive(Debug, Default)]
pub(in crate::shard) struct Memberships {
    pub(super) present: Vec<Membership>,
    /// Present once it has left one with messages in hand.
    pub(super) former: Option<Box<FormerGroups>>,
    /// Groups that may bind no messages to the session, since its queue is full.
    pub(super) full: Box<[FullQueue]>,
}

impl Memberships {
    /// Whether the session is a member of no group now.
    #[inline]
    pub(in crate::shard) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    pub(super) fn into_ended(self) -> EndedMemberships {
        EndedMemberships(self.present)
    }

    /// Messages of these groups are left from an earlier start of the broker, and the session is
    /// no member of them.
    pub(in crate::shard) fn restore_former(&mut self, groups: Vec<Arc<Group>>) {
        self.former = Some(Box::new(FormerGroups::restored(groups)));
    }
}
