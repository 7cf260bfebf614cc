//! Assignment of clients to generator threads.
//!
//! Publishers and their receivers share a thread where possible, so that credit of closed mode and
//! probes need no mail between threads: clients connected by routes form clusters, and clusters are
//! assigned to threads by weight. A cluster too heavy for one thread is split client by client.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::plan::{ClientIndex, Plan, Receiver, SharedGroup};

/// A cluster of more than so many threads' fair shares is split client by client.
const HEAVY: f64 = 1.2;

/// The thread of each client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) thread_of: Vec<u16>,
}

/// Where clients that exchange messages are placed in a run that is divided over processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PairPlacement {
    /// On one thread, and so on one process, where they are not too many.
    #[default]
    Same,
    /// Anywhere: each client for itself, wherever there is least to do.
    Any,
    /// Publishers on one process, and their receivers on others.
    Split,
}

/// How clients are spread over the processes of a divided run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Layout {
    pub(crate) spread: PairPlacement,
    /// Threads and capacity of each process; empty where there is only this one.
    pub(crate) parts: Vec<(usize, f64)>,
}

impl Layout {
    /// Whether it is one of so many threads, with capacities that can be compared.
    pub(crate) fn fits(&self, threads: usize) -> bool {
        let sum = self.parts.iter().try_fold(0_usize, |sum, (of, _)| sum.checked_add(*of));
        let is_sound = |(of, capacity): &(usize, f64)| {
            *of > 0 && capacity.is_finite() && (1e-6..=1e12).contains(capacity)
        };
        self.parts.is_empty() || sum == Some(threads) && self.parts.iter().all(is_sound)
    }
}

impl Placement {
    /// Places the clients of a plan that is not divided.
    #[cfg(test)]
    fn new(plan: &Plan) -> Self {
        Self::spread(plan, &Layout::default())
    }

    /// Places the clients of a plan on the threads of all processes.
    pub(crate) fn spread(plan: &Plan, layout: &Layout) -> Self {
        let clients = plan.client_count();
        if plan.threads == 1 {
            return Self { thread_of: vec![0; clients] };
        }
        let (clusters, weights) = clusters(plan);
        let mut seats = Seats::new(plan, layout, &weights);
        for members in clusters {
            match layout.spread {
                PairPlacement::Same => seats.place_all(members, |_| true),
                PairPlacement::Any => seats.place_each(members, |_| true),
                PairPlacement::Split => seats.split(members),
            };
        }
        Self { thread_of: seats.thread_of }
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

/// The threads, and what is placed on them so far.
struct Seats<'a> {
    weights: &'a [f64],
    /// Whether each client publishes.
    publishes: Vec<bool>,
    /// Weight on each thread.
    load: Vec<f64>,
    /// Capacity of each thread, and the process that it belongs to.
    threads: Vec<(f64, usize)>,
    /// A thread's share of all weight.
    fair: f64,
    thread_of: Vec<u16>,
}

impl<'a> Seats<'a> {
    fn new(plan: &Plan, layout: &Layout, weights: &'a [f64]) -> Self {
        let mut publishes = vec![false; weights.len()];
        for (client, ..) in plan.streams() {
            publishes[client.index()] = true;
        }
        let parts = (0..).zip(&layout.parts).flat_map(|(part, (threads, capacity))| {
            std::iter::repeat_n((capacity / *threads as f64, part), *threads)
        });
        let mut threads: Vec<(f64, usize)> = parts.collect();
        threads.resize(plan.threads, (1.0, 0));
        Self {
            weights,
            publishes,
            load: vec![0.0; plan.threads],
            threads,
            fair: weights.iter().sum::<f64>() / plan.threads as f64,
            thread_of: vec![0; weights.len()],
        }
    }

    fn weight(&self, members: &[ClientIndex]) -> f64 {
        members.iter().map(|member| self.weights[member.index()]).sum()
    }

    /// Places clients on one thread, of a process that `may` take them; returns the process.
    fn place(&mut self, members: &[ClientIndex], may: impl Fn(usize) -> bool) -> usize {
        let relative = |thread: &usize| self.load[*thread] / self.threads[*thread].0;
        let free = (0..self.load.len()).filter(|thread| may(self.threads[*thread].1));
        let thread = free.min_by(|a, b| relative(a).total_cmp(&relative(b))).unwrap_or(0);
        self.load[thread] += self.weight(members);
        for member in members {
            self.thread_of[member.index()] = thread as u16;
        }
        self.threads[thread].1
    }

