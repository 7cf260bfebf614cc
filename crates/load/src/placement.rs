//! Assignment of clients to generator threads.
//!
//! Publishers and their receivers share a thread where possible, so that credit of closed mode and
//! probes need no mail between threads: clients connected by routes form clusters, and clusters are
//! assigned to threads by weight. A cluster too heavy for one thread is split client by client.

use std::collections::HashMap;

use crate::plan::{ClientIndex, Plan, Receiver, SharedGroup};

/// The thread of each client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) thread_of: Vec<u16>,
}

impl Placement {
    pub(crate) fn new(plan: &Plan) -> Self {
        let clients = plan.client_count();
        if plan.threads == 1 {
            return Self { thread_of: vec![0; clients] };
        }
        let (clusters, weights) = clusters(plan);
        let total: f64 = weights.iter().sum();
        let fair = total / plan.threads as f64;
        let mut load = vec![0.0; plan.threads];
        let mut thread_of = vec![0; clients];
        let mut place = |members: &[ClientIndex], weight: f64| {
            let lightest = (0..load.len()).min_by(|&a, &b| f64::total_cmp(&load[a], &load[b]));
            let thread = lightest.unwrap_or(0);
            load[thread] += weight;
            for &member in members {
                thread_of[member.index()] = thread as u16;
            }
        };
        for members in clusters {
            let weight: f64 = members.iter().map(|&member| weights[member.index()]).sum();
            if weight > fair * 1.2 {
                let mut members = members;
                members.sort_by(|&a, &b| {
                    f64::total_cmp(&weights[b.index()], &weights[a.index()]).then(a.cmp(&b))
                });
                for member in members {
                    place(&[member], weights[member.index()]);
                }
            } else {
                place(&members, weight);
            }
        }
        Self { thread_of }
    }

    /// The clients of `thread`, in order.
    pub(crate) fn clients_of(&self, thread: usize) -> Vec<ClientIndex> {
        ClientIndex::all()
            .zip(&self.thread_of)
            .filter(|(_, at)| usize::from(**at) == thread)
            .map(|(client, _)| client)
            .collect()
    }
}

/// Clusters of clients connected by routes, heaviest first, and the weight of each client: messages
/// per second in and out, and a small constant for the connection itself.
fn clusters(plan: &Plan) -> (Vec<Vec<ClientIndex>>, Vec<f64>) {
    /// Streams in closed mode have no rate; they weigh as much as fast ones.
    const CLOSED_RATE: f64 = 10_000.0;
    let clients = plan.client_count();
    let mut weights = vec![0.01; clients];
    let streams: Vec<(ClientIndex, f64)> = plan
        .streams()
        .map(|(client, _, block)| (client, block.pace.per_second().unwrap_or(CLOSED_RATE)))
        .collect();
    for &(client, rate) in &streams {
        weights[client.index()] += rate;
    }
    let mut sets = Sets::new(clients);
    let members = members_of_groups(plan);
    for route in &plan.routes {
        let (publisher, rate) = streams[route.stream.index()];
        match route.receiver {
            Receiver::Client(client) => {
                weights[client.index()] += rate;
                sets.join(publisher, client);
            }
            Receiver::Shared(group) => {
                let members = &members[group as usize];
                for &member in members {
                    weights[member.index()] += rate / members.len() as f64;
                    sets.join(publisher, member);
                }
            }
        }
    }
    let mut clusters: HashMap<ClientIndex, Vec<ClientIndex>> = HashMap::new();
    for client in ClientIndex::all().take(clients) {
        clusters.entry(sets.root(client)).or_default().push(client);
    }
    let weigh = |members: &[ClientIndex]| -> f64 {
        members.iter().map(|&member| weights[member.index()]).sum()
    };
    let mut clusters: Vec<Vec<ClientIndex>> = clusters.into_values().collect();
    clusters.sort_by(|a, b| f64::total_cmp(&weigh(b), &weigh(a)).then(a.cmp(b)));
    (clusters, weights)
}

fn members_of_groups(plan: &Plan) -> Vec<Vec<ClientIndex>> {
    let groups = plan.shared_groups();
    let mut members = vec![Vec::new(); groups.len()];
    let numbers: HashMap<SharedGroup<'_>, usize> = groups.into_iter().zip(0..).collect();
    for (index, (_, client)) in ClientIndex::all().zip(plan.clients()) {
        for subscription in &client.subscriptions {
            if let Some(group) = SharedGroup::parse(&subscription.filter) {
                members[numbers[&group]].push(index);
            }
        }
    }
    members
}

/// Disjoint sets of clients.
struct Sets {
    parents: Vec<ClientIndex>,
}

impl Sets {
    fn new(clients: usize) -> Self {
        Self { parents: ClientIndex::all().take(clients).collect() }
    }

    fn root(&mut self, client: ClientIndex) -> ClientIndex {
        let mut at = client;
        while self.parents[at.index()] != at {
            // Path halving keeps later searches short.
            let grandparent = self.parents[self.parents[at.index()].index()];
            self.parents[at.index()] = grandparent;
            at = grandparent;
        }
        at
    }

    fn join(&mut self, a: ClientIndex, b: ClientIndex) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b).index()] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use tacho_codec::QoS;

    use super::*;
    use crate::plan::tests::{plan_of, publisher, subscriber};

    #[test]
    fn pairs_share_a_thread_and_weights_are_balanced() {
        let mut clients: Vec<_> =
            (0..10).map(|i| publisher(&format!("t/{i}"), QoS::AtMostOnce)).collect();
        clients.extend((0..10).map(|i| subscriber(&format!("t/{i}"), QoS::AtMostOnce)));
        let plan = Plan { threads: 2, ..plan_of(clients) };
        let Placement { thread_of } = Placement::new(&plan);
        assert!((0..10).all(|i| thread_of[i] == thread_of[i + 10]));
        assert_eq!(thread_of.iter().filter(|thread| **thread == 0).count(), 10);
    }

    #[test]
    fn a_cluster_too_heavy_for_one_thread_is_split() {
        let mut clients = vec![publisher("t", QoS::AtMostOnce)];
        clients.extend((0..30).map(|_| subscriber("t", QoS::AtMostOnce)));
        let plan = Plan { threads: 4, ..plan_of(clients) };
        let placement = Placement::new(&plan);
        for thread in 0..4 {
            assert!((6..=9).contains(&placement.clients_of(thread).len()));
        }
    }
}
