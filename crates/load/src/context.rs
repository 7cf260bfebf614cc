//! The run context: what all threads of a run share, read-only.

use std::ops::Range;
use std::sync::Arc;

use tacho_codec::QoS;

use crate::cells::Cells;
use crate::placement::{Layout, Placement};
use crate::plan::{Action, ActionKind, Plan};
use crate::verifier::{Streams, unix_offset_ns};

/// What all threads share, read-only.
#[derive(Debug)]
pub(crate) struct RunContext {
    pub(crate) plan: Plan,
    /// The threads of the plan that this process runs.
    pub(crate) here: Range<usize>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) placement: Placement,
    pub(crate) cells: Cells,
    pub(crate) homes: Vec<StreamHome>,
    /// Number of routes of each stream: the deliveries that one message causes.
    pub(crate) receivers: Vec<u32>,
    /// Whether each stream publishes retained messages.
    pub(crate) retained: Vec<bool>,
    /// Number of receivers of each client's will; empty unless an action breaks connections.
    pub(crate) will_receivers: Vec<u32>,
    /// Whether each group subscribes only by an action.
    pub(crate) subscribes_later: Vec<bool>,
    /// The largest packet that clients of each group accept.
    pub(crate) packet_bytes_accepted: Vec<u32>,
}

/// The place of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamHome {
    pub(crate) thread: u16,
    /// The cell of its client.
    pub(crate) cell: u16,
    /// Closed mode at QoS 0: the publisher's window counts deliveries.
    pub(crate) wants_credit: bool,
    /// Its number on that thread.
    pub(crate) local: u32,
}

impl RunContext {
    /// Places clients and streams on threads, all of them of this process.
    pub(crate) fn new(plan: Plan) -> Self {
        let here = 0..plan.threads;
        Self::of_share(plan, &Layout::default(), here, unix_offset_ns())
    }

    /// The same where this process runs only the threads `here`, and the run's clock is that much
    /// behind Unix time.
    pub(crate) fn of_share(
        plan: Plan,
        layout: &Layout,
        here: Range<usize>,
        unix_offset_ns: u64,
    ) -> Self {
        let placement = Placement::spread(&plan, layout);
        let cells = Cells::new(&plan);
        let streams = Arc::new(Streams::at(&plan, unix_offset_ns));
        let mut receivers = vec![0; streams.infos.len()];
        for route in &plan.routes {
            receivers[route.stream.index()] += 1;
        }
        let mut counts = vec![0; plan.threads];
        let homes = plan
            .streams()
            .map(|(client, _, block)| {
                let thread = placement.thread_of[client.index()];
                let local = counts[usize::from(thread)];
                counts[usize::from(thread)] += 1;
                let wants_credit =
                    block.pace.per_second().is_none() && block.qos == QoS::AtMostOnce;
                let cell = cells.cell_of(client) as u16;
                StreamHome { thread, cell, wants_credit, local }
            })
            .collect();
        let retained = plan.streams().map(|(_, _, block)| block.retain).collect();
        let breaks =
            |action: &Action| matches!(action.kind, ActionKind::Disconnect { clean: false });
        let will_receivers = match plan.actions.iter().any(breaks) {
            true => plan.will_receivers(),
            false => Vec::new(),
        };
        let later = |group: usize| {
            let mut actions = plan.actions.iter();
            actions.any(|action| action.group == group && action.kind == ActionKind::Subscribe)
        };
        let subscribes_later = (0..plan.groups.len()).map(later).collect();
        Self {
            streams,
            placement,
            cells,
            homes,
            receivers,
            retained,
            will_receivers,
            subscribes_later,
            packet_bytes_accepted: plan.packet_bytes_accepted(),
            here,
            plan,
        }
    }
}