    /// Places clients one by one, the heaviest first; returns the process of the first.
    fn place_each(
        &mut self,
        mut members: Vec<ClientIndex>,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let weight = |client: ClientIndex| self.weights[client.index()];
        members.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)).then(a.cmp(&b)));
        let parts: Vec<usize> = members.iter().map(|&member| self.place(&[member], &may)).collect();
        parts.first().copied()
    }

    /// Places clients on one thread where they are not too many.
    fn place_all(
        &mut self,
        members: Vec<ClientIndex>,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        match self.weight(&members) > self.fair * HEAVY {
            true => self.place_each(members, may),
            false => Some(self.place(&members, may)),
        }
    }

    /// Places publishers on one process and their receivers on others: the lighter side on one.
    fn split(&mut self, members: Vec<ClientIndex>) -> Option<usize> {
        let publishes = |client: &ClientIndex| self.publishes[client.index()];
        let (publishers, receivers): (Vec<_>, Vec<_>) = members.into_iter().partition(publishes);
        let mut sides = [publishers, receivers];
        sides.sort_by(|a, b| self.weight(a).total_cmp(&self.weight(b)));
        let [lighter, heavier] = sides;
        let has_others = self.threads.iter().any(|(_, part)| *part != self.threads[0].1);
        if lighter.is_empty() || !has_others {
            return self.place_all([lighter, heavier].concat(), |_| true);
        }
        let first = self.place(&lighter[..1], |_| true);
        self.place_all(lighter[1..].to_vec(), |part| part == first);
        self.place_all(heavier, |part| part != first)
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

/// The members of each shared group of a plan, by its number.
pub(crate) fn members_of_groups(plan: &Plan) -> Vec<Vec<ClientIndex>> {
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

    /// Twelve pairs, and how many clients of each process has, and how many pairs are on one.
    fn spread_pairs(spread: PairPlacement, parts: &[(usize, f64)]) -> (Vec<usize>, usize) {
        let topics = |at: usize| format!("t/{at}");
        let mut clients: Vec<_> =
            (0..12).map(|at| publisher(&topics(at), QoS::AtMostOnce)).collect();
        clients.extend((0..12).map(|at| subscriber(&topics(at), QoS::AtMostOnce)));
        let threads = parts.iter().map(|(threads, _)| threads).sum();
        let plan = Plan { threads, ..plan_of(clients) };
        let layout = Layout { spread, parts: parts.to_vec() };
        assert!(layout.fits(threads));
        let placement = Placement::spread(&plan, &layout);
        let ends: Vec<usize> = parts
            .iter()
            .scan(0, |sum, (threads, _)| {
                *sum += threads;
                Some(*sum)
            })
            .collect();
        let part = |client: usize| {
            ends.partition_point(|end| *end <= usize::from(placement.thread_of[client]))
        };
        let counts =
            (0..parts.len()).map(|of| (0..24).filter(|client| part(*client) == of).count());
        (counts.collect(), (0..12).filter(|at| part(*at) == part(at + 12)).count())
    }

    #[test]
    fn pairs_are_kept_together_or_apart() {
        let three = [(1, 1.0), (2, 2.0), (1, 1.0)];
        assert_eq!(spread_pairs(PairPlacement::Same, &three), (vec![6, 12, 6], 12));
        let (counts, together) = spread_pairs(PairPlacement::Split, &three);
        assert_eq!((counts.iter().sum::<usize>(), together), (24, 0), "{counts:?}");
        let (counts, together) = spread_pairs(PairPlacement::Any, &three);
        assert!(together < 12 && counts.iter().all(|count| *count >= 5), "{counts:?}, {together}");
        // One process has nowhere to split to.
        assert_eq!(spread_pairs(PairPlacement::Split, &[(2, 1.0)]), (vec![24], 12));
    }

    #[test]
    fn clients_follow_the_capacity_of_processes() {
        // Threads count for nothing here.
        let counts = spread_pairs(PairPlacement::Same, &[(3, 1.0), (1, 1.0)]).0;
        assert_eq!(counts, [12, 12]);
        assert_eq!(spread_pairs(PairPlacement::Same, &[(1, 3.0), (1, 1.0)]).0, [18, 6]);
        for bad in [vec![(1, 0.0)], vec![(1, f64::NAN)], vec![(2, 1.0)], vec![(0, 1.0), (1, 1.0)]] {
            assert!(!Layout { spread: PairPlacement::Same, parts: bad }.fits(1));
        }
        let many = Layout { spread: PairPlacement::Same, parts: vec![(usize::MAX, 1.0), (2, 1.0)] };
        assert!(!many.fits(1));
    }
}
