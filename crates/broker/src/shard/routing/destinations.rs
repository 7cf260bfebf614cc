//! Which shards and sessions want a topic.

use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_topic::{Group, MatchedShards, RouteSnapshot, ShardSet, SubscriptionIndex};

use crate::bridge::Bridges;
use crate::keys::SessionSlot;
use crate::message::Source;
use crate::subscription::{Scope, SubscriptionOptions, Target, merge_targets, rule_id};

/// Where one topic's messages go. Cheap to clone, so that routing borrows nothing.
#[derive(Clone, Debug)]
pub(crate) struct Destinations {
    /// Other shards with matching subscriptions.
    pub(crate) remote: ShardSet,
    /// The shards, this one included, where a durable session may get them: receivers that the
    /// journal has to be written for.
    pub(crate) durable: ShardSet,
    /// The shards, this one included, where the queue of a receiver is full.
    pub(crate) full: ShardSet,
    /// Matching shared subscriptions, if any.
    pub(crate) groups: Option<Rc<[Arc<Group>]>>,
    /// Sessions of this shard.
    pub(crate) local: Rc<[Target]>,
    pub(crate) bridges: LeavesBy,
}

/// The bridges to which a topic's messages go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LeavesBy {
    #[default]
    None,
    /// Those of this source do not go there.
    One(Source),
    Several,
}

impl LeavesBy {
    /// Whether messages of this source leave by a bridge.
    pub(crate) fn takes(self, source: Source) -> bool {
        match self {
            Self::None => false,
            Self::One(bridge) => bridge != source,
            Self::Several => true,
        }
    }

    fn and(self, bridge: Source) -> Self {
        if self == Self::None { Self::One(bridge) } else { Self::Several }
    }
}

impl Destinations {
    /// No receivers.
    pub(crate) fn none() -> Self {
        Self {
            remote: ShardSet::EMPTY,
            durable: ShardSet::EMPTY,
            full: ShardSet::EMPTY,
            groups: None,
            local: Rc::from([]),
            bridges: LeavesBy::None,
        }
    }

    /// Whether a receiver's queue is full, so that messages of QoS 1 and 2 have to be refused.
    pub(crate) fn is_full(&self) -> bool {
        let mut groups = self.groups.iter().flat_map(|groups| groups.iter());
        !self.full.is_empty() || groups.any(|group| group.is_full())
    }
}

/// The bridges, and this shard's members of them.
pub(crate) struct BridgeRoutes {
    pub(crate) bridges: Arc<Bridges>,
    /// The session of each member that this shard has, by bridge and number.
    pub(crate) links: HashMap<(usize, u16), SessionSlot, RandomState>,
}

impl BridgeRoutes {
    /// Adds the members that carry a topic: those of this shard and the shards of the others.
    /// Returns the shards of all of them, and the bridges.
    fn find(
        &self,
        topic: &str,
        shard: usize,
        remote: &mut ShardSet,
        targets: &mut Vec<Target>,
    ) -> (ShardSet, LeavesBy) {
        let (mut owners, mut leaves_by) = (ShardSet::EMPTY, LeavesBy::None);
        for (place, bridge) in self.bridges.iter().enumerate() {
            let taken = bridge.egress(topic).filter(|_| bridge.mode().takes());
            let Some((rule, _)) = taken else { continue };
            let link = bridge.link_of(rule, topic);
            let owner = self.bridges.shard_of(bridge, link);
            owners.insert(owner);
            leaves_by = leaves_by.and(bridge.source);
            if owner != shard {
                remote.insert(owner);
            } else if let Some(&session) = self.links.get(&(place, link)) {
                targets.push(Target {
                    session,
                    qos: QoS::ExactlyOnce,
                    retain_as_published: true,
                    scope: Scope::Bridge,
                    since: 0,
                    subscription_ids: rule_id(rule),
                });
            }
        }
        (owners, leaves_by)
    }
}

/// The filters that a topic is matched with: the route map as loaded, and this shard's own.
pub(super) struct Filters<'a> {
    pub(super) shard: usize,
    pub(super) snapshot: &'a RouteSnapshot,
    pub(super) index: &'a SubscriptionIndex<SessionSlot, SubscriptionOptions>,
}

/// Decides where messages to a topic go: which sessions of this shard, which shared groups, and
/// which other shards get them. Nothing else in the broker decides that.
#[cold]
pub(super) fn match_topic(
    topic: &str,
    filters: &Filters<'_>,
    bridges: Option<&BridgeRoutes>,
) -> Destinations {
    let &Filters { shard, snapshot, index } = filters;
    let mut groups = Vec::new();
    let MatchedShards { all: mut remote, mut durable, full } =
        snapshot.matched_shards(topic, &mut |group| groups.push(Arc::clone(group)));
    remote.remove(shard);
    let mut matched = Vec::new();
    index.for_each_match(topic, |&session, options| matched.push((session, *options)));
    // The map has them in an order that differs from one run of the broker to the next.
    groups.sort_unstable_by_key(|group| group.id());
    let groups = if groups.is_empty() { None } else { Some(groups.into()) };
    let mut local = merge_targets(matched);
    let mut leaves_by = LeavesBy::None;
    if let Some(bridges) = bridges {
        // The sessions of bridges last.
        let owners;
        (owners, leaves_by) = bridges.find(topic, shard, &mut remote, &mut local);
        durable = durable.union(owners);
    }
    Destinations { remote, durable, full, groups, local: local.into(), bridges: leaves_by }
}
