//! Subscription options, and how several subscriptions of a session that match one topic become
//! one delivery.

use tacho_codec::{QoS, SubscribeOptions};
use tacho_session::SubscriptionIdList;

use crate::keys::SessionSlot;

/// The options of a subscription in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionOptions {
    pub(crate) qos: QoS,
    pub(crate) no_local: bool,
    pub(crate) retain_as_published: bool,
    /// 0 = none; identifiers start at 1 (3.8.2.1.2).
    pub(crate) id: u32,
    /// The version of the route map in which it became visible, if a replay delivers the earlier
    /// retained messages; otherwise 0.
    pub(crate) since: u64,
}

impl SubscriptionOptions {
    pub(crate) fn new(options: &SubscribeOptions, id: Option<u32>) -> Self {
        Self {
            qos: options.qos,
            no_local: options.no_local,
            retain_as_published: options.retain_as_published,
            id: id.unwrap_or(0),
            since: 0,
        }
    }

    /// The subscription identifier for deliveries.
    pub(crate) fn id_list(&self) -> SubscriptionIdList {
        if self.id == 0 { SubscriptionIdList::NONE } else { SubscriptionIdList::one(self.id) }
    }
}

/// A local session that gets the message.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) session: SessionSlot,
    /// The highest QoS among the session's matching subscriptions.
    pub(crate) qos: QoS,
    pub(crate) retain_as_published: bool,
    pub(crate) scope: Scope,
    /// Retained messages routed before this version of the route map are delivered by a replay.
    pub(crate) since: u64,
    /// Subscription identifiers of all matching subscriptions of the session.
    pub(crate) subscription_ids: SubscriptionIdList,
}

/// Which publishers a target gets messages of. A session with No Local and other subscriptions to
/// one topic has two targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Everyone,
    Others,
    Own,
    /// A bridge link: all messages that did not arrive by the same bridge.
    Bridge,
}

/// The egress rule of a message, carried as a subscription identifier of the delivery.
pub(crate) fn rule_id(rule: usize) -> SubscriptionIdList {
    SubscriptionIdList::one(rule as u32 + 1)
}

/// The QoS a delivery has: what was published, at most what was subscribed [MQTT-3.8.4-8].
#[inline]
pub(crate) fn effective_qos(published: QoS, subscribed: QoS) -> QoS {
    published.min(subscribed)
}

/// One target per session, with the highest QoS and all identifiers [MQTT-3.3.4-2], [MQTT-3.3.4-4].
///
/// No Local excludes only messages of the session itself, so a session with both kinds of
/// subscription gets one target for messages of other clients and one for its own.
pub(crate) fn merge_targets(mut matched: Vec<(SessionSlot, SubscriptionOptions)>) -> Vec<Target> {
    matched.sort_by_key(|(session, _)| *session);
    let mut targets = Vec::with_capacity(matched.len());
    for same in matched.chunk_by(|a, b| a.0 == b.0) {
        let session = same[0].0;
        let mut all = same.iter().map(|(_, options)| options);
        if !all.any(|o| o.no_local) {
            targets.push(merge(session, Scope::Everyone, same));
            continue;
        }
        targets.push(merge(session, Scope::Others, same));
        let own: Vec<_> = same.iter().filter(|(_, o)| !o.no_local).copied().collect();
        if !own.is_empty() {
            targets.push(merge(session, Scope::Own, &own));
        }
    }
    targets
}

fn merge(
    session: SessionSlot,
    scope: Scope,
    same: &[(SessionSlot, SubscriptionOptions)],
) -> Target {
    let options = || same.iter().map(|(_, o)| o);
    Target {
        session,
        qos: options().map(|o| o.qos).max().unwrap_or(QoS::AtMostOnce),
        retain_as_published: options().any(|o| o.retain_as_published),
        scope,
        since: options().map(|o| o.since).min().unwrap_or(0),
        subscription_ids: options().map(|o| o.id).filter(|&id| id != 0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn slot(number: u32) -> SessionSlot {
        SessionSlot::new(number)
    }

    fn options(qos: QoS, no_local: bool, id: u32) -> SubscriptionOptions {
        SubscriptionOptions { qos, no_local, retain_as_published: false, id, since: 0 }
    }

    #[test]
    fn overlapping_subscriptions_merge_to_max_qos_and_all_ids() {
        let targets = merge_targets(vec![
            (slot(7), options(QoS::AtMostOnce, false, 1)),
            (slot(3), options(QoS::AtMostOnce, false, 0)),
            (slot(7), options(QoS::ExactlyOnce, false, 2)),
        ]);
        assert_eq!(targets.len(), 2);
        assert_eq!(
            (targets[0].session, &targets[0].subscription_ids),
            (slot(3), &SubscriptionIdList::NONE)
        );
        assert_eq!((targets[1].session, targets[1].qos), (slot(7), QoS::ExactlyOnce));
        assert_eq!(targets[1].subscription_ids, SubscriptionIdList::from_iter([1, 2]));
    }

    #[test]
    fn no_local_leaves_the_other_subscription_for_own_messages() {
        let targets = merge_targets(vec![
            (slot(7), options(QoS::ExactlyOnce, true, 1)),
            (slot(7), options(QoS::AtLeastOnce, false, 2)),
        ]);
        assert_eq!(targets.len(), 2);
        assert_eq!((targets[0].scope, targets[0].qos), (Scope::Others, QoS::ExactlyOnce));
        assert_eq!((targets[1].scope, targets[1].qos), (Scope::Own, QoS::AtLeastOnce));
        assert_eq!(targets[1].subscription_ids, SubscriptionIdList::one(2));
    }

    #[test]
    fn no_local_alone_gets_only_others() {
        let targets = merge_targets(vec![(slot(7), options(QoS::AtLeastOnce, true, 0))]);
        assert_eq!(targets.len(), 1);
        assert_eq!(targets[0].scope, Scope::Others);
    }
}
