//! Which shards and sessions want a topic.

use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_topic::{Group, RouteSnapshot, ShardSet, SubscriptionIndex};

use crate::bridge::Bridges;
use crate::keys::SessionSlot;
use crate::subscription::{Scope, SubscriptionOptions, Target, merge_targets, rule_id};

/// Where one topic's messages go. Cheap to clone, so that routing borrows nothing.
#[derive(Clone, Debug)]
pub(crate) struct Destinations {
    /// Other shards with matching subscriptions.
    pub(crate) remote: ShardSet,
    /// Matching shared subscriptions, if any.
    pub(crate) groups: Option<Rc<[Arc<Group>]>>,
    /// Sessions of this shard.
    pub(crate) local: Rc<[Target]>,
}

/// The bridges, and this shard's members of them.
pub(crate) struct BridgeRoutes {
    pub(crate) bridges: Arc<Bridges>,
    /// The session of each member that this shard has, by bridge and number.
    pub(crate) links: HashMap<(usize, u16), SessionSlot, RandomState>,
}

impl BridgeRoutes {
    /// Adds the members that carry a topic: those of this shard and the shards of the others.
    fn find(&self, topic: &str, shard: usize, remote: &mut ShardSet, targets: &mut Vec<Target>) {
        for (place, bridge) in self.bridges.iter().enumerate() {
            let Some((rule, _)) = bridge.egress(topic) else { continue };
            let link = bridge.link_of(rule, topic);
            let owner = self.bridges.shard_of(bridge, link);
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
    }
}

/// Decides where messages to a topic go: which sessions of this shard, which shared groups, and
/// which other shards get them. Nothing else in the broker decides that.
#[cold]
pub(super) fn match_topic(
    topic: &str,
    shard: usize,
    index: &SubscriptionIndex<SessionSlot, SubscriptionOptions>,
    snapshot: &RouteSnapshot,
    bridges: Option<&BridgeRoutes>,
) -> Destinations {
    let mut groups = Vec::new();
    let mut remote = snapshot.shards_for(topic, &mut |group| groups.push(Arc::clone(group)));
    remote.remove(shard);
    let mut matched = Vec::new();
    index.for_each_match(topic, |&session, options| matched.push((session, *options)));
    let groups = if groups.is_empty() { None } else { Some(groups.into()) };
    let mut local = merge_targets(matched);
    if let Some(bridges) = bridges {
        bridges.find(topic, shard, &mut remote, &mut local);
    }
    Destinations { remote, groups, local: local.into() }
}
