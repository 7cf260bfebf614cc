//! Routes derived from topics and filters: the streams that each receiver must receive.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use tacho_codec::QoS;

use super::{
    Client, ClientIndex, Group, Plan, Receiver, Route, Stream, StreamIndex, Subscription, Will,
};

/// A shared group of the plan: all subscriptions with the same group name and filter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SharedGroup<'a> {
    /// Group name.
    pub name: &'a str,
    /// Filter without the prefix `$share/group/`.
    pub filter: &'a str,
}

impl<'a> SharedGroup<'a> {
    /// The group of a `$share/name/filter`; `None` for a plain filter.
    pub fn parse(filter: &'a str) -> Option<Self> {
        let (name, filter) = filter.strip_prefix("$share/")?.split_once('/')?;
        Some(Self { name, filter })
    }
}

/// A bridge between two brokers, by their own configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bridge {
    /// The forwarding broker: the name of a group's targets.
    pub from: String,
    /// The receiving broker.
    pub to: String,
    /// The topics that it forwards.
    pub filter: String,
    /// Prefix removed from the topic.
    pub strip: String,
    /// Prefix then added to it.
    pub prefix: String,
}

impl Bridge {
    /// The topic under which a message to `topic` arrives; `None` when it is not forwarded.
    pub fn arrives_as(&self, topic: &str) -> Option<String> {
        let rest = topic.strip_prefix(self.strip.as_str())?;
        tacho_topic::matches(&self.filter, topic).then(|| format!("{}{rest}", self.prefix))
    }
}

/// A filter of one receiver, at its broker.
#[derive(Clone, Copy)]
struct Interest<'a> {
    broker: &'a str,
    receiver: Receiver,
    filter: &'a str,
    qos: QoS,
    no_local: bool,
}

/// All interests; those in exact topics are indexed by broker and topic.
struct Interests<'a> {
    exact: HashMap<(&'a str, &'a str), Vec<Interest<'a>>>,
    wild: Vec<Interest<'a>>,
}

