//! The routes of each receiver: built from the plan, looked up by stream.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tacho_codec::QoS;

use super::settle::Policy;
use super::{Absence, ClientState, Membership, SharedTracker, Streams, Tracker, Verifier};
use crate::cells::Cells;
use crate::plan::{ClientIndex, Plan, Receiver, Route, SharedGroup, StreamIndex};
use crate::window::Window;

/// One plain route.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) tracker: Tracker,
    pub(super) stream: StreamIndex,
    pub(super) qos: QoS,
    pub(super) overlapping: bool,
    pub(super) probed: bool,
    /// The receiver was absent, and no message published after its return has arrived.
    pub(super) absence: Absence,
}

/// One route of a shared group, for its members on this thread.
#[derive(Debug)]
pub(super) struct SharedEntry {
    pub(super) tracker: SharedTracker,
    pub(super) stream: StreamIndex,
    pub(super) qos: QoS,
    pub(super) probed: bool,
}

/// The entries of one receiver, contiguous and ordered by stream.
#[derive(Debug)]
pub(super) struct ReceiverTable {
    pub(super) receiver: Receiver,
    first_entry: usize,
    count: usize,
    lookup: Lookup,
}

#[derive(Debug)]
enum Lookup {
    /// The streams are `base..base + count`.
    Dense {
        base: StreamIndex,
    },
    Sparse(hashbrown::HashMap<StreamIndex, u32, foldhash::fast::FixedState>),
}

impl ReceiverTable {
    fn new(receiver: Receiver, first_entry: usize, routes: &[Route]) -> Self {
        let base = routes.first().map_or_else(StreamIndex::default, |route| route.stream);
        let numbers = base.number()..;
        let dense =
            routes.iter().zip(numbers).all(|(route, stream)| route.stream.number() == stream);
        let lookup = if dense {
            Lookup::Dense { base }
        } else {
            Lookup::Sparse(routes.iter().map(|route| route.stream).zip(0..).collect())
        };
        Self { receiver, first_entry, count: routes.len(), lookup }
    }

    /// Position of the entry for `stream`.
    #[inline]
    pub(super) fn find(&self, stream: StreamIndex) -> Option<usize> {
        let at = match &self.lookup {
            Lookup::Dense { base } => stream.number().wrapping_sub(base.number()) as usize,
            Lookup::Sparse(map) => *map.get(&stream)? as usize,
        };
        (at < self.count).then_some(self.first_entry + at)
    }

    pub(super) const fn range(&self) -> Range<usize> {
        self.first_entry..self.first_entry + self.count
    }
}

/// The routes to each receiver, ordered by stream.
fn routes_by_receiver(plan: &Plan) -> HashMap<Receiver, Vec<Route>> {
    let mut by_receiver: HashMap<Receiver, Vec<Route>> = HashMap::new();
    for route in &plan.routes {
        by_receiver.entry(route.receiver).or_default().push(*route);
    }
    for routes in by_receiver.values_mut() {
        routes.sort_by_key(|route| route.stream);
    }
    by_receiver
}

impl Verifier {
    /// A verifier for the clients of one thread. The other methods take a client's position in
    /// `clients`.
    pub(crate) fn new(streams: Arc<Streams>, plan: &Plan, clients: &[ClientIndex]) -> Self {
        let by_receiver = routes_by_receiver(plan);
        let numbers: HashMap<SharedGroup<'_>, u32> =
            plan.shared_groups().into_iter().zip(0..).collect();
        let (groups_of_plan, all): (Vec<_>, Vec<_>) = plan.clients().unzip();
        let cells = Cells::new(plan);
        let mut verifier = Self {
            streams,
            clients: Vec::with_capacity(clients.len()),
            entries: Vec::new(),
            shared: Vec::new(),
            shared_entries: Vec::new(),
            window: Window::NONE,
            scratch: Vec::new(),
            tallies: vec![Default::default(); cells.len()],
        };
        let mut tables: HashMap<u32, u32> = HashMap::new();
        for &index in clients {
            let receiver = Receiver::Client(index);
            let routes = by_receiver.get(&receiver).map_or(&[][..], Vec::as_slice);
            let table = ReceiverTable::new(receiver, verifier.entries.len(), routes);
            verifier.entries.extend(routes.iter().map(|route| Entry {
                tracker: Tracker::default(),
                stream: route.stream,
                qos: route.qos,
                overlapping: route.overlapping,
                probed: false,
                absence: Absence::None,
            }));
            let cell = cells.cell_of(index);
            let mut groups: Vec<u32> = all[index.index()]
                .subscriptions
                .iter()
                .filter_map(|subscription| SharedGroup::parse(&subscription.filter))
                .map(|group| numbers[&group])
                .map(|group| {
                    *tables.entry(group).or_insert_with(|| {
                        let receiver = Receiver::Shared(group);
                        let routes = by_receiver.get(&receiver).map_or(&[][..], Vec::as_slice);
                        verifier.add_group(receiver, routes)
                    })
                })
                .collect();
            groups.sort_unstable();
            groups.dedup();
            verifier.clients.push(ClientState {
                index,
                cell,
                receives: !routes.is_empty() || !groups.is_empty(),
                routes: table,
                groups: groups
                    .into_iter()
                    .map(|table| Membership { table, received_in_window: 0 })
                    .collect(),
                failed: false,
                has_left: false,
                answers: groups_of_plan[index.index()].answers,
                back_ns: 0,
                is_away: false,
                policy: Policy::from_group(groups_of_plan[index.index()]),
                received_in_window: 0,
                header_hint: 0,
            });
        }
        verifier
    }

    fn add_group(&mut self, receiver: Receiver, routes: &[Route]) -> u32 {
        self.shared.push(ReceiverTable::new(receiver, self.shared_entries.len(), routes));
        self.shared_entries.extend(routes.iter().map(|route| SharedEntry {
            tracker: SharedTracker::default(),
            stream: route.stream,
            qos: route.qos,
            probed: false,
        }));
        self.shared.len() as u32 - 1
    }
}
