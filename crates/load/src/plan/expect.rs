//! Who must get what: routes derived from topics and filters.

use std::collections::HashMap;

use tacho_codec::QoS;

use super::{Plan, Receiver, Route};

/// A shared group of the plan: all subscriptions with the same group name and filter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SharedGroup<'a> {
    /// Group name.
    pub name: &'a str,
    /// Filter without the `$share/group/` in front.
    pub filter: &'a str,
}

impl<'a> SharedGroup<'a> {
    /// The group of a `$share/name/filter`; `None` for a plain filter.
    pub fn of(filter: &'a str) -> Option<Self> {
        let (name, filter) = filter.strip_prefix("$share/")?.split_once('/')?;
        Some(Self { name, filter })
    }
}

/// One receiver's interest: where its filter is kept.
#[derive(Clone, Copy)]
struct Interest<'a> {
    receiver: Receiver,
    filter: &'a str,
    qos: QoS,
}

impl Plan {
    /// The shared groups in order of first appearance: the numbering of [`Receiver::Shared`].
    pub fn shared_groups(&self) -> Vec<SharedGroup<'_>> {
        let mut seen = HashMap::new();
        let mut groups = Vec::new();
        for subscription in self.clients().flat_map(|(_, client)| &client.subscriptions) {
            if let Some(group) = SharedGroup::of(&subscription.filter) {
                seen.entry(group.clone()).or_insert_with(|| groups.push(group));
            }
        }
        groups
    }

    /// Computes the routes that the plan's topics and filters imply, in order of streams.
    /// Takes time in proportion to streams x wildcard filters; exact filters are looked up.
    pub fn derive_routes(&self) -> Vec<Route> {
        let numbers: HashMap<SharedGroup<'_>, u32> =
            self.shared_groups().into_iter().zip(0..).collect();
        let mut exact: HashMap<&str, Vec<Interest<'_>>> = HashMap::new();
        let mut wild = Vec::new();
        for (index, (_, client)) in (0..).zip(self.clients()) {
            for subscription in &client.subscriptions {
                let shared = SharedGroup::of(&subscription.filter);
                let filter = shared.as_ref().map_or(subscription.filter.as_str(), |g| g.filter);
                let receiver = shared
                    .map_or(Receiver::Client(index), |group| Receiver::Shared(numbers[&group]));
                let interest = Interest { receiver, filter, qos: subscription.qos };
                if filter.contains(['+', '#']) {
                    wild.push(interest);
                } else {
                    exact.entry(filter).or_default().push(interest);
                }
            }
        }
        let mut routes = Vec::new();
        let mut found: Vec<Interest<'_>> = Vec::new();
        for (index, (_, stream, block)) in (0..).zip(self.streams()) {
            found.clear();
            found.extend(exact.get(stream.topic.as_str()).into_iter().flatten());
            found.extend(wild.iter().filter(|i| tacho_topic::matches(i.filter, &stream.topic)));
            found.sort_by_key(|interest| interest.receiver);
            for same in found.chunk_by(|a, b| a.receiver == b.receiver) {
                // Members of a shared group may ask for different QoS: the lowest is certain.
                let granted = match same[0].receiver {
                    Receiver::Client(_) => same.iter().map(|i| i.qos).max(),
                    Receiver::Shared(_) => same.iter().map(|i| i.qos).min(),
                };
                routes.push(Route {
                    stream: index,
                    receiver: same[0].receiver,
                    qos: granted.unwrap_or(block.qos).min(block.qos),
                    overlapping: matches!(same[0].receiver, Receiver::Client(_)) && same.len() > 1,
                });
            }
        }
        routes
    }
}