impl Plan {
    /// The shared groups in order of first appearance: the numbering of [`Receiver::Shared`].
    pub fn shared_groups(&self) -> Vec<SharedGroup<'_>> {
        let mut seen = HashMap::new();
        let mut groups = Vec::new();
        for subscription in self.clients().flat_map(|(_, client)| &client.subscriptions) {
            if let Some(group) = SharedGroup::parse(&subscription.filter) {
                seen.entry(group.clone()).or_insert_with(|| groups.push(group));
            }
        }
        groups
    }

    /// Derives the routes from the plan's topics, filters and bridges, in order of streams.
    /// Messages stay at the broker of their group's targets, except across one bridge. The time is
    /// proportional to streams x wildcard filters; exact filters are looked up.
    pub fn derive_routes(&self) -> Vec<Route> {
        let interests = self.interests();
        let publishers =
            ClientIndex::all().zip(self.clients()).flat_map(|(client, (group, of))| {
                of.streams.iter().map(move |stream| (client, group, stream))
            });
        let mut routes = Vec::new();
        let mut found: Vec<Interest<'_>> = Vec::new();
        for (index, (client, group, stream)) in StreamIndex::all().zip(publishers) {
            let published = group.publish.get(stream.block).map_or(QoS::AtMostOnce, |b| b.qos);
            let broker = broker_of(group);
            found.clear();
            interests.find(broker, &stream.topic, &mut found);
            for (to, topic) in self.bridged(group, &stream.topic) {
                interests.find(to, &topic, &mut found);
            }
            self.answered(&interests, broker, stream, &mut found);
            let own = Receiver::Client(client);
            found.retain(|interest| !(interest.no_local && interest.receiver == own));
            found.sort_by_key(|interest| interest.receiver);
            for same in found.chunk_by(|a, b| a.receiver == b.receiver) {
                // Members of a shared group may request different QoS; only the lowest is certain.
                let granted = match same[0].receiver {
                    Receiver::Client(_) => same.iter().map(|i| i.qos).max(),
                    Receiver::Shared(_) => same.iter().map(|i| i.qos).min(),
                };
                routes.push(Route {
                    stream: index,
                    receiver: same[0].receiver,
                    qos: granted.unwrap_or(published).min(published),
                    overlapping: matches!(same[0].receiver, Receiver::Client(_)) && same.len() > 1,
                });
            }
        }
        routes
    }

    /// Adds the receivers of the answers to a stream's requests, if there are responders.
    fn answered<'a>(
        &'a self,
        interests: &Interests<'a>,
        broker: &str,
        stream: &'a Stream,
        found: &mut Vec<Interest<'a>>,
    ) {
        let Some(topic) = stream.response_topic.as_deref() else { return };
        let responders =
            self.groups.iter().filter(|group| group.answers && broker_of(group) == broker);
        let hears = |subscription: &&Subscription| {
            let shared = SharedGroup::parse(&subscription.filter);
            let filter = shared.map_or(subscription.filter.as_str(), |of| of.filter);
            tacho_topic::matches(filter, &stream.topic)
        };
        let heard = responders
            .flat_map(|group| &group.clients)
            .flat_map(|client| &client.subscriptions)
            .filter(hears);
        // Responders answer at the QoS that they requested; only the lowest is certain.
        let Some(answered) = heard.map(|subscription| subscription.qos).min() else { return };
        let from = found.len();
        interests.find(broker, topic, found);
        for interest in &mut found[from..] {
            interest.qos = interest.qos.min(answered);
        }
    }

    /// The number of receivers of each client's will, in order of clients: 0 where it has no will,
    /// or reconnects before the broker publishes it.
    pub(crate) fn will_receivers(&self) -> Vec<u32> {
        let interests = self.interests();
        let mut found = Vec::new();
        let count = |(group, client): (&Group, &Client)| {
            let published = |will: &&Will| will.delay_s == 0 || group.reconnect.is_none();
            let will = group.will.as_ref().filter(published);
            let Some((_, topic)) = will.zip(client.will_topic.as_deref()) else { return 0 };
            found.clear();
            interests.find(broker_of(group), topic, &mut found);
            let receivers: HashSet<Receiver> = found.iter().map(|found| found.receiver).collect();
            receivers.len() as u32
        };
        self.clients().map(count).collect()
    }

    /// The other brokers at which a message of a group's client arrives, and its topics there.
    pub(crate) fn bridged<'a>(
        &'a self,
        group: &'a Group,
        topic: &'a str,
    ) -> impl Iterator<Item = (&'a str, String)> {
        let from = broker_of(group);
        let bridges = self.bridges.iter().filter(move |bridge| bridge.from == from);
        bridges.filter_map(move |bridge| Some((bridge.to.as_str(), bridge.arrives_as(topic)?)))
    }

    fn interests(&self) -> Interests<'_> {
        let numbers: HashMap<SharedGroup<'_>, u32> =
            self.shared_groups().into_iter().zip(0..).collect();
        let mut interests = Interests { exact: HashMap::new(), wild: Vec::new() };
        // All members of a shared group, possibly thousands, form one interest.
        let mut members: HashMap<u32, usize> = HashMap::new();
        for (index, (group, client)) in ClientIndex::all().zip(self.clients()) {
            for subscription in &client.subscriptions {
                let shared = SharedGroup::parse(&subscription.filter);
                let filter = shared.as_ref().map_or(subscription.filter.as_str(), |g| g.filter);
                let number = shared.map(|group| numbers[&group]);
                let receiver = number.map_or(Receiver::Client(index), Receiver::Shared);
                let (broker, qos) = (broker_of(group), subscription.qos);
                let no_local = subscription.no_local;
                let interest = Interest { broker, receiver, filter, qos, no_local };
                if !filter.contains(['+', '#']) {
                    interests.exact.entry((broker, filter)).or_default().push(interest);
                } else if let Some(&known) = number.and_then(|number| members.get(&number)) {
                    let known = &mut interests.wild[known];
                    known.qos = known.qos.min(qos);
                } else {
                    members.extend(number.map(|number| (number, interests.wild.len())));
                    interests.wild.push(interest);
                }
            }
        }
        interests
    }
}

impl<'a> Interests<'a> {
    fn find(&self, broker: &str, topic: &str, found: &mut Vec<Interest<'a>>) {
        let exact = self.exact.get(&(broker, topic)).into_iter().flatten();
        let wild = self.wild.iter().filter(|interest| {
            interest.broker == broker && tacho_topic::matches(interest.filter, topic)
        });
        found.extend(exact.chain(wild));
    }
}

/// Name of a group's broker; empty for the plan's targets.
pub(super) fn broker_of(group: &Group) -> &str {
    group.targets.first().map_or("", |target| target.name.as_str())
}
