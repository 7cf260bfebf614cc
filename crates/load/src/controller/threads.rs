//! Starts the generator threads of this process.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use tacho_net::{Loop, LoopConfig, Remote, mailboxes};

use crate::context::RunContext;
use crate::mail::{Mail, Report, ReportBody};
use crate::plan::Timing;
use crate::worker::Worker;

/// Publications are due at the end of a turn: however much else there is to do, such as thousands
/// of handshakes, they wait for about so long. What arrives on connections that are up is read
/// first, so that latencies contain no handshakes of others; these have half of a turn at least.
const TURN_NS_MAX: u64 = 1_000_000;
/// Many a timer opens a connection, which takes about 90 us.
const TIMERS_PER_TURN_MAX: usize = 16;

/// Starts one event loop per generator thread.
pub(crate) fn start(
    context: &Arc<RunContext>,
    sender: &mpsc::Sender<Report>,
) -> io::Result<(Vec<JoinHandle<()>>, Remote<Mail>)> {
    let plan = &context.plan;
    let boxes = mailboxes::<Mail>(context.here.len());
    let remote = boxes[0].remote();
    let mut threads = Vec::with_capacity(boxes.len());
    for (number, (thread, mailbox)) in context.here.clone().zip(boxes).enumerate() {
        let config = LoopConfig {
            spin: plan.timing == Timing::Spin,
            batch_writes: true,
            turn_ns_max: TURN_NS_MAX,
            newcomers_budget_ns: TURN_NS_MAX / 2,
            timers_per_turn_max: TIMERS_PER_TURN_MAX,
            cpu: (!plan.cpus.is_empty()).then(|| plan.cpus[number % plan.cpus.len()]),
            ..LoopConfig::default()
        };
        let event_loop = Loop::<Worker>::new(config, mailbox)?;
        let (context, sender) = (Arc::clone(context), sender.clone());
        let work = move || {
            let mut worker = Worker::new(thread, context, sender.clone());
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
