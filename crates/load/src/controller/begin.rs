//! Starts the controller of a run.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use super::crew::{Crew, CrewPart};
use super::intervals::Intervals;
use super::roll::Roll;
use super::shares::Shares;
use super::{ClosedBooks, Controller, Inbox, threads};
use crate::context::RunContext;
use crate::events::Event;
use crate::mail::{OnLoss, Report};
use crate::past::Past;
use crate::plan::Plan;
use crate::rtt::RttThread;

/// Starts the threads and the controller.
pub(crate) fn start(
    plan: Plan,
    events: mpsc::Sender<Event>,
    abort: Arc<AtomicBool>,
) -> io::Result<JoinHandle<()>> {
    // Where the limit cannot be raised, reaching it shows as failed connects.
    let _ = tacho_net::raise_fd_limit();
    let context = Arc::new(RunContext::new(plan));
    let (sender, reports) = mpsc::channel();
    let (threads, remote) = threads::start(&context, &sender)?;
    let crew = Crew::Here { remote, threads };
    let undivided = (Shares::default(), OnLoss::End);
    control(context, crew, undivided, (sender, reports), (events, abort), None)
}

/// Starts the controller of threads that other processes have started, perhaps for another
/// controller, whose run it takes up.
pub(crate) fn start_parts(
    context: Arc<RunContext>,
    (parts, past): (Vec<CrewPart>, Option<Past>),
    on_loss: OnLoss,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    to: (mpsc::Sender<Event>, Arc<AtomicBool>),
) -> io::Result<JoinHandle<()>> {
    let shares = parts.iter().map(|part| (part.threads.clone(), part.clients));
    let shares = Shares::new(shares.collect());
    control(context, Crew::Elsewhere(parts), (shares, on_loss), reports, to, past)
}

fn control(
    context: Arc<RunContext>,
    crew: Crew,
    (shares, on_loss): (Shares, OnLoss),
    (sender, reports): (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    (events, abort): (mpsc::Sender<Event>, Arc<AtomicBool>),
    past: Option<Past>,
) -> io::Result<JoinHandle<()>> {
    let rtt = RttThread::start(&context, &sender)?;
    let controller = Controller {
        intervals: Intervals::new(Arc::clone(&context), shares.clone()),
        roll: Roll::new(context.plan.threads),
        shares,
        on_loss,
        is_loading: false,
        lost_groups: HashSet::new(),
        rtt,
        rtt_failure: None,
        connect_start_ns: 0,
        entered: Vec::new(),
        context,
        events,
        abort,
        crew,
        reports,
        inbox: Inbox::default(),
        failures: 0,
        lost: HashSet::new(),
        last_failure: String::new(),
        started_actions: HashMap::new(),
        measured_ns: 0,
        connect_timeout_ns: u64::MAX,
        past,
        closed: ClosedBooks::default(),
    };
    Builder::new().name("load-control".into()).spawn(move || controller.run())
}
