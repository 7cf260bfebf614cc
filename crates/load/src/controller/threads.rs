//! Sets the generator threads up.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use tacho_net::{Loop, LoopConfig, Remote, mailboxes};

use crate::cells::Cells;
use crate::mail::{Mail, Report, ReportBody};
use crate::placement::Placement;
use crate::plan::{Action, Deed, Plan, Timing};
use crate::verifier::Streams;
use crate::worker::{Common, StreamHome, Worker};

/// Starts one event loop per generator thread.
pub(super) fn start(
    common: &Arc<Common>,
    sender: &mpsc::Sender<Report>,
) -> io::Result<(Vec<JoinHandle<()>>, Remote<Mail>)> {
    let plan = &common.plan;
    let boxes = mailboxes::<Mail>(plan.threads);
    let remote = boxes[0].remote();
    let mut threads = Vec::with_capacity(plan.threads);
    for (thread, mailbox) in boxes.into_iter().enumerate() {
        let config = LoopConfig {
            spin: plan.timing == Timing::Spin,
            cpu: (!plan.cpus.is_empty()).then(|| plan.cpus[thread % plan.cpus.len()]),
            ..LoopConfig::default()
        };
        let event_loop = Loop::<Worker>::new(config, mailbox)?;
        let (common, sender) = (Arc::clone(common), sender.clone());
        let work = move || {
            let mut worker = Worker::new(thread, common, sender.clone());
            if let Err(error) = event_loop.run(&mut worker) {
                let body = ReportBody::Broken(error.to_string());
                // The controller outlives its threads.
                let _ = sender.send(Report { thread, body });
            }
        };
        threads.push(Builder::new().name(format!("load-{thread}")).spawn(work)?);
    }
    Ok((threads, remote))
}

impl Common {
    /// Places clients and streams.
    pub(crate) fn new(plan: Plan) -> Self {
        let placement = Placement::new(&plan);
        let cells = Cells::new(&plan);
        let streams = Arc::new(Streams::new(&plan));
        let mut receivers = vec![0; streams.infos.len()];
        for route in &plan.routes {
            receivers[route.stream as usize] += 1;
        }
        let mut counts = vec![0; plan.threads];
        let homes = plan
            .streams()
            .map(|(client, _, block)| {
                let thread = placement.thread_of[client as usize];
                let local = counts[usize::from(thread)];
                counts[usize::from(thread)] += 1;
                let wants_credit =
                    block.pace.per_second().is_none() && block.qos == tacho_codec::QoS::AtMostOnce;
                let cell = cells.of(client) as u16;
                StreamHome { thread, cell, wants_credit, local }
            })
            .collect();
        let retained = plan.streams().map(|(_, _, block)| block.retain).collect();
        let breaks = |action: &Action| matches!(action.deed, Deed::Disconnect { clean: false });
        let will_receivers = match plan.actions.iter().any(breaks) {
            true => plan.will_receivers(),
            false => Vec::new(),
        };
        let later = |group: usize| {
            let mut actions = plan.actions.iter();
            actions.any(|action| action.group == group && action.deed == Deed::Subscribe)
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
            plan,
        }
    }
}
