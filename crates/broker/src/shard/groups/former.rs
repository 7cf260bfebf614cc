//! Shared groups that a session has left while it still holds messages of them.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use tacho_topic::Group;

use super::GroupSlot;
use crate::delivery::GroupRef;
use crate::keys::SessionSlot;
use crate::shard::Shard;

/// Number of groups kept before the first check which ones are still needed.
const CHECKED_AT_MIN: usize = 4;

type Ids = HashSet<u64, RandomState>;

/// The groups are remembered so that those messages find other members, on any shard, when the
/// session ends: this shard may have forgotten the group by then.
#[derive(Debug, Default)]
pub(super) struct FormerGroups {
    groups: Vec<Arc<Group>>,
    checked_at: usize,
}

impl FormerGroups {
    pub(super) fn find(&self, group: GroupRef) -> Option<&Arc<Group>> {
        self.groups.iter().find(|left| left.id() == group.0)
    }

    /// Groups from an earlier start of the broker whose messages a session holds without
    /// membership.
    pub(super) fn restored(groups: Vec<Arc<Group>>) -> Self {
        Self { checked_at: 2 * groups.len(), groups }
    }

    /// Records a group; `in_hand` are the groups whose messages the session holds.
    fn note(&mut self, group: &Arc<Group>, in_hand: impl FnOnce() -> Ids) {
        if self.find(GroupRef(group.id())).is_some() {
            return;
        }
        self.groups.push(Arc::clone(group));
        if self.groups.len() > self.checked_at.max(CHECKED_AT_MIN) {
            let in_hand = in_hand();
            self.groups.retain(|left| in_hand.contains(&left.id()));
            self.checked_at = 2 * self.groups.len();
        }
    }
}

impl Shard {
    /// A session leaves a group; must be called while the group is known here.
    pub(super) fn note_former_group(&mut self, slot: SessionSlot, local: GroupSlot) {
        let group = &self.groups.groups[local.index()].group;
        let session = &mut self.sessions[slot];
        let machine = &session.machine;
        if machine.inflight_len() + machine.queue_len() == 0 {
            session.memberships.take_former();
            return;
        }
        let in_hand = || machine.messages().map(|copy| copy.group.0).collect();
        let mut former = session.memberships.take_former().unwrap_or_default();
        former.note(group, in_hand);
        session.memberships.set_former(former);
    }
}

#[cfg(test)]
mod tests {
    use tacho_topic::{Filter, RouteMap};

    use super::*;

    #[test]
    fn former_members_are_forgotten_once_their_messages_are_done() {
        let routes = RouteMap::with_shards(2);
        let mut left = FormerGroups::default();
        let mut in_hand = Ids::default();
        for i in 0..1_000 {
            let filter = Filter::parse(&format!("$share/g/{i}")).expect("valid");
            let group = routes.add(&filter, 0).expect("shared");
            if i < 10 {
                in_hand.insert(group.id());
            }
            left.note(&group, || in_hand.clone());
            left.note(&group, || panic!("known already"));
        }
        assert!(left.groups.len() <= 21, "{} are kept", left.groups.len());
        assert!(in_hand.iter().all(|&id| left.find(GroupRef(id)).is_some()));
        in_hand.clear();
        for i in 1_000..1_030 {
            let filter = Filter::parse(&format!("$share/g/{i}")).expect("valid");
            left.note(&routes.add(&filter, 0).expect("shared"), || in_hand.clone());
        }
        assert!(left.groups.len() <= CHECKED_AT_MIN);
    }
}
