//! The marks of this shard's filters in the route map: which of its sessions publishers have to
//! consider before they send a message here.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_topic::{Filter, RouteChange, RouteMark, TopicFilter};

/// Subscriptions by filter, of which the first one sets a mark in the route map and the last one
/// clears it.
pub(super) struct FilterMarks {
    mark: RouteMark,
    shard: usize,
    subscriptions: HashMap<TopicFilter, u32, RandomState>,
}

impl FilterMarks {
    pub(super) fn new(mark: RouteMark, shard: usize) -> Self {
        Self { mark, shard, subscriptions: HashMap::default() }
    }

    /// One more subscription to `filter`.
    pub(super) fn add(&mut self, filter: &TopicFilter, changes: &mut Vec<RouteChange>) {
        if let Some(count) = self.subscriptions.get_mut(filter) {
            *count += 1;
        } else {
            self.subscriptions.insert(filter.clone(), 1);
            changes.push(self.change(filter, true));
        }
    }

    /// One of those that were added is over.
    pub(super) fn remove(&mut self, filter: &TopicFilter, changes: &mut Vec<RouteChange>) {
        let Some(count) = self.subscriptions.get_mut(filter) else { return };
        *count -= 1;
        if *count == 0 {
            self.subscriptions.remove(filter);
            changes.push(self.change(filter, false));
        }
    }

    /// Marked filters.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.subscriptions.len()
    }

    fn change(&self, filter: &TopicFilter, is_set: bool) -> RouteChange {
        let (filter, mark) = (Filter::Plain(filter.clone()), self.mark);
        RouteChange::Mark { filter, shard: self.shard, mark, is_set }
    }
}

/// The marks of filters to which durable sessions subscribe.
pub(super) struct DurableMarks {
    /// The lowest QoS of a subscription whose messages may have to be written.
    qos_min: QoS,
    marks: FilterMarks,
}

impl DurableMarks {
    /// `keeps_qos0`: QoS 0 messages may have to be written, too.
    pub(super) fn new(shard: usize, keeps_qos0: bool) -> Self {
        let qos_min = if keeps_qos0 { QoS::AtMostOnce } else { QoS::AtLeastOnce };
        Self { qos_min, marks: FilterMarks::new(RouteMark::Durable, shard) }
    }

    /// The subscription of a durable session to `filter` changed its QoS; `None` stands for no
    /// subscription.
    pub(super) fn changed(
        &mut self,
        filter: &TopicFilter,
        (before, now): (Option<QoS>, Option<QoS>),
        changes: &mut Vec<RouteChange>,
    ) {
        let counts = |qos: Option<QoS>| qos.is_some_and(|qos| qos >= self.qos_min);
        match (counts(before), counts(now)) {
            (false, true) => self.marks.add(filter, changes),
            (true, false) => self.marks.remove(filter, changes),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_subscription_of_a_durable_session_change_the_mark() {
        const QOS0: Option<QoS> = Some(QoS::AtMostOnce);
        const QOS1: Option<QoS> = Some(QoS::AtLeastOnce);
        const QOS2: Option<QoS> = Some(QoS::ExactlyOnce);
        let filter = TopicFilter::parse("a/+").unwrap();
        for keeps_qos0 in [false, true] {
            let mut marks = DurableMarks::new(1, keeps_qos0);
            let mut changed = |before, now| {
                let mut changes = Vec::new();
                marks.changed(&filter, (before, now), &mut changes);
                assert!(changes.len() <= 1);
                changes.pop()
            };
            let mark = |is_set| {
                let (filter, mark) = (Filter::Plain(filter.clone()), RouteMark::Durable);
                Some(RouteChange::Mark { filter, shard: 1, mark, is_set })
            };
            assert_eq!(changed(None, QOS0), if keeps_qos0 { mark(true) } else { None });
            assert_eq!(changed(None, QOS1), if keeps_qos0 { None } else { mark(true) });
            assert_eq!(changed(QOS1, QOS2), None);
            assert_eq!(changed(QOS2, QOS0), if keeps_qos0 { None } else { mark(false) });
            assert_eq!(changed(QOS0, None), None);
            assert_eq!(changed(QOS0, None), if keeps_qos0 { mark(false) } else { None });
            assert_eq!(marks.marks.len(), 0);
        }
    }
}
