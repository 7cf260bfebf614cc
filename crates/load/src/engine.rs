//! The engine: runs a plan on its own threads and reports events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::context::RunContext;
use crate::controller::CrewPart;
use crate::events::Event;
use crate::mail::{OnLoss, Report};
use crate::past::Past;
use crate::plan::{Plan, PlanError};

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The plan cannot run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system refused a resource.
    #[error("cannot start the load generator: {0}")]
    System(#[from] std::io::Error),
}

/// A running load. Dropping it aborts the run and waits for its threads.
///
/// The plan's phases run one after another; [`Engine::next_event`] reports their progress. The last
/// event is always [`Event::Finished`].
#[derive(Debug)]
pub struct Engine {
    events: mpsc::Receiver<Event>,
    abort: AbortHandle,
    controller: Option<JoinHandle<()>>,
}

/// Ends a run from another thread, for example from a signal handler's thread.
#[derive(Debug, Clone)]
pub struct AbortHandle(Arc<AtomicBool>);

impl AbortHandle {
    /// Stops publishing, waits briefly for messages in flight, reports the window measured so far,
    /// disconnects, and finishes. May be called more than once.
    pub fn abort(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Engine {
    /// Checks the plan and starts running its phases.
    ///
    /// # Errors
    /// The plan cannot run, or threads cannot be started.
    pub fn start(plan: Plan) -> Result<Self, StartError> {
        plan.check()?;
        let (sender, events) = mpsc::channel();
        let abort = AbortHandle(Arc::default());
        let controller = crate::controller::start(plan, sender, Arc::clone(&abort.0))?;
        Ok(Self { events, abort, controller: Some(controller) })
    }

    /// Runs the phases of a plan whose threads other processes have started, or takes up a run.
    pub(crate) fn of_parts(
        context: Arc<RunContext>,
        parts: (Vec<CrewPart>, Option<Past>),
        on_loss: OnLoss,
        reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    ) -> std::io::Result<Self> {
        let (sender, events) = mpsc::channel();
        let abort = AbortHandle(Arc::default());
        let to = (sender, Arc::clone(&abort.0));
        let controller = crate::controller::start_parts(context, parts, on_loss, reports, to)?;
        Ok(Self { events, abort, controller: Some(controller) })
    }

    /// The next event; `None` after `timeout`, or after [`Event::Finished`].
    pub fn next_event(&self, timeout: Duration) -> Option<Event> {
        self.events.recv_timeout(timeout).ok()
    }

    /// All events up to and including [`Event::Finished`]; blocks until each is available.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.events.iter()
    }

    /// Ends the run early, see [`AbortHandle::abort`].
    pub fn abort(&self) {
        self.abort.abort();
    }

    /// A handle that can end the run from another thread.
    pub fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.abort();
        if let Some(controller) = self.controller.take() {
            // A panic of the controller has already been printed.
            let _ = controller.join();
        }
    }
}
